"""Rows of JSON Lines files, Parquet files and hub data sets: everything that goes through ``datasets``.

``datasets`` is imported on first use, here only: it takes a second and most deployments do not need it. It writes to
its own cache (``HF_HOME``, ``HF_DATASETS_CACHE``) and nowhere else, and serves from it when the hub is away.
"""

import glob
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verilog_taskapp.errors import DatasetUnavailable
from verilog_taskapp.problems.hub import hub_answers
from verilog_taskapp.problems.model import Split
from verilog_taskapp.problems.row import COLUMNS, REQUIRED_COLUMNS, BadRow, Row, split_named
from verilog_taskapp.problems.spec import FileSource, HubSource

ALTERNATIVES: Final = "Sources that need no network: VERILOG_DATASET=bundled, dir:PATH or jsonl:PATH"
REASON_CHARS: Final = 300

_SERVER_PATH = re.compile(r"(?<![\w:/.])/[^\s'\",)]+")


@dataclass(frozen=True)
class _Table:
    columns: frozenset[str]
    """The set's own column names."""
    rows: tuple[tuple[str, Row | BadRow], ...]
    """Rows under those names, each with its place."""
    split: Split | None = None
    """The split that all rows belong to, if the table is one of several."""


def read_rows(source: FileSource | HubSource, columns: Mapping[str, str]) -> Iterator[tuple[str, Row | BadRow]]:
    """The rows of `source`, each with its place (``row 3``, ``line 3``), under our column names.

    `columns` maps our names to the set's; an empty name leaves the column out. Raises DatasetUnavailable if the set
    cannot be loaded, or lacks a required column or one that `columns` names.
    """
    names = _column_names(columns)
    tables = _read_hub(source, names) if isinstance(source, HubSource) else [_read_file(source, names)]
    present = frozenset[str]().union(*(table.columns for table in tables))
    needed = [names[ours] for ours in names if ours in REQUIRED_COLUMNS or ours in columns]
    missing = [name for name in needed if name not in present]
    if missing and any(not isinstance(row, BadRow) for table in tables for _, row in table.rows):
        raise DatasetUnavailable(
            f"{source.label}: no column {', '.join(missing)}; it has {', '.join(sorted(present)) or 'none'}. "
            'VERILOG_DATASET_COLUMNS maps names, e.g. {"problem_id": "task"}'
        )
    for table in tables:
        for place, row in table.rows:
            yield place, row if isinstance(row, BadRow) else _renamed(row, names, table.split)


def _renamed(row: Row, names: Mapping[str, str], split: Split | None) -> Row:
    renamed = {ours: row.get(theirs) for ours, theirs in names.items()}
    return {**renamed, "split": renamed.get("split") or split}


def _column_names(columns: Mapping[str, str]) -> dict[str, str]:
    if unknown := sorted(set(columns) - set(COLUMNS)):
        raise DatasetUnavailable(
            f"VERILOG_DATASET_COLUMNS: unknown {', '.join(unknown)}; the columns are {', '.join(COLUMNS)}"
        )
    names = {ours: columns.get(ours, ours) for ours in COLUMNS}
    if left_out := [ours for ours in REQUIRED_COLUMNS if not names[ours]]:
        raise DatasetUnavailable(f"VERILOG_DATASET_COLUMNS: {', '.join(left_out)} cannot be left out")
    return {ours: theirs for ours, theirs in names.items() if theirs}


def _read_file(source: FileSource, names: Mapping[str, str]) -> _Table:
    if not source.path.is_file():
        raise DatasetUnavailable(f"{source.label}: no such file") from FileNotFoundError(str(source.path))
    if source.path.stat().st_size == 0:
        raise DatasetUnavailable(f"{source.label}: the file is empty")
    datasets = _datasets()
    data_files = [glob.escape(str(source.path))]
    if source.format == "parquet":
        return _table(_load(datasets, source.label, "parquet", data_files=data_files, split="train"), names.values())
    # Lines of text, each parsed by itself: the JSON reader gives one type to a whole column and gives the file up at
    # one broken line. A byte that is not UTF-8 becomes \xNN, which no JSON text may hold: its line alone is bad.
    options = {"encoding": "utf-8-sig", "encoding_errors": "backslashreplace"}
    return _lines(_load(datasets, source.label, "text", data_files=data_files, split="train", **options))


def _read_hub(source: HubSource, names: Mapping[str, str]) -> list[_Table]:
    if Path(source.repo).exists():
        raise DatasetUnavailable(
            f"{source.label}: the working directory holds {source.repo}, which would be loaded instead of the hub's set"
        )
    loaded = _load_from_hub(_datasets(), source)
    if source.split is not None:
        return [_table(loaded, names.values())]
    if len(loaded) == 1:
        return [_table(part, names.values()) for part in loaded.values()]
    return [_table(part, names.values(), name) for name, part in loaded.items()]


def _load_from_hub(datasets: Any, source: HubSource) -> Any:
    asked_offline = bool(datasets.config.HF_HUB_OFFLINE)
    online = not asked_offline and hub_answers(datasets.config.HF_ENDPOINT)
    try:
        # without the hub: from the cache at once, instead of after the client's retries
        with nullcontext() if online else _offline(datasets):
            return _load(datasets, source.label, source.repo, split=source.split)
    except DatasetUnavailable as error:
        if online:
            raise DatasetUnavailable(f"{error.message}. {ALTERNATIVES}") from error
        why = "HF_HUB_OFFLINE is set" if asked_offline else "the Hugging Face hub cannot be reached"
        raise DatasetUnavailable(
            f"{source.label}: {why}, and the cache of datasets does not hold it. {ALTERNATIVES}",
            retryable=not asked_offline,
        ) from error


def _datasets() -> Any:
    import datasets
    import huggingface_hub

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(logging.CRITICAL)
    huggingface_hub.logging.set_verbosity(logging.CRITICAL)
    return datasets


@contextmanager
def _offline(datasets: Any) -> Iterator[None]:
    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def _load(datasets: Any, label: str, path: str, **options: object) -> Any:
    try:
        return datasets.load_dataset(path, **options)
    except Exception as error:  # what it raises varies with its version, pyarrow's and the HTTP client's
        first_line = _SERVER_PATH.sub("...", str(error)).strip().partition("\n")[0][:REASON_CHARS]
        raise DatasetUnavailable(f"{label}: cannot be loaded ({type(error).__name__}: {first_line})") from error


def _table(dataset: Any, wanted: Iterable[str], part: str = "") -> _Table:
    columns = frozenset(dataset.column_names)
    chosen = dataset.select_columns(sorted(columns & set(wanted)))  # never decode an image or audio column
    prefix = f"{part} row" if part else "row"
    rows = tuple((f"{prefix} {index + 1}", _table_row(chosen, index)) for index in range(len(chosen)))
    return _Table(columns, rows, split_named(part))


def _table_row(dataset: Any, index: int) -> Row | BadRow:
    try:
        row: Row = dataset[index]
    except UnicodeDecodeError:
        return BadRow("not UTF-8 text")
    return row


def _lines(dataset: Any) -> _Table:
    rows = tuple(
        (f"line {number}", _json_object(line))
        for number, line in enumerate(dataset["text"], start=1)
        if line and not line.isspace()
    )
    return _Table(frozenset(name for _, row in rows if not isinstance(row, BadRow) for name in row), rows)


def _json_object(line: str) -> Row | BadRow:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return BadRow(f"not JSON: {str(error)[:80]}")
    return value if isinstance(value, dict) else BadRow("not a JSON object")
