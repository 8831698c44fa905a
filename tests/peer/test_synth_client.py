"""synth-ai's own client, in its own environment, against our server as a real process."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

HERE = Path(__file__).parent
REPO = HERE.parents[1]
PEER_PYTHON = Path(os.environ.get("PEER_VENV") or REPO / ".venv-peer").absolute() / "bin" / "python"
KEY = "peer-test-key"
START_S = 120.0
DRIVE_S = 300.0

pytestmark = [
    pytest.mark.peer,
    pytest.mark.slow,
    pytest.mark.skipif(not PEER_PYTHON.exists(), reason=f"no {PEER_PYTHON}: run scripts/test-peer"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, what: str) -> None:
    """Poll `ready`; fail with the process's log when it exits or does not get there in time."""
    deadline = time.monotonic() + START_S
    while not ready():
        if process.poll() is not None:
            pytest.fail(f"{what} exited with {process.returncode}:\n{log.read_text()[-4000:]}")
        if time.monotonic() > deadline:
            pytest.fail(f"{what} was not up within {START_S:.0f} s:\n{log.read_text()[-4000:]}")
        time.sleep(0.05)


@contextlib.contextmanager
def running(command: list[str], log: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A child process whose output goes to `log`, gone when the block ends."""
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=log.parent
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="module")
def server_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("VERILOG_") and "ENVIRONMENT_API_KEY" not in name.upper()
    }
    cache = tmp_path_factory.mktemp("cache")
    return {**inherited, "ENVIRONMENT_API_KEY": KEY, "VERILOG_CACHE_DIR": str(cache), "PYTHONUNBUFFERED": "1"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, server_env: dict[str, str]) -> Iterator[str]:
    """Base URL of our server."""
    port = free_port()
    log = tmp_path_factory.mktemp("service") / "log"
    program = Path(sys.executable).with_name("verilog-taskapp")
    command = [str(program), "serve", "--host", "127.0.0.1", "--port", str(port), "--dataset", "bundled"]
    url = f"http://127.0.0.1:{port}"

    def is_ready() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{url}/ready", timeout=5).status_code == 200
        return False

    with running(command, log, server_env) as process:
        wait_until(is_ready, process, log, "verilog-taskapp serve")
        yield url


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, server_env: dict[str, str]) -> Iterator[str]:
    """Chat-completions endpoint of a scripted model that solves every problem."""
    port = free_port()
    log = tmp_path_factory.mktemp("model") / "log"
    options = ["--port", str(port), "--mode", "correct", "--dataset", "bundled"]
    url = f"http://127.0.0.1:{port}"
    with running([sys.executable, "-m", "verilog_taskapp.scripted", *options], log, server_env) as process:
        wait_until(lambda: f"listening on {url}" in log.read_text(), process, log, "verilog_taskapp.scripted")
        yield f"{url}/v1/chat/completions"


@pytest.fixture(scope="module")
def seen(service: str, model: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the peer's client saw."""
    drive = [str(PEER_PYTHON), str(HERE / "peer_client.py"), service, KEY, model]
    env = {name: value for name, value in os.environ.items() if name != "ENVIRONMENT_API_KEY_ALIASES"}
    folder = tmp_path_factory.mktemp("peer")  # importing synth_ai may leave caches in the current folder
    done = subprocess.run(drive, capture_output=True, text=True, timeout=DRIVE_S, check=False, env=env, cwd=folder)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}"
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_the_pinned_samples_are_what_the_peer_sends_today(tmp_path: Path) -> None:
    command = [str(PEER_PYTHON), str(HERE / "peer_samples.py")]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path).stdout
    assert json.loads(printed) == json.loads((HERE / "samples.json").read_text())


def test_the_service_is_healthy_and_knows_itself(seen: dict[str, Any]) -> None:
    assert seen["health"] == {"status": "healthy", "authorized": True, "head_status": 200}
    assert seen["info"]["task"] == "verilog_eval_v2"
    assert seen["info"]["rubrics"] == ["events", "outcome"]


def test_task_info_answers_in_the_order_asked(seen: dict[str, Any]) -> None:
    first, second, third = seen["task_info"]["several"]
    assert first == third == seen["task_info"]["one"]
    assert first != second
    assert "None" not in seen["task_info"]["several"]
    assert seen["task_info"]["environment"] == "verilog"
    assert seen["task_info"]["taskset"]["default_split"] == "val"
    assert seen["task_info"]["limits"]["max_turns"] >= 1


def test_a_model_that_knows_the_answer_completes_the_task(seen: dict[str, Any]) -> None:
    rollout = seen["rollout"]
    assert rollout["details"]["task_completed"] is True
    assert rollout["details"]["status"] == "completed"
    assert rollout["mean_return"] > 10.0
    assert rollout["tools"][0] == "write_file"
    assert rollout["tools"][-1] == "submit"
    assert rollout["done"] == [False] * (rollout["length"] - 1) + [True]
    assert rollout["aborted"] is False
    assert rollout["trace_keys"]
    assert 0.0 <= rollout["events_score"] <= 1.0


def test_a_script_with_a_syntax_error_pays_only_step_penalties(seen: dict[str, Any]) -> None:
    script = seen["script"]
    assert script["tools"] == ["write_file", "compile", "submit"]
    assert script["step_rewards"] == pytest.approx([-0.01, -0.01, -0.01])
    assert script["details"]["task_completed"] is False


@pytest.mark.parametrize("kind", ["rollout", "script"])
def test_every_number_of_a_return_agrees(seen: dict[str, Any], kind: str) -> None:
    rollout = seen[kind]
    total = pytest.approx(sum(rollout["step_rewards"]), abs=1e-9)
    assert rollout["episode_returns"] == [total]
    assert rollout["mean_return"] == total
    assert rollout["outcome_score"] == total
    assert rollout["final_reward"] == total
    assert rollout["details"]["total_reward"] == total
    assert rollout["length"] == rollout["num_steps"] == len(rollout["step_rewards"])
    assert rollout["num_episodes"] == 1


def test_a_session_needs_nothing_but_the_environment(seen: dict[str, Any]) -> None:
    session = seen["session"]
    assert session["roles"] == ["system", "user"]
    assert session["tools"] == ["compile", "simulate", "submit", "write_file"]
    assert {"files", "compile_status", "simulate_status", "reward_last"} <= set(session["observation_keys"])
    assert session["rewards"][1] == pytest.approx(-0.01)
    assert session["truncated"] is False


def test_refusals_say_what_was_wrong(seen: dict[str, Any]) -> None:
    refusals = seen["refusals"]
    assert refusals["wrong_key"]["status"] == 401
    assert refusals["wrong_type"]["status"] == 422
    assert [error["field"] for error in refusals["wrong_type"]["errors"]] == ["policy.config.temperature"]
    assert refusals["unknown_session"]["status"] == 404
    assert refusals["unknown_session"]["code"] == "session_not_found"


def test_the_peer_s_validator_is_content(seen: dict[str, Any]) -> None:
    validator = seen["validator"]
    assert validator["endpoints"] == dict.fromkeys(("root", "health", "info", "task_info", "rollout"), True)
    assert validator["auth"] == {"provided": True, "accepted": True}
    assert validator["instances"]["count"] == 15
