"""What all commands share: where they write, how they fail, how they run and stop.

Results go to stdout; progress, notes and errors to stderr, so that ``--json`` output can be piped.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Coroutine
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from verilog_taskapp.errors import CallerFault, TaskAppError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from verilog_taskapp.settings import Settings

Result = TypeVar("Result")

PIPED_COLUMNS = 120
"""Width of tables where there is no terminal to say it."""


class Exit(IntEnum):
    """The exit statuses of all commands."""

    OK = 0
    FAILED = 1
    """It ran, and the answer is no."""
    USAGE = 2
    NO_ANSWER = 3
    """A fault that is not the caller's: there is no result."""
    INTERRUPTED = 128 + signal.SIGINT
    TERMINATED = 128 + signal.SIGTERM


def stdout() -> "Console":
    """For results."""
    from rich.console import Console

    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPED_COLUMNS)


def stderr() -> "Console":
    """For progress, notes and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False)


def emit_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def note(message: str, *, kind: str = "note") -> None:
    """One line on stderr."""
    print(f"{kind}: {' '.join(message.split())}", file=sys.stderr)


def fail(message: str, status: Exit) -> NoReturn:
    """One line on stderr, and the end."""
    note(message, kind="error")
    raise typer.Exit(status)


def progress() -> "Progress":
    """A bar on stderr that disappears when it is done; nothing when stderr is not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = stderr()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def read_settings(env_file: Path | None = None, **overrides: object) -> "Settings":
    """The settings, with `overrides` that are not None; a value that does not fit ends the command with status 2.

    Values are never shown: one of them may be a key.
    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from verilog_taskapp.settings import load_settings

    try:
        return load_settings(env_file, **overrides)
    except ValidationError as error:
        parts = [f"{_variable(one['loc'])}: {one['msg']}" for one in error.errors()]
        fail(f"wrong setting: {'; '.join(parts)}", Exit.USAGE)
    except (FileNotFoundError, SettingsError) as error:
        fail(str(error), Exit.USAGE)


def _variable(place: tuple[int | str, ...]) -> str:
    """The environment variable of a field, where an error names the field."""
    name, *rest = map(str, place or ("settings",))
    return ".".join([f"VERILOG_{name.upper()}" if name.islower() else name, *rest])


def status_of(error: TaskAppError) -> Exit:
    """Whose fault it is, as an exit status."""
    return Exit.USAGE if isinstance(error, CallerFault) else Exit.NO_ANSWER


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` in an event loop, to its end or until SIGINT or SIGTERM; either way everything it opened is closed.

    Faults of the service end the command with one line on stderr.
    """
    try:
        return asyncio.run(_until_stopped(main))
    except TaskAppError as error:
        fail(error.message, status_of(error))
    except _Stopped as stopped:
        raise typer.Exit(stopped.status) from None


class _Stopped(Exception):
    """A signal ended the command."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


async def _until_stopped(main: Coroutine[Any, Any, Result]) -> Result:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main)
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        loop.set_exception_handler(lambda *_: None)  # work that is cut off has nothing to tell
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise _Stopped(received[0]) from None
        raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
