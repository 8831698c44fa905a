"""A scratch disk that runs full under load: what cannot be judged is never scored, and room is all that is needed."""

import asyncio
import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.running import Server, server_in, until
from tests.conftest import left_by_jobs
from tests.faults.outcomes import Batch, check_environment_failed, check_solved, run
from tests.support import MIN_MAX, rollout_body, simulators_in
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.scripted import ScriptedOptions, ScriptedServer
from verilog_taskapp.settings import Settings

ROLLOUTS = 16
DISK = "size=1m"
PAGE = 4096


class Disk:
    """A small disk of its own, and one file on it that takes what room there is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, leave_pages: int = 0) -> None:
        """Take all room but so many pages."""
        with self._ballast.open("ab", buffering=0) as file:
            with contextlib.suppress(OSError):  # no space left: that is what is wanted
                while file.write(bytes(PAGE)):
                    pass
            file.truncate(max(0, file.tell() - leave_pages * PAGE))

    def free(self) -> None:
        """Give all of it back."""
        self._ballast.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """The scratch folder of the server below `tmp_path`, as a file system of one mebibyte."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk to fill")
    folder = tmp_path / "scratch"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def bodies_of(model: ScriptedServer, name: str) -> list[dict[str, Any]]:
    """Solutions and wrong designs by turns, all of one problem."""
    policy = {"inference_url": model.url}
    modes = itertools.islice(itertools.cycle(("correct", "wrong")), ROLLOUTS)
    return [
        rollout_body(model=f"scripted:mode={mode}", policy=policy, env=MIN_MAX, run_id=f"{name}-{number}")
        for number, mode in enumerate(modes)
    ]


def check_none_wrong(batch: Batch, rewards: list[float]) -> None:
    """Each rollout was paid what it is paid on a healthy disk, or has failed as ours."""
    for outcome, reward in zip(batch.outcomes, rewards, strict=True):
        if outcome.status == 200:
            assert outcome.reward == pytest.approx(reward)
        else:
            check_environment_failed(outcome)


def nothing_is_left(server: Server) -> bool:
    (own,) = server.directories
    return left_by_jobs(own) == [] and not simulators_in(server.scratch)


async def rewards_on_a_healthy_disk(tmp_path: Path, model: ScriptedServer) -> list[float]:
    """By a server of its own, which leaves the golden traces in the cache for the next one and no verdicts."""
    async with server_in(tmp_path, VERILOG_VERDICT_CACHE="off") as server:
        batch = await run(server, bodies_of(model, "healthy"))
    check_solved(Batch(batch.outcomes[::2], batch.elapsed_s))
    assert all(one.status == 200 and one.reward < 1 for one in batch.outcomes[1::2]), "a wrong design is not paid"
    return [one.reward for one in batch.outcomes]


@pytest.mark.parametrize("cache", ["off", "memory"])
async def test_a_disk_that_fills_up_under_rollouts_costs_no_reward_and_room_mends_it(
    tmp_path: Path, disk: Disk, cache: str
) -> None:
    problems = load_problem_set(Settings()).problems
    async with ScriptedServer(ScriptedOptions(latency_ms=100), problems) as model:
        rewards = await rewards_on_a_healthy_disk(tmp_path, model)
        async with server_in(tmp_path, VERILOG_VERDICT_CACHE=cache) as server:
            running = asyncio.create_task(run(server, bodies_of(model, "full")))
            await until(lambda: model.stats.in_flight == ROLLOUTS, "all rollouts ask the model")
            disk.fill()
            full = await running
            check_none_wrong(full, rewards)
            assert full.failed, "nothing was simulated on the full disk"
            disk.free()
            freed = await run(server, bodies_of(model, "freed"))
            assert [one.status for one in freed.outcomes] == [200] * ROLLOUTS
            check_none_wrong(freed, rewards)
            await until(lambda: nothing_is_left(server), "the jobs' files are gone")
        assert server.directories == []
    print(f"\nfull disk, cache {cache}: {full}; freed: {freed}")


async def test_a_disk_that_is_full_now_and_then_spoils_no_verdict(tmp_path: Path, disk: Disk) -> None:
    problems = load_problem_set(Settings()).problems
    async with ScriptedServer(ScriptedOptions(latency_ms=20), problems) as model:
        rewards = await rewards_on_a_healthy_disk(tmp_path, model)
        async with server_in(tmp_path, VERILOG_VERDICT_CACHE="off") as server:
            running = asyncio.create_task(run(server, bodies_of(model, "flapping")))
            for pages in itertools.cycle((0, 1, 2, 3, 5, 8)):
                if running.done():
                    break
                disk.fill(pages)
                await asyncio.sleep(0.01)
                disk.free()
                await asyncio.sleep(0.01)
            flapping = await running
            check_none_wrong(flapping, rewards)
            freed = await run(server, bodies_of(model, "freed"))
            assert [one.status for one in freed.outcomes] == [200] * ROLLOUTS
            check_none_wrong(freed, rewards)
            await until(lambda: nothing_is_left(server), "the jobs' files are gone")
        assert server.directories == []
    print(f"\ndisk full now and then: {flapping}; freed: {freed}")
