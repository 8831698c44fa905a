"""One row of any source, checked and turned into a `Problem`.

    problem_id     text, printable, without slashes, unique in its set
    prompt         text: the specification
    ref            text: Verilog that declares RefModule, or another module
    test           text: the testbench, which instantiates the design under test
    title, description, licence      text
    difficulty     easy, medium or hard
    tags           a list of texts, or one text with commas
    split          train, val (also validation, valid, dev) or test
    top            name of the design under test, when it is not TopModule
    visible_files, hidden_files      {path: text}, or a list of {"path", "content"}, or either as JSON text
    compile_cpu_s, run_cpu_s         CPU seconds, a positive number

The first four are required, the others may be absent or null. Every source gives rows of this form.
"""

import json
import math
from collections.abc import Mapping
from typing import Final, get_args

from verilog_taskapp.problems.model import NO_FILES, Difficulty, Problem, ProblemLimits, Split
from verilog_taskapp.problems.modules import IDENTIFIER, declared_modules, named_in

Row = Mapping[str, object]

REQUIRED_COLUMNS: Final = ("problem_id", "prompt", "ref", "test")
OPTIONAL_COLUMNS: Final = (
    "title",
    "description",
    "licence",
    "difficulty",
    "tags",
    "split",
    "top",
    "visible_files",
    "hidden_files",
    "compile_cpu_s",
    "run_cpu_s",
)
COLUMNS: Final = REQUIRED_COLUMNS + OPTIONAL_COLUMNS

MAX_TEXT_BYTES: Final = 1024**2
"""Largest prompt, reference, testbench or further file."""
MAX_ID_CHARS: Final = 200
DEFAULT_TOP: Final = "TopModule"
DEFAULT_REFERENCE_TOP: Final = "RefModule"

_DIFFICULTIES: Final[Mapping[str, Difficulty]] = {level: level for level in get_args(Difficulty)}
_SPLIT_NAMES: Final[Mapping[str, Split]] = {
    "train": "train",
    "val": "val",
    "validation": "val",
    "valid": "val",
    "dev": "val",
    "test": "test",
}


class BadRow(ValueError):
    """A row that cannot become a problem; the text says which column and why."""


def split_named(name: str) -> Split | None:
    """Our split for a data set's word for it, or None."""
    return _SPLIT_NAMES.get(name.strip().casefold())


def problem_from_row(row: Row, source: str) -> Problem:
    """The problem that `row` describes; `source` is kept in it. Raises BadRow."""
    problem_id = row_id(row)
    prompt, reference, testbench = (_required_text(row, column) for column in ("prompt", "ref", "test"))
    top = _top(row, testbench)
    return Problem(
        id=problem_id,
        prompt=prompt,
        reference=reference,
        testbench=testbench,
        top=top,
        reference_top=_reference_top(reference),
        hidden_files=_files(row, "hidden_files"),
        visible_files=_files(row, "visible_files"),
        title=_optional_text(row, "title"),
        description=_optional_text(row, "description"),
        difficulty=_difficulty(row),
        tags=_tags(row),
        split=_split(row),
        source=source,
        licence=_optional_text(row, "licence"),
        limits=ProblemLimits(_cpu_s(row, "compile_cpu_s"), _cpu_s(row, "run_cpu_s")),
    )


def row_id(row: Row) -> str:
    """The row's problem id. Raises BadRow if it could not be a name in a URL, a log or a file."""
    value = _required_text(row, "problem_id")
    if not value.isprintable() or value != value.strip():
        raise BadRow("problem_id: control characters or blanks at its ends")
    if "/" in value or "\\" in value or value in (".", ".."):
        raise BadRow("problem_id: a slash, or a folder's name")
    if len(value) > MAX_ID_CHARS:
        raise BadRow(f"problem_id: longer than {MAX_ID_CHARS} characters")
    return value


def _checked_text(value: object, column: str) -> str:
    if not isinstance(value, str):
        raise BadRow(f"{column}: {type(value).__name__}, not text")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise BadRow(f"{column}: not valid Unicode text") from None
    if size > MAX_TEXT_BYTES:
        raise BadRow(f"{column}: {size} bytes, more than {MAX_TEXT_BYTES}")
    if "\0" in value:
        raise BadRow(f"{column}: a NUL character")
    return value


def _required_text(row: Row, column: str) -> str:
    if row.get(column) is None:
        raise BadRow(f"{column}: missing")
    text = _checked_text(row[column], column)
    if not text.strip():
        raise BadRow(f"{column}: empty")
    return text


def _optional_text(row: Row, column: str) -> str:
    value = row.get(column)
    return "" if value is None else _checked_text(value, column).strip()


def _reference_top(reference: str) -> str:
    declared = declared_modules(reference)
    if not declared:
        raise BadRow("ref: declares no module")
    return DEFAULT_REFERENCE_TOP if DEFAULT_REFERENCE_TOP in declared else declared[0]


def _top(row: Row, testbench: str) -> str:
    given = _optional_text(row, "top")
    if given and not IDENTIFIER.fullmatch(given):
        raise BadRow(f"top: {given[:40]!r} is not a module name")
    top = given or DEFAULT_TOP
    if top in declared_modules(testbench):
        raise BadRow(f"test: declares {top} itself")
    if top not in named_in(testbench):
        raise BadRow(f"test: does not instantiate {top}" + ("" if given else ", and no top is given"))
    return top


def _difficulty(row: Row) -> Difficulty:
    word = _optional_text(row, "difficulty").casefold()
    if word and word not in _DIFFICULTIES:
        raise BadRow(f"difficulty: {word[:40]!r} is not one of {', '.join(_DIFFICULTIES)}")
    return _DIFFICULTIES.get(word, "medium")


def _split(row: Row) -> Split | None:
    word = _optional_text(row, "split")
    split = split_named(word)
    if word and split is None:
        raise BadRow(f"split: {word[:40]!r} is not one of {', '.join(_SPLIT_NAMES)}")
    return split


def _tags(row: Row) -> tuple[str, ...]:
    value = row.get("tags")
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise BadRow(f"tags: {type(value).__name__}, not a list of texts")
    return tuple(tag for part in parts if (tag := _checked_text(part, "tags").strip()))


def _cpu_s(row: Row, column: str) -> float | None:
    value = row.get(column)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise BadRow(f"{column}: not a positive number of seconds")
    return float(value)


def _files(row: Row, column: str) -> Mapping[str, str]:
    value = row.get(column)
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except (ValueError, RecursionError):
            raise BadRow(f"{column}: text that is not JSON") from None
    if value is None:
        return NO_FILES
    if isinstance(value, Mapping):
        # a Parquet struct has every row's file names, null where a row has no such file
        pairs = [(path, content) for path, content in value.items() if content is not None]
    elif isinstance(value, list):
        pairs = [(item.get("path"), item.get("content")) for item in value if isinstance(item, Mapping)]
        if len(pairs) != len(value):
            raise BadRow(f'{column}: not a list of {{"path", "content"}}')
    else:
        raise BadRow(f"{column}: {type(value).__name__}, not files by path")
    return {_safe_path(path, column): _checked_text(content, column) for path, content in pairs} or NO_FILES


def _safe_path(path: object, column: str) -> str:
    text = _checked_text(path, column)
    parts = text.split("/")
    if not text.isprintable() or "\\" in text or any(part in ("", ".", "..") or part[0] == "-" for part in parts):
        raise BadRow(f"{column}: {text[:60]!r} is not a relative path inside the workspace")
    return text
