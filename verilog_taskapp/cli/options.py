"""Options that several commands have."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Split(StrEnum):
    """Parts of a problem set."""

    TRAIN = "train"
    VAL = "val"
    TEST = "test"
    ALL = "all"


DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="SOURCE",
        help="bundled, verilog-eval, hf:REPO[:SPLIT], dir:PATH, jsonl:PATH or parquet:PATH.  \\[VERILOG_DATASET, "
        "else bundled]",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]
EnvFileOption = Annotated[
    Path | None,
    typer.Option("--env-file", help="Read settings from this file instead of .env.", show_default=False),
]
