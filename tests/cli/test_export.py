"""``verilog-taskapp export``."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.tracing.synthetic import fill
from verilog_taskapp.tracing.database import TraceDatabase
from verilog_taskapp.tracing.location import TraceLocation


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database of 40 rollouts in two runs, which the settings mean."""
    path = tmp_path / "traces.db"

    async def make() -> None:
        database = TraceDatabase(TraceLocation(file=path))
        await database.open()
        await fill(database, 40, runs=2, steps=1)
        await database.close()

    asyncio.run(make())
    monkeypatch.setenv("VERILOG_TRACE_DB_URL", f"sqlite:///{path}")
    return path


@pytest.mark.parametrize(
    ("name", "kind"), [("out.jsonl", "jsonl"), ("out.parquet", "parquet"), ("out", "datasets"), ("o.x", None)]
)
def test_the_ending_says_what_is_written(cli: Cli, traces: Path, name: str, kind: str | None) -> None:
    outcome = cli("export", name, "--json")
    if kind is None:
        assert (outcome.status, Path(name).exists()) == (2, False)
        assert "--format is needed" in outcome.stderr
        return
    assert json.loads(outcome.stdout) == {
        "output": name,
        "format": kind,
        "examples": 40,
        "duplicates": 0,
        "without": 0,
    }
    assert Path(name).is_dir() is (kind == "datasets")


def test_filters_narrow_it_down(cli: Cli, traces: Path) -> None:
    def exported(*options: str) -> list[dict[str, object]]:
        cli("export", "x", "--format", "jsonl", *options)
        return [json.loads(line) for line in Path("x").read_text().splitlines()]

    everything = exported()
    passed = exported("--run", "run-001", "--passed")
    assert passed == [one for one in everything if one["run_id"] == "run-001" and one.get("passed")]
    assert exported("--failed") == [one for one in everything if one.get("passed") is False]
    assert exported("--min-return", "11") == [one for one in everything if one.get("episode_return", 0) >= 11]  # type: ignore[operator]
    assert exported("--split", "val", "--limit", "2") == [one for one in everything if one["split"] == "val"][:2]
    assert exported("--problem", "Prob001", "--model", "qwen/qwen3-32b") == [
        one for one in everything if one["problem_id"] == "Prob001"
    ]


def test_nothing_to_write_is_status_1(cli: Cli, traces: Path) -> None:
    outcome = cli("export", "out.jsonl", "--run", "no such")
    assert (outcome.status, outcome.stdout) == (1, "0 examples written to out.jsonl\n")


def test_without_a_database_there_is_no_answer(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_TRACE_DB_URL", "nowhere.db")
    assert cli("export", "out").status == 3
    assert not Path("nowhere.db").exists()
    monkeypatch.setenv("VERILOG_TRACE_DB_URL", "mysql://me:secret@x/y")
    outcome = cli("export", "out")
    assert outcome.status == 2
    assert "secret" not in outcome.stderr


def test_a_directory_of_something_else_is_not_replaced(cli: Cli, traces: Path) -> None:
    Path("home").mkdir()
    Path("home/precious").touch()
    outcome = cli("export", "home")
    assert outcome.status == 3
    assert "holds something else" in outcome.stderr
    assert Path("home/precious").exists()
