"""Our own problems, shipped in the package: their ids, order and descriptions are in ``bundled/index.json``."""

import json
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from verilog_taskapp.errors import DatasetUnavailable
from verilog_taskapp.problems.folder import read_problem
from verilog_taskapp.problems.row import BadRow, Row, row_id

LICENCE = "MIT"


def bundled_folder() -> Traversable:
    """Where the bundled problems are."""
    return files("verilog_taskapp.problems").joinpath("bundled")


def read_bundled(folder: Traversable | None = None) -> Iterator[tuple[str, Row | BadRow]]:
    """The rows of the bundled problems in the index's order; `folder` stands in for the package's own.

    What the index says about a problem (any optional column) joins the texts in its files.
    Raises DatasetUnavailable if there is no readable index.
    """
    folder = folder or bundled_folder()
    try:
        index = json.loads(folder.joinpath("index.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetUnavailable("bundled: the installed package has no readable problem index") from error
    if not isinstance(index, list):
        raise DatasetUnavailable("bundled: the problem index is not a list")
    for number, entry in enumerate(index, start=1):
        yield _read_entry(folder, entry, f"row {number}")


def _read_entry(folder: Traversable, entry: object, place: str) -> tuple[str, Row | BadRow]:
    if not isinstance(entry, dict):
        return place, BadRow("not an object")
    try:
        name = row_id({"problem_id": entry.get("id")})
    except BadRow as error:
        return place, error
    row = read_problem(folder, name)
    return name, row if isinstance(row, BadRow) else {"licence": LICENCE, **entry, **row}
