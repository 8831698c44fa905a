"""``demo``: whole episodes over HTTP, without a key and without a network."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Start
from tests.conftest import left_in
from verilog_taskapp.cli.demo import Played
from verilog_taskapp.scripted import EPISODE_NAMES


def test_every_kind_of_episode_comes_out_as_it_must(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    # none of these may send the demonstration elsewhere, or change what it shows
    for name, value in {
        "VERILOG_DATASET": "dir:nowhere",
        "VERILOG_INFERENCE_HOSTS": "api.groq.com",
        "VERILOG_MAX_INSTANCES": "1",
        "VERILOG_MAX_STEPS": "1",
        "VERILOG_REWARD_SUBMIT_PASS": "1",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    outcome = cli("demo", "--rollouts", "12", "--out", "shown")
    assert (outcome.status, outcome.stderr) == (0, "")
    assert "12 of 12 episodes came out as they must" in outcome.stdout
    assert "scripted: it is no language model" in outcome.stdout
    assert "curl -s" in outcome.stdout
    assert all(f" {episode} " in outcome.stdout for episode in EPISODE_NAMES)
    files = sorted(Path("shown").iterdir())
    assert len(files) == 12
    assert files[0].name == "01-vt001_min_max.json"
    returns = [json.loads(path.read_text())["metrics"]["mean_return"] for path in files]
    assert [total > 10 for total in returns] == [episode != "wrong_submitted" for episode in (EPISODE_NAMES * 2)[:12]]


def test_an_interrupted_demonstration_leaves_nothing(start: Start, tmp_path: Path) -> None:
    demo = start("demo", "--rollouts", "500", env={"VERILOG_LOG_LEVEL": "info"})
    while not any((tmp_path / "scratch").glob("verilog-taskapp-*/*/slot-*/job")):
        assert demo.process.poll() is None
        time.sleep(0.005)
    outcome = demo.stop(signal.SIGINT)
    assert (outcome.status, outcome.stdout, outcome.stderr) == (130, "", "")
    assert left_in(tmp_path / "scratch") == []
    assert list(Path("demo-rollouts").iterdir()) == []


def test_a_folder_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = cli("demo", "--out", str(tmp_path / "file" / "below"))
    assert (outcome.status, outcome.stdout) == (1, "")
    assert "Not a directory" in outcome.stderr


def test_no_simulator(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_IVERILOG", "/nowhere/iverilog")
    outcome = cli("demo")
    assert (outcome.status, outcome.stdout) == (3, "")
    assert "install it" in outcome.stderr


@pytest.mark.parametrize(
    ("episode", "status", "total", "right"),
    [
        ("solve", 200, 11.06, True),
        ("solve", 200, 0.06, False),
        ("wrong_submitted", 200, 0.06, True),
        ("wrong_submitted", 200, 11.06, False),
        ("wrong_submitted", 502, 0.0, False),
    ],
)
def test_what_an_episode_must_do(episode: str, status: int, total: float, right: bool) -> None:
    assert Played("p", episode, {"metrics": {"mean_return": total}}, status, 1.0).as_it_must is right
