"""Stored conversations as fine-tuning examples in a file or a directory: streamed, and there whole or not at all."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from verilog_taskapp.tracing.lists import TraceFilter
from verilog_taskapp.tracing.queries import TraceQueries
from verilog_taskapp.tracing.sft import example_of, fingerprint

ExportFormat = Literal["jsonl", "parquet", "datasets"]
ROWS_AT_ONCE = 500
"""Examples in memory."""
SHARD_ROWS = 50_000
"""Examples in one file of a `datasets` directory."""


class Sink(Protocol):
    """Where examples go."""

    def write(self, examples: list[dict[str, Any]]) -> None:
        """Add some."""

    def close(self) -> None:
        """Nothing more comes."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    examples: int
    duplicates: int
    """Conversations left out because an equal one was there already."""
    without: int
    """Traces left out because no model talks in them."""


async def examples_in(
    queries: TraceQueries, which: TraceFilter, *, dedupe: bool, limit: int | None, counts: dict[str, int]
) -> AsyncIterator[dict[str, Any]]:
    """The examples in the traces that are meant, the oldest first; `counts` gets what was left out."""
    seen: set[str] = set()
    left = limit
    if left == 0:
        return
    async for trace in queries.whole(which):
        example = example_of(trace.facts, trace.document)
        if example is None:
            counts["without"] = counts.get("without", 0) + 1
            continue
        if dedupe:
            mark = fingerprint(example)
            if mark in seen:
                counts["duplicates"] = counts.get("duplicates", 0) + 1
                continue
            seen.add(mark)
        yield example
        if left is not None:
            left -= 1
            if left == 0:
                return


async def export(
    queries: TraceQueries,
    which: TraceFilter,
    path: Path,
    kind: ExportFormat,
    *,
    dedupe: bool = False,
    limit: int | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> Exported:
    """Write the examples to `path`, which is replaced. `progress` is told how many there are so far.

    Raises OSError, and what `TraceQueries` raises; `path` is then as it was.
    """
    counts: dict[str, int] = {}
    written = 0
    with _replaced(path, directory=kind == "datasets") as part:
        sink = _SINKS[kind](part)
        rows: list[dict[str, Any]] = []
        try:
            async for example in examples_in(queries, which, dedupe=dedupe, limit=limit, counts=counts):
                rows.append(example)
                if len(rows) >= ROWS_AT_ONCE:
                    sink.write(rows)
                    written += len(rows)
                    rows = []
                    progress(written)
            if rows:
                sink.write(rows)
        finally:
            sink.close()
        written += len(rows)
        progress(written)
    return Exported(written, counts.get("duplicates", 0), counts.get("without", 0))


@contextmanager
def _replaced(path: Path, *, directory: bool) -> Iterator[Path]:
    """A place beside `path` that takes its place in the end."""
    if path.is_dir() and not (directory and _is_ours(path)):
        raise FileExistsError(errno.EEXIST, "a directory is there that holds something else", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name[:80]}.") as folder:
        part = Path(folder) / "part"
        if directory:
            part.mkdir()
        yield part
        old = Path(folder) / "old"
        if path.is_dir() and not path.is_symlink():
            path.rename(old)  # a directory is not replaced by renaming unless it is empty
        part.replace(path)
        if old.exists():
            shutil.rmtree(old)


def _is_ours(path: Path) -> bool:
    """Whether nothing is lost but an earlier data set."""
    names = {one.name for one in path.iterdir()}
    return not names or {"state.json", "dataset_info.json"} <= names


class _JsonLines:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, examples: list[dict[str, Any]]) -> None:
        for example in examples:
            kept = {key: value for key, value in example.items() if value is not None}
            self._file.write(json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


class _Parquet:
    def __init__(self, path: Path) -> None:
        import pyarrow.parquet

        self._schema = arrow_schema()
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, examples: list[dict[str, Any]]) -> None:
        import pyarrow

        self._writer.write_table(pyarrow.Table.from_pylist(examples, self._schema))

    def close(self) -> None:
        self._writer.close()


class _DatasetDirectory:
    """What `datasets.load_from_disk` reads: Arrow streams, and two JSON files that describe them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._schema = arrow_schema()
        self._shards: list[str] = []
        self._writer: Any = None
        self._rows = 0

    def write(self, examples: list[dict[str, Any]]) -> None:
        import pyarrow

        left = iter(examples)
        while batch := list(islice(left, SHARD_ROWS - self._rows % SHARD_ROWS)):
            if self._rows % SHARD_ROWS == 0:
                self._next_shard()
            self._writer.write_table(pyarrow.Table.from_pylist(batch, self._schema))
            self._rows += len(batch)

    def _next_shard(self) -> None:
        import pyarrow

        self._finish_shard()
        name = f"data-{len(self._shards):05d}.arrow"
        self._shards.append(name)
        self._writer = pyarrow.ipc.new_stream(str(self._path / name), self._schema)

    def _finish_shard(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def close(self) -> None:
        import hashlib

        from datasets import DatasetInfo, Features

        if not self._shards:
            self._next_shard()
        self._finish_shard()
        DatasetInfo(features=Features.from_arrow_schema(self._schema)).write_to_directory(str(self._path))
        state: dict[str, Any] = {
            "_data_files": [{"filename": name} for name in self._shards],
            "_fingerprint": hashlib.sha256("".join(self._shards).encode() + os.urandom(16)).hexdigest()[:16],
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": None,
        }
        (self._path / "state.json").write_text(json.dumps(state, indent=2))


_SINKS: dict[ExportFormat, Callable[[Path], Sink]] = {
    "jsonl": _JsonLines,
    "parquet": _Parquet,
    "datasets": _DatasetDirectory,
}


def arrow_schema() -> Any:
    """The columns of an example; nulls where a message has no such key."""
    import pyarrow as pa

    text = pa.string()
    function = pa.struct([("name", text), ("arguments", text)])
    call = pa.struct([("id", text), ("type", text), ("function", function)])
    message = pa.struct([("role", text), ("content", text), ("tool_calls", pa.list_(call)), ("tool_call_id", text)])
    return pa.schema(
        [
            ("messages", pa.list_(message)),
            *((name, text) for name in ("tools", "trace_id", "run_id", "model", "dataset", "split", "problem_id")),
            ("episode_return", pa.float64()),
            ("passed", pa.bool_()),
        ]
    )
