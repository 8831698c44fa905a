"""``python -m benchmarks NAME [options]``: measure the service against the bare tools, or survey the judge."""

import argparse
import importlib
import runpy
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console

from benchmarks.arena import Arena, ProcessFailed, arena
from benchmarks.floor import FloorBroken
from benchmarks.options import BenchmarkFailed, Options
from benchmarks.report import PIPED_COLUMNS, Report, save, show
from benchmarks.tasks import NothingToDo
from verilog_taskapp.errors import TaskAppError

MEASURED = ("rollouts", "verdict", "group", "soak", "health")
SURVEYS = ("agreement", "attacks", "fuzz", "queueing", "references")
"""With options of their own: ``python -m benchmarks agreement --help``."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures the service against the bare tools: every figure is a ratio within one run.",
        epilog=f"Surveys of the judge, with options of their own: {', '.join(SURVEYS)}.",
    )
    made.add_argument("name", choices=[*MEASURED, "all"], help="what to measure")
    made.add_argument("--dataset", default="bundled", help="as VERILOG_DATASET (%(default)s)")
    made.add_argument("--problems", type=int, help="use so many problems instead of what is usual")
    made.add_argument("--repeats", type=int, default=3, help="interleaved repeats (%(default)s)")
    made.add_argument("--think-s", type=float, default=10.0, help="soak: seconds of a model turn (%(default)s)")
    made.add_argument("--quick", action="store_true", help="a small run whose figures mean nothing")
    made.add_argument("--cache-dir", type=Path, help="keep golden traces there, for the next benchmark")
    made.add_argument("--scratch-dir", type=Path, help="work below this folder instead of in memory")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for; the exit status is 1 when something did not run, whatever the figures are."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in SURVEYS:
        sys.argv = words
        runpy.run_module(f"benchmarks.{words[0]}", run_name="__main__", alter_sys=True)
        return 0
    given = parser().parse_args(words)
    options = Options(given.quick, given.repeats, given.problems, given.think_s)
    names = MEASURED if given.name == "all" else (given.name,)
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPED_COLUMNS)
    reports: list[Report] = []
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with arena(given.dataset, given.cache_dir, given.scratch_dir) as place:
            for name in names:
                measure: Callable[[Arena, Options], Report] = importlib.import_module(f"benchmarks.{name}").run
                reports.append(measure(place, options))
                show(reports[-1], console)
                if given.json:
                    save(reports, given.json)
    except (BenchmarkFailed, FloorBroken, NothingToDo, ProcessFailed, TaskAppError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
