"""``eval``, ``regrade`` and ``compare`` as people run them: in processes that are stopped, killed and started again."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Outcome, Start, Started
from tests.cli.test_serve import url_from
from tests.conftest import DEADLINE_S, left_in
from tests.support import KEY, processes_in

SAMPLES = ("--n", "2", "--k", "1,2", "--concurrency", "2")
SLOW = "scripted:mode=mixed,latency_ms=60"


@pytest.fixture
def model(start: Start) -> Iterator[str]:
    """A scripted model in a process of its own; yields its URL."""
    server = start("--mode", "mixed", module="verilog_taskapp.scripted")
    yield server.line("listening on").split()[-1]
    server.process.terminate()


def lines_in(folder: str) -> list[bytes]:
    path = Path(folder) / "results.jsonl"
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def wait_for(condition: Callable[[], bool], of: Started) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert of.process.poll() is None, of.end()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_killed_evaluation_goes_on_and_ends_as_if_nothing_had_happened(
    cli: Cli, start: Start, model: str, tmp_path: Path
) -> None:
    asked = ("eval", "--model", SLOW, "--inference-url", model, *SAMPLES)
    whole = cli(*asked, "--out", "whole")
    assert whole.status == 0, whole.stderr
    killed = start(*asked, "--out", "killed")
    wait_for(lambda: len(lines_in("killed")) >= 10, killed)
    killed.stop(signal.SIGKILL)
    before = [line for line in lines_in("killed") if line.endswith(b"\n")]  # the last one may be torn
    assert 10 <= len(before) < 60
    refused = cli(*asked, "--out", "killed")
    assert refused.status == 2
    assert "add --resume" in refused.stderr
    resumed = cli(*asked, "--out", "killed", "--resume")
    assert resumed.status == 0, resumed.stderr
    assert f"{len(before)} of 60 samples are there already" in resumed.stderr
    after = lines_in("killed")
    assert len(after) == 60
    assert after[: len(before)] == before
    for name in ("summary.json", "summary.csv", "report.html"):
        assert Path("killed", name).read_bytes() == Path("whole", name).read_bytes()
    assert resumed.stdout == whole.stdout
    compared = cli("compare", "whole", "killed", "--json")
    assert compared.status == 0
    found = json.loads(compared.stdout)
    assert (found["pairs"], found["difference"], found["changed"]) == (60, 0.0, [])


def check_partial(outcome: Outcome, scratch: Path, status: int) -> None:
    """What a run that was stopped leaves: whole lines, a summary of them, and nothing else."""
    lines = lines_in("out")
    assert outcome.status == status
    assert 3 <= len(lines) < 60
    assert all(line.endswith(b"\n") and json.loads(line)["status"] == "done" for line in lines)
    summary = json.loads(Path("out", "summary.json").read_text())
    assert (summary["models"][0]["scored"], summary["complete"]) == (len(lines), False)
    assert "samples are still missing" in Path("out", "report.html").read_text()
    assert left_in(scratch) == []
    assert not processes_in(scratch)


def test_the_first_interrupt_finishes_what_runs(start: Start, model: str, tmp_path: Path) -> None:
    running = start("eval", "--model", SLOW, "--inference-url", model, *SAMPLES, "--out", "out")
    wait_for(lambda: len(lines_in("out")) >= 3, running)
    outcome = running.stop(signal.SIGINT)
    assert "finishing the samples in flight" in outcome.stderr
    assert "--resume goes on" in outcome.stderr
    assert "Traceback" not in outcome.stderr
    check_partial(outcome, tmp_path / "scratch", 130)


@pytest.mark.parametrize(("numbers", "status"), [((signal.SIGINT, signal.SIGINT), 130), ((signal.SIGTERM,), 143)])
def test_the_second_interrupt_stops_at_once(
    start: Start, model: str, tmp_path: Path, numbers: tuple[signal.Signals, ...], status: int
) -> None:
    Path("run.toml").write_text(
        f'[policy]\ninference_url = "{model}"\nmodels = ["{SLOW}", {{name = "scripted:hang", label = "hangs"}}]\n'
        '[eval]\nn = 1\nproblems = ["vt001_min_max", "vt002_gray_codec", "vt003_seven_segment"]\n'
    )
    running = start("eval", "run.toml", "--out", "out")
    wait_for(lambda: len(lines_in("out")) == 3, running)
    for number in numbers[:-1]:
        running.process.send_signal(number)
        running.line("finishing the samples in flight")
    outcome = running.stop(numbers[-1])
    assert "Traceback" not in outcome.stderr
    check_partial(outcome, tmp_path / "scratch", status)


def test_a_server_process_gives_the_same_results_as_this_one(
    cli: Cli, start: Start, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVIRONMENT_API_KEY", KEY)
    server = start("serve", "--port", "0")
    url = url_from(server)
    asked = ("eval", "--model", "scripted", "--inference-url", model, *SAMPLES)
    here, there = cli(*asked, "--out", "here"), cli(*asked, "--server", url, "--out", "there")
    assert (here.status, there.status) == (0, 0), there.stderr
    assert here.stdout == there.stdout
    assert Path("here", "summary.json").read_bytes() == Path("there", "summary.json").read_bytes()
    monkeypatch.setenv("ENVIRONMENT_API_KEY", "another-key-0123456789")
    refused = cli(*asked, "--server", url, "--out", "refused")
    assert refused.status == 2
    assert not Path("refused").exists()


def test_both_judges_a_second_grading_and_a_comparison(cli: Cli, model: str) -> None:
    few = ("--problem", "vt001_min_max", "--problem", "vt002_gray_codec", "--n", "2", "--inference-url", model)
    both = cli("eval", "--model", "scripted:correct", *few, "--judge", "both", "--out", "a")
    assert both.status == 0, both.stderr
    assert "golden and classic agree on 4 of 4 designs" in both.stdout
    assert cli("eval", "--model", "scripted:wrong", *few, "--out", "b").status == 0
    again = cli("regrade", "a", "--judge", "classic")
    assert again.status == 0, again.stderr
    [target] = Path("a").glob("regrade-classic-icarus*")
    assert json.loads((target / "summary.json").read_text())["models"][0]["passed"] == 4
    compared = cli("compare", "a", "b")
    assert "B - A  -100.0% [-100.0%, -100.0%] over 2 problems" in compared.stdout
    assert "0 problems better, 2 worse" in compared.stdout


def test_a_piped_run_shows_plain_lines(cli: Cli, model: str) -> None:
    outcome = cli("eval", "--model", "scripted", "--inference-url", model, "--problem", "vt001_min_max", "--out", "o")
    assert "eval: scripted: 1/1" in outcome.stderr
    assert "\x1b" not in outcome.stderr + outcome.stdout


def test_errors_are_told_apart_and_change_the_status(cli: Cli, model: str) -> None:
    broken = "scripted:http500"
    asked = ("eval", "--model", broken, "--inference-url", model, "--problem", "vt001_min_max", "--retries", "0")
    outcome = cli(*asked, "--out", "o")
    assert outcome.status == 3
    assert "errors, in no rate: 1 inference_failed" in outcome.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("eval",), "no model: add --model NAME"),
        (("eval", "--model", "m", "--k", "1;2"), "write numbers with commas"),
        (("eval", "--model", "m", "--n", "2", "--k", "5"), "pass@5 needs at least 5 samples"),
        (("eval", "nowhere.toml"), "nowhere.toml: No such file"),
        (("eval", "--model", "m", "--problem", "vt001_minmax"), "vt001_min_max"),
        (("eval", "--model", "m", "--server", "http://127.0.0.1:9"), "127.0.0.1:9"),
        (("eval", "--model", "m", "--server", "127.0.0.1:9"), "must begin with http:// or https://"),
        (("regrade", "."), "not the directory of an evaluation"),
        (("compare", ".", "."), "not the directory of an evaluation"),
    ],
)
def test_wrong_usage_says_what_to_do(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    outcome = cli(*arguments)
    assert outcome.status in (2, 3)
    assert told in outcome.stderr
    assert len(outcome.stderr.strip().splitlines()) == 1


def test_a_key_is_taken_from_the_variable_that_is_named(cli: Cli, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("eval", "--model", "scripted", "--inference-url", model, "--problem", "vt001_min_max")
    missing = cli(*asked, "--api-key-env", "MY_MODEL_KEY", "--out", "o")
    assert missing.status == 2
    assert "MY_MODEL_KEY" in missing.stderr
    monkeypatch.setenv("MY_MODEL_KEY", "key-of-the-model-0123")
    assert cli(*asked, "--api-key-env", "MY_MODEL_KEY", "--out", "o", "--resume").status == 0
    assert not [path for path in Path("o").iterdir() if "key-of-the-model" in path.read_text()]
