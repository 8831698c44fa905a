"""Plots as inline SVG: no script, no font and no colour of their own, so that they follow the page's light or dark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 12, 34
SERIES = 6
"""Colours that the page's style has; further series begin again."""
BAR_ROW = 22
LABEL_WIDTH = 250
LABEL_CHARS = 40


@dataclass(frozen=True)
class Point:
    """A value with its interval, all in [0, 1]."""

    x: str
    value: float
    low: float
    high: float


def interval_plot(series: Mapping[str, Sequence[Point]], title: str) -> str:
    """Values between 0 and 1 with their intervals, side by side for each x; empty text for no points."""
    xs = list(dict.fromkeys(point.x for points in series.values() for point in points))
    if not xs:
        return ""
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    slot = inner_width / len(xs)
    parts = [_axis(inner_height)]
    for index, (name, points) in enumerate(series.items()):
        shift = (index + 1) / (len(series) + 1)
        for point in points:
            x = LEFT + slot * (xs.index(point.x) + shift)
            y, low, high = (TOP + inner_height * (1 - one) for one in (point.value, point.low, point.high))
            told = f"{name}, {point.x}: {point.value:.1%} [{point.low:.1%}, {point.high:.1%}]"
            parts.append(
                f'<g class="s{index % SERIES}"><title>{escape(told)}</title>'
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/></g>'
            )
    for index, label in enumerate(xs):
        parts.append(
            f'<text x="{LEFT + slot * (index + 0.5):.1f}" y="{HEIGHT - 10}" class="mid">{escape(label)}</text>'
        )
    return _svg("".join(parts), WIDTH, HEIGHT, title)


def _axis(inner_height: float) -> str:
    lines = []
    for tenth in range(0, 11, 2):
        y = TOP + inner_height * (1 - tenth / 10)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" class="end">{tenth * 10} %</text>')
    return "".join(lines)


def bars(values: Mapping[str, int], title: str) -> str:
    """Horizontal bars with their counts; empty text for no values."""
    if not values:
        return ""
    height = BAR_ROW * len(values) + 4
    most = max(max(values.values()), 1)
    room = WIDTH - LABEL_WIDTH - 60
    parts = []
    for number, (label, count) in enumerate(values.items()):
        y = number * BAR_ROW
        shown = label if len(label) <= LABEL_CHARS else f"{label[: LABEL_CHARS - 1]}…"
        width = room * count / most
        parts.append(
            f'<g class="s0"><title>{escape(label)}: {count}</title>'
            f'<text x="{LABEL_WIDTH - 8}" y="{y + 15}" class="end">{escape(shown)}</text>'
            f'<rect x="{LABEL_WIDTH}" y="{y + 3}" width="{width:.1f}" height="{BAR_ROW - 6}"/>'
            f'<text x="{LABEL_WIDTH + width + 6:.1f}" y="{y + 15}">{count}</text></g>'
        )
    return _svg("".join(parts), WIDTH, height, title)


def strip(rates: Sequence[tuple[str, float]], title: str) -> str:
    """One cell per problem, in order, the fuller the more of its samples passed."""
    if not rates:
        return ""
    columns = min(len(rates), 40)
    cell = WIDTH / columns
    rows = -(-len(rates) // columns)
    parts = []
    for number, (name, rate) in enumerate(rates):
        x, y = number % columns * cell, number // columns * cell
        parts.append(
            f'<g class="s0"><title>{escape(name)}: {rate:.0%}</title>'
            f'<rect class="empty" x="{x + 1:.1f}" y="{y + 1:.1f}" width="{cell - 2:.1f}" height="{cell - 2:.1f}"/>'
            f'<rect x="{x + 1:.1f}" y="{y + 1 + (cell - 2) * (1 - rate):.1f}" width="{cell - 2:.1f}" '
            f'height="{(cell - 2) * rate:.1f}"/></g>'
        )
    return _svg("".join(parts), WIDTH, rows * cell, title)


def _svg(inner: str, width: float, height: float, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" aria-label="{escape(title)}">'
        f"{inner}</svg>"
    )
