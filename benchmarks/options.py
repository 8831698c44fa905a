"""What can be asked of a benchmark."""

from dataclasses import dataclass


class BenchmarkFailed(Exception):
    """Something did not run, so that there is no figure."""


@dataclass(frozen=True)
class Options:
    """The same for all benchmarks; each uses what concerns it."""

    quick: bool = False
    """A small run that shows that everything works; its figures mean nothing."""
    repeats: int = 3
    """Interleaved runs of the service and of the bare tools."""
    problems: int | None = None
    """How many problems; None: as the benchmark is defined."""
    think_s: float = 10.0
    """Seconds that the model takes for a turn, in `soak`."""
