"""What a benchmark found: figures with their targets, a table for people, and JSON."""

import json
import os
import platform
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

PIPED_COLUMNS = 180
"""Width of tables where there is no terminal to say it."""


@dataclass(frozen=True)
class Figure:
    """One measured number, once per repeat."""

    name: str
    unit: str
    repeats: tuple[float, ...]
    target: float | None = None
    better: Literal["more", "less"] = "less"

    @property
    def median(self) -> float:
        """The middle repeat: what is compared with the target."""
        return statistics.median(self.repeats)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        return self.median >= self.target if self.better == "more" else self.median <= self.target

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        ends = {"min": min(self.repeats), "median": self.median, "max": max(self.repeats)}
        return {**asdict(self), **ends, "met": self.met}


@dataclass(frozen=True)
class Report:
    """The result of one benchmark."""

    name: str
    facts: Mapping[str, str]
    """What was measured, and with what."""
    figures: tuple[Figure, ...]
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    """Details for people."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Details for programs, JSON only."""

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "benchmark": self.name,
            "facts": dict(self.facts),
            "figures": [one.to_json() for one in self.figures],
            "table": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
            "details": dict(self.details),
        }


def number(value: float) -> str:
    """A number with three digits that count."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread_of(values: Sequence[float]) -> str:
    """Least, middle and greatest."""
    return "/".join(number(value) for value in (min(values), statistics.median(values), max(values)))


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of all lie (the nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def machine() -> dict[str, str]:
    """What the figures depend on beside the code."""
    return {
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def show(report: Report, console: Console) -> None:
    """Print the details, then the figures with their targets."""
    console.print(f"\n{report.name}: " + ", ".join(f"{name} {value}" for name, value in report.facts.items()))
    if report.rows:
        details = Table(box=None, pad_edge=False)
        for column in report.columns:
            details.add_column(column, justify="left" if column == report.columns[0] else "right")
        for row in report.rows:
            details.add_row(*row)
        console.print(details)
    table = Table(box=None, pad_edge=False)
    table.add_column("figure")
    for column in ("unit", "min", "median", "max", "target", "met"):
        table.add_column(column, justify="left" if column in ("unit", "met") else "right")
    for one in report.figures:
        target = "" if one.target is None else f"{'>=' if one.better == 'more' else '<='} {one.target:g}"
        met = {None: "", True: "yes", False: "no"}[one.met]
        values = (min(one.repeats), one.median, max(one.repeats))
        table.add_row(one.name, one.unit, *map(number, values), target, met)
    console.print(table)


def save(reports: Sequence[Report], path: Path) -> None:
    """Write the reports as JSON, whole or not at all."""
    document = {"machine": machine(), "reports": [one.to_json() for one in reports]}
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
