"""Exports: every format loads where it is meant to, with the same rows, and a failed one leaves what was there."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import datasets
import pytest

from tests.tracing.synthetic import GROUP, fill, synthetic_records
from tests.tracing.test_sft import NATIVE, trace_of
from verilog_taskapp.tracing import export as module
from verilog_taskapp.tracing.database import TraceDatabase
from verilog_taskapp.tracing.export import ExportFormat, export
from verilog_taskapp.tracing.lists import TraceFilter
from verilog_taskapp.tracing.location import TraceLocation
from verilog_taskapp.tracing.queries import TraceQueries
from verilog_taskapp.tracing.record import new_trace_id
from verilog_taskapp.tracing.rows import parcel

NUMBER = 130
EVERYTHING = TraceFilter()
FORMATS: tuple[ExportFormat, ...] = ("jsonl", "parquet", "datasets")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[TraceDatabase]:
    database = TraceDatabase(TraceLocation(file=tmp_path / "traces.db"))
    await database.open()
    await fill(database, NUMBER, runs=2)
    yield database
    await database.close()


@pytest.fixture
def queries(database: TraceDatabase) -> TraceQueries:
    return TraceQueries(database.readers)


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr(module, "SHARD_ROWS", 60)


def loaded(path: Path, kind: ExportFormat, cache: Path) -> Any:
    """What `datasets` reads."""
    if kind == "datasets":
        return datasets.load_from_disk(str(path))
    builder = "json" if kind == "jsonl" else "parquet"
    return datasets.load_dataset(builder, data_files=str(path), split="train", cache_dir=str(cache))


@pytest.mark.parametrize("kind", FORMATS)
async def test_datasets_reads_every_format(queries: TraceQueries, tmp_path: Path, kind: ExportFormat) -> None:
    told: list[int] = []
    exported = await export(queries, EVERYTHING, tmp_path / "out", kind, progress=told.append)
    assert exported.examples == NUMBER == told[-1]
    rows = loaded(tmp_path / "out", kind, tmp_path / "cache")
    records = list(synthetic_records(NUMBER, runs=2))
    assert len(rows) == NUMBER
    assert rows["episode_return"] == [one.facts.episode_return for one in records]
    assert rows["passed"] == [one.facts.passed for one in records]
    assert [message["role"] for message in rows[5]["messages"]] == ["system", *["user", "assistant"] * 3]
    assert "NativeAdapter" not in str(rows.features["messages"])
    with_roles = rows.map(lambda row: {"text": "".join(one["role"] for one in row["messages"])})
    assert with_roles[0]["text"].endswith("assistant")


@pytest.mark.parametrize("kind", FORMATS)
async def test_native_tool_calls_are_kept_beside_conversations_without(
    database: TraceDatabase, queries: TraceQueries, tmp_path: Path, kind: ExportFormat
) -> None:
    await database.write([parcel(trace_of(NATIVE, id=new_trace_id()))])
    await export(queries, EVERYTHING, tmp_path / "out", kind)
    rows = loaded(tmp_path / "out", kind, tmp_path / "cache")
    (row,) = [one for one in rows if one["tools"]]
    (call,) = row["messages"][2]["tool_calls"]
    assert call["function"] == {"name": "compile", "arguments": '{"a":1}'}
    assert row["messages"][3]["tool_call_id"] == "c1"
    assert json.loads(row["tools"])[0]["function"]["name"] == "compile"
    assert rows[0]["messages"][0].get("tool_calls") is None


async def test_filters_and_the_limit_hold(queries: TraceQueries, tmp_path: Path) -> None:
    records = [one.facts for one in synthetic_records(NUMBER, runs=2)]
    which = TraceFilter(run_id="run-001", passed=True, min_return=11.0)
    expected = [one.id for one in records if one.run_id == "run-001" and one.passed]
    path = tmp_path / "out.jsonl"
    assert (await export(queries, which, path, "jsonl")).examples == len(expected)
    assert [json.loads(line)["trace_id"] for line in path.read_text().splitlines()] == expected
    assert (await export(queries, which, path, "jsonl", limit=3)).examples == 3
    assert [json.loads(line)["trace_id"] for line in path.read_text().splitlines()] == expected[:3]


async def test_equal_conversations_are_left_out_on_request(
    database: TraceDatabase, queries: TraceQueries, tmp_path: Path
) -> None:
    same = [parcel(trace_of(NATIVE, id=new_trace_id(), run_id="same")) for _ in range(GROUP)]
    await database.write(same)
    which = TraceFilter(run_id="same")
    exported = await export(queries, which, tmp_path / "out", "parquet", dedupe=True)
    assert (exported.examples, exported.duplicates) == (1, GROUP - 1)
    assert (await export(queries, which, tmp_path / "out", "parquet")).examples == GROUP


async def test_traces_without_a_models_words_are_counted(
    database: TraceDatabase, queries: TraceQueries, tmp_path: Path
) -> None:
    await database.write([parcel(trace_of(NATIVE[:2], id=new_trace_id(), run_id="script"))])
    exported = await export(queries, TraceFilter(run_id="script"), tmp_path / "out", "datasets")
    assert (exported.examples, exported.without) == (0, 1)
    assert len(loaded(tmp_path / "out", "datasets", tmp_path)) == 0


@pytest.mark.parametrize("kind", FORMATS)
async def test_what_was_there_is_replaced_at_the_end_or_not_at_all(
    queries: TraceQueries, tmp_path: Path, kind: ExportFormat
) -> None:
    path = tmp_path / "place" / "out"
    await export(queries, EVERYTHING, path, kind, limit=7)

    def stop(_: int) -> None:
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        await export(queries, EVERYTHING, path, kind, progress=stop)
    assert len(loaded(path, kind, tmp_path / "one")) == 7
    assert [one.name for one in path.parent.iterdir()] == ["out"]
    await export(queries, EVERYTHING, path, kind)
    assert len(loaded(path, kind, tmp_path / "two")) == NUMBER
    assert [one.name for one in path.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_directory_that_holds_something_else_is_left_alone(
    queries: TraceQueries, tmp_path: Path, kind: ExportFormat
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "precious").write_text("")
    with pytest.raises(FileExistsError):
        await export(queries, EVERYTHING, tmp_path / "home", kind)
    assert [one.name for one in (tmp_path / "home").iterdir()] == ["precious"]
