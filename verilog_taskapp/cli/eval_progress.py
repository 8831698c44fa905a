"""How an evaluation shows where it is: a bar with rate and time left on a terminal, a plain line now and then else."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from verilog_taskapp.cli.console import note, stderr

if TYPE_CHECKING:
    from verilog_taskapp.evaluation.campaign import Tally
    from verilog_taskapp.evaluation.config import EvalConfig

LINE_EVERY_S = 5.0
"""Between two lines where there is no terminal."""


@contextlib.contextmanager
def shown(config: "EvalConfig") -> Iterator[Callable[["Tally"], None]]:
    """Yields what has to be told of every finished sample."""
    models = len(config.policy.models)
    what = config.policy.models[0].title if models == 1 else f"{models} models"
    console = stderr()
    if not console.is_terminal:
        yield _Lines(what)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, console=console) as bar:
        counted = bar.add_task(what, total=None, told="")
        clock = _Clock()

        def show(tally: "Tally") -> None:
            told = _told(tally, clock.since(tally))
            bar.update(counted, total=tally.total, completed=tally.before + tally.done, told=told)

        yield show


class _Clock:
    """The time since the first sample of this run could begin."""

    def __init__(self) -> None:
        self._start: float | None = None

    def since(self, tally: "Tally") -> float:
        now = time.monotonic()
        if self._start is None:
            self._start = now
        return now - self._start


class _Lines:
    def __init__(self, what: str) -> None:
        self._what = what
        self._clock = _Clock()
        self._last: float | None = None

    def __call__(self, tally: "Tally") -> None:
        elapsed = self._clock.since(tally)
        finished = tally.before + tally.done
        if self._last is None and tally.before:
            note(f"{tally.before} of {tally.total} samples are there already", kind="eval")
        if self._last is None:
            self._last = elapsed
        if elapsed - self._last >= LINE_EVERY_S or finished == tally.total:
            note(f"{self._what}: {finished}/{tally.total} {_told(tally, elapsed)}", kind="eval")
            self._last = elapsed


def _told(tally: "Tally", elapsed_s: float) -> str:
    parts = [f"{tally.passed} passed, {tally.failed} failed"]
    if tally.errors:
        parts.append(f"{tally.errors} errors")
    if tally.done and elapsed_s > 0:
        rate = tally.done / elapsed_s
        left_s = (tally.total - tally.before - tally.done) / rate
        parts += [f"{rate:.1f}/s", f"{_duration(left_s)} left"]
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02} min"
