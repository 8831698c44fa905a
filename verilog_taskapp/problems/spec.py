"""Where problems come from: the value of `Settings.dataset`, parsed.

    bundled                our own problems, shipped in the package
    verilog-eval           VerilogEval v2, spec-to-RTL, from the Hugging Face hub
    hf:REPO[:SPLIT]        any hub data set with the same columns
    dir:PATH               a folder in VerilogEval's layout
    jsonl:PATH             one JSON object a line, the same columns
    parquet:PATH           a Parquet file, the same columns

A source's ``id`` and ``label`` are shown to callers: they hold a file's or folder's name, never a server path.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from verilog_taskapp.errors import DatasetUnavailable

SOURCE_FORMS = ("bundled", "verilog-eval", "hf:REPO[:SPLIT]", "dir:PATH", "jsonl:PATH", "parquet:PATH")

VERILOG_EVAL_REPO = "dakies/nvlabs-verilogeval-v2-spec-to-rtl"
VERILOG_EVAL_SPLIT = "test"

_HUB_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_HUB_SOURCE = re.compile(rf"({_HUB_NAME}/{_HUB_NAME})(?::({_HUB_NAME}))?")

FileFormat = Literal["jsonl", "parquet"]


@dataclass(frozen=True)
class BundledSource:
    """The problems in the package."""

    id = "bundled"
    label = "bundled"
    name = "Bundled spec-to-RTL problems"


@dataclass(frozen=True)
class HubSource:
    """A data set on the Hugging Face hub; `split` None means every split it has."""

    repo: str
    split: str | None = None

    @property
    def is_verilog_eval(self) -> bool:
        """Whether this is what ``verilog-eval`` stands for, however it was spelt."""
        return (self.repo, self.split) == (VERILOG_EVAL_REPO, VERILOG_EVAL_SPLIT)

    @property
    def id(self) -> str:
        """The repository, or ``verilog-eval``."""
        return "verilog-eval" if self.is_verilog_eval else self.repo

    @property
    def label(self) -> str:
        """The source as it could be configured."""
        if self.is_verilog_eval:
            return "verilog-eval"
        return f"hf:{self.repo}:{self.split}" if self.split else f"hf:{self.repo}"

    @property
    def name(self) -> str:
        """The set's name for people."""
        return "VerilogEval v2 Spec-to-RTL" if self.is_verilog_eval else self.repo


@dataclass(frozen=True)
class FolderSource:
    """A folder with ``NAME_prompt.txt``, ``NAME_ref.sv`` and ``NAME_test.sv``."""

    path: Path

    @property
    def id(self) -> str:
        """The folder's own name."""
        return self.path.name

    @property
    def label(self) -> str:
        """``dir:`` and the folder's own name."""
        return f"dir:{self.path.name}"

    @property
    def name(self) -> str:
        """The set's name for people."""
        return self.path.name


@dataclass(frozen=True)
class FileSource:
    """A JSON Lines or Parquet file of rows."""

    format: FileFormat
    path: Path

    @property
    def id(self) -> str:
        """The file's own name."""
        return self.path.name

    @property
    def label(self) -> str:
        """The format and the file's own name."""
        return f"{self.format}:{self.path.name}"

    @property
    def name(self) -> str:
        """The set's name for people."""
        return self.path.stem


SourceSpec = BundledSource | HubSource | FolderSource | FileSource


def parse_source(text: str) -> SourceSpec:
    """The source that `text` names; paths are made absolute, with ``~`` expanded, and not looked at yet.

    Raises DatasetUnavailable, listing the forms, for anything else.
    """
    kind, _, rest = text.strip().partition(":")
    match kind:
        case "bundled" if not rest:
            return BundledSource()
        case "verilog-eval" if not rest:
            return HubSource(VERILOG_EVAL_REPO, VERILOG_EVAL_SPLIT)
        case "hf" if found := _HUB_SOURCE.fullmatch(rest):
            return HubSource(found[1], found[2])
        case "dir" if rest:
            return FolderSource(_absolute(rest))
        case "jsonl" | "parquet" if rest:
            return FileSource("jsonl" if kind == "jsonl" else "parquet", _absolute(rest))
    wanted = "a repository as OWNER/NAME" if kind == "hf" else f"one of {', '.join(SOURCE_FORMS)}"
    raise DatasetUnavailable(f"VERILOG_DATASET: {kind[:40]!r} is not usable as given; expected {wanted}")


def _absolute(path: str) -> Path:
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown ~user, a NUL
        raise DatasetUnavailable(f"VERILOG_DATASET: the path cannot be resolved ({type(error).__name__})") from error
