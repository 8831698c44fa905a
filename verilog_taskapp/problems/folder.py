"""A folder in VerilogEval's layout: ``NAME_prompt.txt``, ``NAME_ref.sv``, ``NAME_test.sv``, by name.

The code-complete variant also has ``NAME_ifc.txt``, the module's header: it is appended to the prompt.
"""

from collections.abc import Iterable, Iterator
from importlib.resources.abc import Traversable

from verilog_taskapp.problems.row import MAX_TEXT_BYTES, BadRow, Row, row_id

SUFFIXES = {"prompt": "_prompt.txt", "ref": "_ref.sv", "test": "_test.sv"}
INTERFACE_SUFFIX = "_ifc.txt"


def problem_names(file_names: Iterable[str]) -> list[str]:
    """Names of the problems that `file_names` belong to, sorted; one file is enough to count."""
    suffixes = tuple(SUFFIXES.values())
    found = {name.removesuffix(suffix) for name in file_names for suffix in suffixes if name.endswith(suffix)}
    return sorted(found - {""})


def read_folder(folder: Traversable) -> Iterator[tuple[str, Row | BadRow]]:
    """The rows of `folder`, each with its problem's name. Raises OSError if it cannot be listed."""
    for name in problem_names(entry.name for entry in folder.iterdir()):
        yield name, read_problem(folder, name)


def read_problem(folder: Traversable, name: str) -> Row | BadRow:
    """The files of one problem as a row, or what is wrong with them."""
    try:
        row_id({"problem_id": name})
        row: dict[str, object] = {column: read_text(folder, name + suffix) for column, suffix in SUFFIXES.items()}
        if folder.joinpath(name + INTERFACE_SUFFIX).is_file():
            row["prompt"] = f"{str(row['prompt']).rstrip()}\n\n{read_text(folder, name + INTERFACE_SUFFIX)}"
    except BadRow as error:
        return error
    return {"problem_id": name, **row}


def read_text(folder: Traversable, file_name: str) -> str:
    """A file's text (UTF-8; a byte order mark is dropped, line ends are kept).

    Raises BadRow if it is missing, unreadable, larger than `MAX_TEXT_BYTES` or not UTF-8.
    """
    try:
        with folder.joinpath(file_name).open("rb") as file:
            content = file.read(MAX_TEXT_BYTES + 1)
    except FileNotFoundError:
        raise BadRow(f"{file_name}: missing") from None
    except OSError as error:
        raise BadRow(f"{file_name}: cannot be read ({error.strerror or type(error).__name__})") from None
    if len(content) > MAX_TEXT_BYTES:
        raise BadRow(f"{file_name}: more than {MAX_TEXT_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRow(f"{file_name}: not UTF-8 at byte {error.start}") from None
