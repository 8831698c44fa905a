"""``check``: the self-check of every problem."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.judge import Judge, Prepared


def test_every_problem_is_classified(cli: Cli, source: str) -> None:
    outcome = cli("check", "--json")
    assert (outcome.status, outcome.stderr) == (0, "")
    found = json.loads(outcome.stdout)
    assert (found["usable"], found["golden"]) == (3, 2)
    assert [one["id"] for one in found["unusable"]] == ["broken"]
    assert found["unusable"][0]["reason"]
    assert [one["id"] for one in found["classic"]] == ["closed_loop"]
    assert "open-loop" in found["classic"][0]["reason"]
    assert [one["id"] for one in found["skipped"]] == ["torn"]
    assert found["failed"] == []
    assert found["errata"] == []
    assert found["simulator"].split(".")[0].isdigit()


def test_the_report_for_people(cli: Cli, source: str) -> None:
    outcome = cli("check", "--jobs", "1")
    assert outcome.status == 0
    assert "3 of 4 problems are usable with Icarus" in outcome.stdout
    assert "(2 judged by golden trace, 1 the classic way)" in outcome.stdout
    for name in ("broken", "closed_loop", "torn"):
        assert f"\n{name} " in outcome.stdout


def test_a_fault_of_ours_is_told_apart(cli: Cli, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = Judge.prepare

    async def failing(self: Judge, bench: Bench) -> Prepared:
        if "enable" in bench.reference:
            raise EnvironmentFailed("the disk is full")
        return await prepare(self, bench)

    monkeypatch.setattr(Judge, "prepare", failing)
    outcome = cli("check", "--json")
    assert outcome.status == 3
    assert outcome.stderr == "error: 1 problems could not be checked: the disk is full\n"
    found = json.loads(outcome.stdout)
    assert found["failed"] == [{"id": "counter", "reason": "the disk is full"}]
    assert found["usable"] == 2


def test_nothing_is_left_behind(cli: Cli, source: str, tmp_path: Path) -> None:
    cli("check", "--json")
    assert [path for path in (tmp_path / "scratch").rglob("*") if path.parent != tmp_path / "scratch"] == []


def test_no_simulator(cli: Cli, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_IVERILOG", "/nowhere/iverilog")
    outcome = cli("check", "--json")
    assert (outcome.status, outcome.stdout) == (3, "")
    assert "install it" in outcome.stderr
