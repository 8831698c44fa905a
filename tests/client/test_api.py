"""The routes as methods, against the real application."""

import os
import subprocess
import sys

import httpx
import pytest

import verilog_taskapp.client
from tests.client.conftest import URL, Network, client_over
from tests.support import KEY, MIN_MAX, Service, rollout_request
from verilog_taskapp.client import Client, DeadlinePassed, ServiceUnreachable, UnreadableAnswer
from verilog_taskapp.errors import (
    EnvironmentFailed,
    InferenceRejected,
    InvalidRequest,
    ProblemNotFound,
    TaskAppError,
    Unauthorized,
)
from verilog_taskapp.scripted import ScriptedOptions

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVER_ONLY = (
    "fastapi",
    "starlette",
    "uvicorn",
    "datasets",
    "pyarrow",
    "prometheus_client",
    "sqlalchemy",
    "aiosqlite",
    "alembic",
    "aiohttp",
    "pydantic_settings",
    "numpy",
    "orjson",
    "typer",
    "rich",
    "yaml",
)
BARE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from verilog_taskapp.client import Client, SyncClient
with SyncClient("http://127.0.0.1:9", "key", retries=0) as client:
    try:
        client.health()
    except Exception as error:
        print(type(error).__name__)
print(sorted(name for name in sys.modules if name.startswith("verilog_taskapp.") and name.count(".") == 1))
"""


async def test_the_public_names() -> None:
    assert verilog_taskapp.client.__all__ == [
        "BatchAnswer",
        "Client",
        "DeadlinePassed",
        "ServiceUnreachable",
        "Session",
        "SessionNotOpen",
        "SyncClient",
        "SyncSession",
        "UnreadableAnswer",
        "tool_messages",
    ]


async def test_it_works_without_anything_of_the_server() -> None:
    program = BARE.format(absent=SERVER_ONLY)
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)  # noqa: ASYNC221
    assert done.returncode == 0, done.stderr
    error, modules = done.stdout.splitlines()
    assert error == "ServiceUnreachable"
    parts = {"client", "contracts", "errors", "inference"}
    assert modules == str(sorted(f"verilog_taskapp.{part}" for part in parts))


async def test_what_the_service_offers(client: Client, service: Service) -> None:
    assert (await client.health()).authorized
    info = await client.info()
    assert info.dataset.id == service.problems.facts.id
    whole = await client.task_set()
    assert whole.taskset.instance_count == service.problems.facts.instance_count
    infos = await client.task_infos([3, 0, 3], "all")
    names = [one.dataset.instance_id for one in infos]
    assert names[0] == names[2] != names[1]
    assert (await client.task_info(0, "all")).dataset.instance_id == names[1]
    assert (await client.task_infos([0], "all"))[0].dataset.instance_id == names[1]
    assert await client.task_infos([]) == []


async def test_a_rollout(client: Client) -> None:
    answer = await client.rollout(rollout_request(env=MIN_MAX))
    assert answer.metrics.details.task_completed
    assert answer.metrics.mean_return == pytest.approx(11.06)
    assert [step.tool_calls[0].tool_name for step in answer.trajectories[0].steps][-1] == "submit"


async def test_a_script_and_every_config_arrive(client: Client) -> None:
    script = [{"tool": "write_file", "args": {"path": "a.v", "content": "x"}}, {"tool": "submit"}]
    rewards = {"step_penalty": -0.5}
    answer = await client.rollout(rollout_request(env={**MIN_MAX, "rewards": rewards}, ops=script))
    assert [step.reward for step in answer.trajectories[0].steps] == [-0.5, -0.5]


async def test_a_group(client: Client) -> None:
    answer = await client.rollout(rollout_request(env=MIN_MAX, policy={"n": 3}))
    assert answer.metrics.episode_returns == [pytest.approx(11.06)] * 3


async def test_faults_are_the_services_own(client: Client, service: Service, network: Network) -> None:
    with pytest.raises(ProblemNotFound) as missing:
        await client.rollout(rollout_request(env={"problem": "vt001"}))
    assert (missing.value.status, missing.value.stage) == (404, "dataset")
    assert missing.value.extras["close_matches"] == ["vt001_min_max"]
    service.model.answer = lambda _: httpx.Response(403, json={"error": {"message": "no"}})
    with pytest.raises(InferenceRejected) as rejected:
        await client.rollout(rollout_request(env=MIN_MAX))
    assert rejected.value.extras["upstream_status"] == 403
    with pytest.raises(InvalidRequest):
        await client.task_info(0, "nowhere")  # type: ignore[arg-type]
    async with Client(URL, "wrong", transport=network) as stranger:
        with pytest.raises(Unauthorized):
            await stranger.info()
        assert not (await stranger.health()).authorized
    assert network.seen.count("/rollout") == 2  # none of these passes by waiting


async def test_an_unknown_code_is_still_a_fault(network: Network, client: Client) -> None:
    body = {"error": {"code": "brand_new", "message": "m", "retryable": False, "stage": "tool", "more": 1}}
    network.before = [httpx.Response(500, json=body)]
    with pytest.raises(TaskAppError) as raised:
        await client.info()
    error = raised.value
    assert (error.status, error.message, error.stage, error.retryable) == (500, "m", "tool", False)
    assert error.extras == {"code": "brand_new", "more": 1}


@pytest.mark.parametrize("url", ["", "127.0.0.1:8103", "ftp://x", "http://[::1"])
async def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(InvalidRequest, match="URL"):
        Client(url)


async def test_what_may_pass_is_tried_again(network: Network, client: Client) -> None:
    failed = {"code": "environment_failed", "message": "m", "retryable": True}
    network.before = [
        httpx.ConnectError("refused"),
        httpx.Response(500, json={"error": failed, "detail": failed}),
        httpx.Response(502, html="<h1>Bad Gateway</h1>"),
        httpx.RemoteProtocolError("cut off"),
    ]
    assert (await client.rollout(rollout_request(env=MIN_MAX))).metrics.details.task_completed
    assert network.seen == ["/rollout"] * 5


async def test_but_not_for_ever(network: Network) -> None:
    failed = {"code": "environment_failed", "message": "m", "retryable": True}
    network.before = [httpx.Response(500, json={"error": failed}) for _ in range(9)]
    async with client_over(network, retries=2) as client:
        with pytest.raises(EnvironmentFailed):
            await client.info()
        assert len(network.seen) == 3
        network.before = [httpx.ConnectError("refused")] * 9
        with pytest.raises(ServiceUnreachable, match="refused"):
            await client.info()
        assert len(network.seen) == 6


async def test_what_does_not_pass_is_not(network: Network, client: Client) -> None:
    broken = {"code": "environment_failed", "message": "m", "retryable": False}
    network.before = [httpx.Response(500, json={"error": broken})]
    with pytest.raises(EnvironmentFailed):
        await client.info()
    network.before = [httpx.Response(200, text="<html>")]
    with pytest.raises(UnreadableAnswer):
        await client.info()
    network.before = [httpx.Response(302, headers={"Location": "http://elsewhere"})]
    with pytest.raises(UnreadableAnswer, match="302"):
        await client.info()
    assert len(network.seen) == 3


async def test_a_full_service_is_waited_for_as_long_as_there_is_time(network: Network) -> None:
    full = {"code": "overloaded", "message": "full", "retryable": True}
    network.before = [httpx.Response(429, json={"error": full}, headers={"Retry-After": "0"}) for _ in range(5)]
    async with client_over(network, retries=1) as client:
        await client.info()
    assert len(network.seen) == 6


async def test_a_wait_beyond_the_deadline_is_not_begun(network: Network) -> None:
    full = {"code": "overloaded", "message": "full", "retryable": True}
    network.before = [httpx.Response(429, json={"error": full}, headers={"Retry-After": "3600"})]
    async with client_over(network) as client:
        with pytest.raises(TaskAppError) as raised:
            await client.info()
    assert (raised.value.code, raised.value.retry_after_s) == ("overloaded", 3600)


async def test_the_deadline_stops_the_work_of_the_service(service: Service, network: Network) -> None:
    service.model.forget(ScriptedOptions(mode="hang"))
    async with client_over(network) as client:
        with pytest.raises(DeadlinePassed):
            await client.rollout(rollout_request(env=MIN_MAX), deadline_s=0.2)
    assert service.services.rollouts.in_flight == 0


async def test_the_key_is_sent_once_and_nothing_is_read_from_the_environment() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"status": "healthy"})

    os.environ["ENVIRONMENT_API_KEY"] = KEY
    try:
        async with Client(f"{URL}/base/", transport=httpx.MockTransport(answer)) as client:
            await client.health()
    finally:
        del os.environ["ENVIRONMENT_API_KEY"]
    assert str(asked[0].url) == f"{URL}/base/health"
    assert KEY not in str(asked[0].headers.raw)
