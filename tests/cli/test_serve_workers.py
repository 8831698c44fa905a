"""``serve --workers 2``: any worker takes any session's next step, and a worker that dies costs nobody else much."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import left_in, until
from tests.support import DEADLINE_S, HANGS, MIN_MAX, call, files_in, processes_in, rollout_body, simulators_in
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.scripted.designs import designs_of
from verilog_taskapp.settings import Settings

pytestmark = pytest.mark.slow

SOLVED = 0.1 + 1 + 10 - 4 * 0.01
"""Write, compile, simulate, submit: each pays once."""
PENALTY = -0.01


@dataclass
class Service:
    """A supervisor with its workers, and clients that open a connection for each request."""

    process: subprocess.Popen[bytes]
    log: Path
    scratch: Path
    url: str = ""
    client: httpx.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        limits = httpx.Limits(max_keepalive_connections=0)
        self.client = httpx.AsyncClient(timeout=DEADLINE_S, limits=limits, trust_env=False)

    def lines(self) -> list[dict[str, Any]]:
        """The log so far, without what is not in it as JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def started(self) -> list[int]:
        """The process ids of all workers that ever finished starting, in that order."""
        return [line["pid"] for line in self.lines() if line["message"] == "Application startup complete."]

    def living(self) -> list[int]:
        """Those that still run."""
        return [pid for pid in self.started() if is_running(pid)]

    def served(self) -> dict[str, int]:
        """Which worker answered a request, by the id that its client gave it."""
        return {line["request_id"]: line["pid"] for line in self.lines() if line["message"] == "request"}

    async def post(self, path: str, body: Any, request_id: str = "") -> httpx.Response:
        headers = {"X-Request-ID": request_id} if request_id else {}
        return await self.client.post(f"{self.url}{path}", json=body, headers=headers)

    async def env(self, what: str, body: Any, request_id: str = "", status: int = 200) -> dict[str, Any]:
        """The answer of a session route."""
        response = await self.post(f"/env/verilog/{what}", body, request_id)
        assert response.status_code == status, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def listens(self) -> None:
        """Wait until somebody answers: a worker says that it has started a moment before it listens."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                with suppress(httpx.ConnectError):
                    await self.client.get(f"{self.url}/health")
                    return
                await asyncio.sleep(0.01)

    async def repeated(self, what: str, body: Any) -> dict[str, Any]:
        """The answer of a session route as a client gets it that repeats what a dying worker cut off."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                with suppress(httpx.TransportError):
                    return await self.env(what, body)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal to the supervisor and wait for its end."""
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


StartWorkers = Callable[..., Awaitable[Service]]


@pytest.fixture
async def workers(tmp_path: Path) -> AsyncIterator[StartWorkers]:
    """``await workers(VERILOG_...=...)``: a service of two that is ready. Settings beside the usual ones are given."""
    running: list[Service] = []

    async def start(number: int = 2, **env: object) -> Service:
        log = tmp_path / f"log-{len(running)}"
        with log.open("wb") as stderr:
            process = subprocess.Popen(  # noqa: ASYNC220 - starting it is all that is waited for
                [
                    sys.executable,
                    "-m",
                    "verilog_taskapp",
                    "serve",
                    "--port",
                    "0",
                    "--no-auth",
                    "--workers",
                    str(number),
                ],
                stdin=subprocess.DEVNULL,
                stderr=stderr,
                env={**os.environ, **{name: str(value) for name, value in env.items()}},
            )
        service = Service(process, log, tmp_path / "scratch")
        running.append(service)
        await until(lambda: process.poll() is not None or len(service.started()) == number)
        assert process.poll() is None, log.read_text()
        service.url = next(line for line in log.read_text().splitlines() if "starting on" in line).split()[-1]
        await service.listens()
        return service

    yield start
    for service in running:
        await service.client.aclose()
        service.process.kill()
        service.process.wait()
        await until(lambda service=service: not service.living())  # type: ignore[misc]


def design(problem: str, kind: str = "right") -> str:
    text: str = getattr(designs_of(load_problem_set(Settings()).get(problem)), kind)
    return text


PROBLEMS = ("vt001_min_max", "vt002_gray_codec", "vt014_limit_counter", "vt019_sequence_detector")


def solution(problem: str) -> list[dict[str, Any]]:
    return [
        call("write_file", path="TopModule.v", content=design(problem)),
        *(call("compile"), call("simulate"), call("submit")),
    ]


async def test_a_session_goes_on_at_whichever_worker_takes_the_step(workers: StartWorkers) -> None:
    service = await workers()

    async def play(number: int) -> None:
        problem, name = PROBLEMS[number % len(PROBLEMS)], f"s{number}"
        request = {"config": {"problem": problem}, "session_id": name}
        begun = await service.env("initialize", request, f"{name}-open")
        assert await service.env("initialize", request, f"{name}-again") == begun
        answers = []
        for step, one in enumerate(solution(problem)):
            body = {"env_id": name, "tool_calls": [one], "step_id": str(step)}
            answers.append(await service.env("step", body, f"{name}-{step}"))
        rewards = [answer["reward"] for answer in answers]
        assert rewards == pytest.approx([PENALTY, 0.1 + PENALTY, 1 + PENALTY, 10 + PENALTY])
        assert [answer["info"]["tool_results"][0]["message"].splitlines()[0].split(":")[0] for answer in answers] == [
            answers[0]["info"]["tool_results"][0]["message"],
            *("compilation succeeded", "passed", "submission passed"),
        ]
        assert answers[-1]["info"]["total_reward"] == pytest.approx(SOLVED)
        for step in (1, 3):
            body = {"env_id": name, "tool_calls": [call("compile")], "step_id": str(step)}
            assert await service.env("step", body, f"{name}-{step}-again") == answers[step]
        facts = await service.env("terminate", {"env_id": name}, f"{name}-close")
        assert (facts["known"], facts["steps"], facts["task_completed"]) == (True, 4, True)
        assert await service.env("terminate", {"env_id": name}, f"{name}-close-again") == facts
        error = await service.env("step", {"env_id": name, "tool_calls": []}, f"{name}-late", status=404)
        assert error["error"]["code"] == "session_not_found"

    await asyncio.gather(*(play(number) for number in range(40)))
    served = service.served()
    assert Counter(served.values()).keys() == set(service.started())
    moved = [number for number in range(40) if len({served[f"s{number}-{step}"] for step in range(4)}) == 2]
    assert len(moved) > 10, "or else this shows nothing"
    health = (await service.client.get(f"{service.url}/health")).json()
    assert health["capacity"]["max_children"] == -(-(os.cpu_count() or 1) // 2)
    assert service.stop() == 0
    assert left_in(service.scratch) == []


async def test_steps_of_one_session_follow_one_another_over_both_workers(workers: StartWorkers) -> None:
    service = await workers()
    request = {"config": MIN_MAX, "session_id": "mine"}

    async def one_after_another(number: int) -> None:
        """Connections of one instant may all be accepted by the worker that wakes first."""
        await asyncio.sleep(0.01 * (number % 12))

    async def begin(number: int) -> dict[str, Any]:
        await one_after_another(number)
        return await service.env("initialize", request, f"open-{number}")

    async def step(number: int, step_id: str | None, *calls: Mapping[str, Any]) -> dict[str, Any]:
        await one_after_another(number)
        return await service.env("step", {"env_id": "mine", "tool_calls": calls, "step_id": step_id}, f"step-{number}")

    begun = await asyncio.gather(*map(begin, range(12)))
    assert all(one == begun[0] for one in begun)
    answers = await asyncio.gather(*(step(number, None, call("compile")) for number in range(12)))
    totals = sorted(answer["info"]["total_reward"] for answer in answers)
    assert totals == pytest.approx([PENALTY * number for number in range(12, 0, -1)])
    right = call("write_file", path="TopModule.v", content=design(MIN_MAX["problem"]))
    same = await asyncio.gather(*(step(number, "1", right, call("simulate")) for number in range(12, 24)))
    assert all(answer == same[0] for answer in same)
    assert same[0]["info"]["total_reward"] == pytest.approx(1 + 14 * PENALTY)
    served = service.served()
    assert len({served[f"step-{number}"] for number in range(24)}) == 2, "or else this shows nothing"


async def test_the_limit_on_sessions_is_for_all_workers(workers: StartWorkers) -> None:
    service = await workers(VERILOG_MAX_SESSIONS=10)
    answers = [await service.post("/env/verilog/initialize", {"seed": 0}) for _ in range(16)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429] * 6
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in answers[10:])
    await service.env("terminate", {"env_id": answers[0].json()["env_id"]})
    assert (await service.post("/env/verilog/initialize", {"seed": 0})).status_code == 200


async def test_idle_sessions_expire_and_leave_nothing_on_disk(workers: StartWorkers, tmp_path: Path) -> None:
    service = await workers(VERILOG_SESSION_TTL_S=1, VERILOG_SESSION_DIR=tmp_path / "sessions")
    names = [(await service.env("initialize", {"seed": number}))["env_id"] for number in range(8)]
    await until(lambda: files_in(tmp_path / "sessions") == [])
    for name in names:
        await service.env("step", {"env_id": name, "tool_calls": []}, status=404)
        assert (await service.env("terminate", {"env_id": name}))["known"] is False
    assert service.stop() == 0
    assert left_in(service.scratch) == []


async def test_sessions_outlast_a_restart_where_they_are_given_a_directory(
    workers: StartWorkers, tmp_path: Path
) -> None:
    first = await workers(VERILOG_SESSION_DIR=tmp_path / "sessions")
    await first.env("initialize", {"config": MIN_MAX, "session_id": "mine"})
    *most, last = solution(MIN_MAX["problem"])
    before = await first.env("step", {"env_id": "mine", "tool_calls": most, "step_id": "1"})
    assert first.stop() == 0
    assert left_in(first.scratch) == []
    then = await workers(1, VERILOG_SESSION_DIR=tmp_path / "sessions")
    assert await then.env("step", {"env_id": "mine", "tool_calls": [], "step_id": "1"}) == before
    after = await then.env("step", {"env_id": "mine", "tool_calls": [last]})
    assert after["info"]["total_reward"] == pytest.approx(SOLVED)


async def test_workers_that_record_the_same_problems_at_once_agree(workers: StartWorkers, tmp_path: Path) -> None:
    cache = tmp_path / "fresh"
    service = await workers(VERILOG_CACHE_DIR=cache, TASKAPP_TRACING_ENABLED="false")
    bodies = [rollout_body(ops=solution(problem), env={"problem": problem}) for problem in PROBLEMS for _ in range(8)]
    answers = await asyncio.gather(*(service.post("/rollout", body, str(number)) for number, body in enumerate(bodies)))
    assert [answer.json()["metrics"]["mean_return"] for answer in answers] == pytest.approx([SOLVED] * len(bodies))
    assert len(set(service.served().values())) == 2
    files = [path.relative_to(cache) for path in cache.rglob("*") if path.is_file()]
    assert [path.name for path in files if path.parent == Path()] == ["stimulus-key"]
    assert {path.suffix for path in files if path.parts[0] == "golden"} == {".trace", ".json"}, "no half-written one"


async def eventually(request: Callable[[], Awaitable[httpx.Response]], failures: Counter[str]) -> dict[str, Any]:
    """The answer of a request that is repeated while it fails in a way that says so."""
    async with asyncio.timeout(4 * DEADLINE_S):
        while True:
            try:
                response = await request()
            except httpx.TransportError as error:
                failures[type(error).__name__] += 1
            else:
                answer: dict[str, Any] = response.json()
                if response.status_code == 200:
                    return answer
                assert answer["error"]["retryable"], answer
                failures[answer["error"]["code"]] += 1
            await asyncio.sleep(0.05)


async def test_a_worker_that_is_killed_in_the_middle_costs_nobody_an_answer(
    workers: StartWorkers, capsys: pytest.CaptureFixture[str]
) -> None:
    service = await workers()
    for problem in PROBLEMS:  # so that what runs is designs, and not the recording of references
        await service.post("/rollout", rollout_body(ops=solution(problem), env={"problem": problem}))
    killed, surviving = service.started()
    failures: Counter[str] = Counter()
    finished = 0

    async def rollout(number: int) -> None:
        nonlocal finished
        problem = PROBLEMS[number % len(PROBLEMS)]
        body = rollout_body(ops=solution(problem), env={"problem": problem}, run_id=f"r{number}")
        answer = await eventually(lambda: service.post("/rollout", body, f"r{number}"), failures)
        assert answer["metrics"]["mean_return"] == pytest.approx(SOLVED)
        finished += 1

    async def session(number: int) -> None:
        problem, name = PROBLEMS[number % len(PROBLEMS)], f"s{number}"
        bodies: list[tuple[str, dict[str, Any]]] = [
            ("initialize", {"config": {"problem": problem}, "session_id": name}),
            *(
                ("step", {"env_id": name, "tool_calls": [one], "step_id": str(step)})
                for step, one in enumerate(solution(problem))
            ),
            ("terminate", {"env_id": name}),
        ]
        for what, body in bodies:
            path = f"/env/verilog/{what}"
            answer = await eventually(lambda path=path, body=body: service.post(path, body), failures)  # type: ignore[misc]
        assert answer["total_reward"] == pytest.approx(SOLVED), "every step is paid once, however often it was sent"
        assert answer["steps"] == 4

    async with asyncio.TaskGroup() as tasks:
        for number in range(64):
            tasks.create_task(rollout(number))
        for number in range(32):
            tasks.create_task(session(number))
        await until(lambda: finished >= 8)
        os.kill(killed, signal.SIGKILL)
    with capsys.disabled():
        print(f"\nkilled a worker after {finished and 8} of 64 rollouts: {dict(failures)}, all right in the end")
    assert 0 < sum(failures.values()) <= 96, "only what was under way at the dead worker"
    statuses = [line for line in service.lines() if line["message"] == "request" and line["status"] >= 500]
    assert [line for line in statuses if line["pid"] == surviving] == []
    await until(lambda: len(service.living()) == 2)
    assert surviving in service.living()
    await until(lambda: not simulators_in(service.scratch))
    assert files_in(service.scratch / f"verilog-taskapp-{os.getuid()}") == [] or service.stop() == 0
    service.stop()
    assert left_in(service.scratch) == []


async def test_a_step_whose_worker_dies_is_as_if_it_was_never_sent(workers: StartWorkers) -> None:
    service = await workers(VERILOG_RUN_CPU_S=2)
    await service.env("initialize", {"config": MIN_MAX, "session_id": "mine"})
    await service.env("step", {"env_id": "mine", "tool_calls": [call("compile")]})
    calls = [call("write_file", path="TopModule.v", content=HANGS), call("simulate")]
    body = {"env_id": "mine", "tool_calls": calls, "step_id": "1"}
    step = asyncio.create_task(service.env("step", body))

    def killed() -> list[int]:
        """The worker whose child simulates, which is killed."""
        running = [pid for pid, command in simulators_in(service.scratch).items() if "+vt_rows" in command]
        found = [worker for worker in service.started() if any(descends(pid, worker) for pid in running)]
        for worker in found:
            os.kill(worker, signal.SIGKILL)
        return found

    await until(killed)
    with pytest.raises(httpx.TransportError):
        await step
    answer = await service.repeated("step", body)
    assert [one["outcome"] for one in answer["info"]["tool_results"]] == ["ok", "failed"]
    assert answer["info"]["tool_results"][1]["facts"]["reason"] == "time_limit"
    assert answer["info"]["total_reward"] == pytest.approx(3 * PENALTY), "not five: the write was not paid twice"
    await until(lambda: len(service.started()) == 3)


def descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return False
    return False


async def test_workers_end_when_their_supervisor_is_killed_and_the_next_start_sweeps(
    workers: StartWorkers, tmp_path: Path
) -> None:
    service = await workers(VERILOG_DRAIN_S=1)
    await service.env("initialize", {"config": MIN_MAX, "session_id": "mine"})
    hangs = [call("write_file", path="TopModule.v", content=HANGS), call("simulate")]
    step = asyncio.create_task(service.post("/env/verilog/step", {"env_id": "mine", "tool_calls": hangs}))
    await until(lambda: simulators_in(service.scratch))
    service.process.kill()
    await until(lambda: not service.living())
    await asyncio.wait([step])
    await until(lambda: not processes_in(tmp_path))  # the helper process of multiprocessing notices it by itself
    base = service.scratch / f"verilog-taskapp-{os.getuid()}"
    (left,) = base.iterdir()
    assert {path.name for path in left.iterdir()} == {"lock", "metrics", "sessions"}
    following = await workers()
    assert not left.exists()
    await following.env("step", {"env_id": "mine", "tool_calls": []}, status=404)
    assert following.stop() == 0
    assert left_in(service.scratch) == []


async def test_a_hung_up_terminal_replaces_the_workers_one_by_one(workers: StartWorkers) -> None:
    service = await workers()
    before = service.started()
    await service.env("initialize", {"config": MIN_MAX, "session_id": "mine"})
    service.process.send_signal(signal.SIGHUP)
    await until(lambda: len(service.started()) == 4 and not set(service.living()) & set(before))
    answer = await service.env("step", {"env_id": "mine", "tool_calls": solution(MIN_MAX["problem"])})
    assert answer["info"]["total_reward"] == pytest.approx(SOLVED)
