"""``python -m benchmarks`` as a process: the figures, the exit status, and that nothing stays behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import MEASURED, SURVEYS
from tests.conftest import until
from tests.support import processes_in

ROOT = Path(__file__).parents[2]


def arguments(*words: str, scratch: Path, cache: Path) -> list[str]:
    """A command line."""
    places = ["--scratch-dir", str(scratch), "--cache-dir", str(cache)]
    return [sys.executable, "-m", "benchmarks", *words, "--quick", *places]


def measured(name: str, tmp_path: Path, cache: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The report of a quick run, and its figures by name."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = (name, "--repeats", "2", "--json", str(tmp_path / "found.json"))
    ended = subprocess.run(
        arguments(*words, scratch=scratch, cache=cache), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert list(scratch.iterdir()) == []
    assert processes_in(scratch) == {}
    (report,) = json.loads((tmp_path / "found.json").read_text())["reports"]
    assert report["benchmark"] == name
    figures = {one["name"]: one for one in report["figures"]}
    for one in figures:
        assert one in ended.stdout
    return report, figures


@pytest.mark.slow
def test_rollouts(tmp_path: Path, golden_cache: Path) -> None:
    report, figures = measured("rollouts", tmp_path, golden_cache)
    assert len(figures) == 3 * 2 * 2  # caches, numbers in flight
    for one in figures.values():
        assert len(one["repeats"]) == 2
        assert one["min"] > 0
    assert len(report["table"]) == 4
    for run in report["details"]["runs"]:
        assert run["cpu_ratio"] == pytest.approx(run["floor_ms"] / (run["server_ms"] + run["children_ms"]))
        assert 0 < run["launchers_ms"] < run["children_ms"]
        assert len(run["latencies_ms"]) == 8


@pytest.mark.slow
def test_verdict(tmp_path: Path, golden_cache: Path) -> None:
    report, figures = measured("verdict", tmp_path, golden_cache)
    assert figures["CPU, verdict / bare tools, sandbox required: sum"]["target"] == 0.6
    assert figures["CPU, verdict / bare tools, sandbox required: median"]["target"] == 1.1
    assert figures["CPU, verdict / bare tools, sandbox limits: sum"]["target"] is None
    assert all(one["min"] > 0 for one in figures.values())
    assert len(report["details"]["required"]) == 3
    for pair in report["details"]["required"]:
        assert all(tools < ours for tools, ours in zip(pair["tools"], pair["ours"], strict=True))


@pytest.mark.slow
def test_group(tmp_path: Path, golden_cache: Path) -> None:
    report, figures = measured("group", tmp_path, golden_cache)
    assert figures["CPU, floor / service"]["target"] == 1.3
    assert figures["CPU, floor / service"]["min"] > 0
    assert report["facts"]["groups"] == "2 of 16"
    assert report["facts"]["different designs"] == "22"


@pytest.mark.slow
def test_soak(tmp_path: Path, golden_cache: Path) -> None:
    report, figures = measured("soak", tmp_path, golden_cache)
    assert report["facts"]["statuses"] == "200: 40"
    assert figures["rollouts that failed"]["median"] == figures["rollouts that did not pass"]["median"] == 0
    assert figures["server's file descriptors, peak"]["median"] >= figures["before the load"]["median"] + 40
    assert 20 < figures["server RSS, peak"]["median"] < 2000
    assert figures["slowest rollout"]["median"] >= figures["the model's part of a rollout"]["median"]


@pytest.mark.slow
def test_health(tmp_path: Path, golden_cache: Path) -> None:
    report, figures = measured("health", tmp_path, golden_cache)
    for what in ("/health under load", "/health idle"):
        p50, p99, most = (figures[f"{what}: {name}"]["median"] for name in ("p50", "p99", "max"))
        assert 0 < p50 <= p99 <= most
    assert figures["/health under load: p99"]["target"] == 25
    assert figures["start to ready, bundled set"]["min"] > 0
    assert 20 < figures["idle RSS, bundled set"]["median"] < 2000
    assert int(report["facts"]["probes"]) == sum(map(len, report["details"]["busy_s"]))


@pytest.mark.parametrize("name", MEASURED)
def test_a_set_that_cannot_be_read_is_a_failure(name: str, tmp_path: Path) -> None:
    words = (name, "--dataset", f"dir:{tmp_path}/none")
    ended = subprocess.run(
        arguments(*words, scratch=tmp_path, cache=tmp_path / "cache"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_run_leaves_nothing(number: signal.Signals, tmp_path: Path, golden_cache: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    argv = arguments("rollouts", "--repeats", "1000", scratch=scratch, cache=golden_cache)
    process = await asyncio.create_subprocess_exec(*argv, cwd=ROOT, stderr=asyncio.subprocess.PIPE)
    await until(lambda: any("vvp -n" in command for command in processes_in(scratch).values()))
    assert len(list(scratch.iterdir())) == 1
    os.kill(process.pid, number)
    async with asyncio.timeout(60):
        _, said = await process.communicate()
    assert process.returncode == 130, said.decode()
    assert b"Traceback" not in said
    assert processes_in(scratch) == {}
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("name", SURVEYS)
def test_the_surveys_are_found_as_well(name: str) -> None:
    argv = [sys.executable, "-m", "benchmarks", name, "--help"]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(f"usage: {name}")
