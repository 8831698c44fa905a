"""``rollout``: one episode from the shell."""

import json
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Cli, Start


@pytest.fixture
def model(start: Start) -> Iterator[str]:
    """A scripted model in a process of its own; yields its URL."""
    server = start("--mode", "demo", module="verilog_taskapp.scripted")
    yield server.line("listening on").split()[-1]
    server.process.terminate()


def test_an_episode_is_told_step_by_step(cli: Cli, model: str) -> None:
    outcome = cli("rollout", "--problem", "vt001_min_max", "--inference-url", model, "--model", "scripted")
    assert outcome.status == 0
    told = [line.split()[1] for line in outcome.stdout.splitlines() if line[:1].isdigit()]
    assert told == ["write_file", "compile", "simulate", "submit"]
    assert "vt001_min_max: solved; return 11.06 in 4 steps" in outcome.stdout
    assert f"note: the model was scripted at {model}/v1/chat/completions" in outcome.stderr


def test_the_whole_response_as_json(cli: Cli, model: str) -> None:
    given = ("--seed", "3", "--split", "all", "--inference-url", model, "--model", "scripted:wrong")
    outcome = cli("rollout", *given, "--json")
    assert outcome.status == 0
    response = json.loads(outcome.stdout)
    assert response["metrics"]["details"]["task_completed"] is False
    assert response["metrics"]["details"]["problem"] == "vt004_popcount_threshold"
    assert response["metrics"]["mean_return"] == pytest.approx(0.06)


def test_steps_and_heuristics_are_passed_on(cli: Cli, model: str) -> None:
    given = ("--problem", "vt001_min_max", "--inference-url", model, "--model", "scripted:compile_loop", "--json")
    bare = json.loads(cli("rollout", *given, "--heuristics", "off", "--max-steps", "4").stdout)
    assert bare["metrics"]["details"]["stop_reason"] == "max_steps"
    assert bare["metrics"]["num_steps"] == 4
    assert bare["metrics"]["details"]["blocks"] == 0
    assert json.loads(cli("rollout", *given).stdout)["metrics"]["details"]["blocks"] == 2


def test_a_truncated_episode_is_told(cli: Cli, model: str) -> None:
    given = ("--problem", "vt001_min_max", "--inference-url", model, "--model", "scripted", "--max-steps", "2")
    assert "not solved, truncated: max_steps" in cli("rollout", *given).stdout


def test_no_key_for_the_model_is_wrong_usage(cli: Cli) -> None:
    outcome = cli("rollout", "--json")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "GROQ_API_KEY" in outcome.stderr


def test_no_model_server_is_no_answer(cli: Cli) -> None:
    outcome = cli("rollout", "--json", "--inference-url", "http://127.0.0.1:9")
    assert (outcome.status, outcome.stdout) == (3, "")
    assert outcome.stderr.startswith("error: 127.0.0.1:9 failed")


def test_an_unknown_problem(cli: Cli) -> None:
    outcome = cli("rollout", "--problem", "nope", "--inference-url", "http://127.0.0.1:9")
    assert outcome.status == 2
    assert "no problem 'nope'" in outcome.stderr


def test_a_rubric_that_cannot_be_used(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_OUTCOME_RUBRIC", "nowhere.json")
    outcome = cli("rollout", "--inference-url", "http://127.0.0.1:9")
    assert outcome.status == 2
    assert "nowhere.json" in outcome.stderr


def test_a_running_service_does_the_same(cli: Cli, start: Start, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVIRONMENT_API_KEY", "the-key-of-the-service")
    server = start("serve", "--port", "0")
    url = server.line("starting on").split()[-1]
    given = ("--problem", "vt001_min_max", "--inference-url", model, "--model", "scripted")
    outcome = cli("rollout", *given, "--server", url)
    assert (outcome.status, outcome.stdout) == (0, cli("rollout", *given).stdout)
    assert (cli("rollout", "--problem", "nothing", "--server", url)).status == 2
    monkeypatch.setenv("ENVIRONMENT_API_KEY", "another")
    refused = cli("rollout", *given, "--server", url)
    assert (refused.status, refused.stdout) == (2, "")
    assert cli("rollout", "--server", url, "--dataset", "bundled").status == 2
    assert cli("rollout", "--server", "nowhere").status == 2
