"""The blocking face: the same client, from any thread, and what is forgotten is closed."""

import asyncio
import gc
import inspect
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.app.running import Server, server_in, until
from tests.conftest import until as until_in_thread
from tests.support import KEY, MIN_MAX, rollout_request
from verilog_taskapp.client import Client, Session, SyncClient, SyncSession
from verilog_taskapp.errors import ProblemNotFound

pytestmark = pytest.mark.asyncio(loop_scope="function")


def open_sessions(server: Server) -> int:
    with SyncClient(server.url, KEY) as client:
        return int(client.health().model_dump()["capacity"]["sessions"])


def play(server: Server) -> None:
    """Everything that blocks, in a thread of its own."""
    with SyncClient(server.url, KEY) as client:
        assert client.health().authorized
        assert client.info().dataset.id == client.task_set().taskset.id
        names = [client.task_info(seed, "all").dataset.instance_id for seed in range(2)]
        assert [one.dataset.instance_id for one in client.task_infos([0, 1], "all")] == names
        script = [{"tool": "compile", "args": {}}, {"tool": "submit", "args": {}}]
        request = rollout_request(env=MIN_MAX, ops=script)
        assert client.rollout(request).metrics.num_steps == 2
        with pytest.raises(ProblemNotFound):
            client.rollout(rollout_request(env={"problem": "nothing"}, ops=script))
        assert sorted(one.index for one in client.rollout_batch([request] * 3)) == [0, 1, 2]
        for _ in client.rollout_batch([request] * 3):
            break

        def episode(seed: int) -> float:
            with client.session(seed=seed, config={"split": "all"}) as session:
                for _ in range(5):
                    session.step("compile")
                assert not session.done
                session.step_calls([{"tool": "submit"}])
                assert session.done
                return session.total_reward

        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(episode, range(16))) == [pytest.approx(-0.06)] * 16


def child_status(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def forget(server: Server) -> None:
    """Sessions that nobody closes, and a client too."""
    client = SyncClient(server.url, KEY)
    for _ in range(5):
        client.session(config=MIN_MAX).reset()
    left = client.session(config=MIN_MAX)
    left.reset()
    del left, client
    gc.collect()


async def test_a_trainer_that_blocks(tmp_path: Path) -> None:
    async with server_in(tmp_path) as server:
        await asyncio.to_thread(play, server)
        await asyncio.to_thread(forget, server)
        await until_in_thread(lambda: open_sessions(server) == 0)
    await until(lambda: not [one for one in threading.enumerate() if "verilog-taskapp-client" in one.name], "no thread")


async def test_the_faces_have_the_same_methods_and_arguments() -> None:
    for blocking, real in ((SyncClient, Client), (SyncSession, Session)):
        names = {name for name in vars(real) if not name.startswith("_")} - {"aclose", "leave"}
        for name in names:
            other = inspect.getattr_static(blocking, name)
            if inspect.isfunction(other):
                mine = inspect.signature(getattr(real, name)).parameters
                assert list(inspect.signature(other).parameters.values()) == list(mine.values()), name
    assert list(inspect.signature(SyncClient).parameters.values()) == list(
        inspect.signature(Client).parameters.values()
    )


async def test_wrong_use_is_told_and_does_not_hang() -> None:
    client = SyncClient("http://127.0.0.1:9", KEY, retries=0)
    pid = os.fork()
    if pid == 0:  # the child has no such thread
        try:
            client.health()
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    assert child_status(pid) == 0
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.health()
