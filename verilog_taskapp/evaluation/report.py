"""``report.html``: one file with everything in it, readable without a network and without scripts.

Every text that comes from a model, a problem or a server is escaped, and the page forbids scripts on top of that.
"""

import json
from collections.abc import Iterable, Sequence
from html import escape

from verilog_taskapp.evaluation.categories import ALL_CATEGORIES
from verilog_taskapp.evaluation.directory import Saved
from verilog_taskapp.evaluation.plots import SERIES, Point, bars, interval_plot, strip
from verilog_taskapp.evaluation.summary import Interval, ModelSummary, PassAtK, Summary

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d5dae0; --soft: #f3f5f8; --muted: #57606a;
  --s0: #2563a8; --s1: #b3541e; --s2: #3a7d44; --s3: #7b4ea3; --s4: #a3324c; --s5: #5f6b11; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14181d; --line: #39414b; --soft: #1d232a;
  --muted: #9aa4af; --s0: #6cb0f2; --s1: #f0a06b; --s2: #7cc58a; --s3: #c39ae6; --s4: #f08ba1; --s5: #c3cf63; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 76rem; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { margin: 2.2rem 0 .6rem; font-size: 1.2rem; } h3 { margin: 1.4rem 0 .4rem; }
p { margin: .4rem 0; } .muted { color: var(--muted); } .warn { border-left: 4px solid var(--s1); padding-left: .7rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--muted); font-weight: 600; } td.n, th.n { text-align: right; } td { overflow-wrap: anywhere; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { background: var(--soft); padding: .8rem; overflow: auto; }
svg { max-width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .mid { text-anchor: middle; } svg .end { text-anchor: end; } svg .grid { stroke: var(--line); }
svg .empty { fill: var(--soft) !important; stroke: var(--line); } svg g line { stroke-width: 2; }
""" + "".join(
    f".s{n} circle, .s{n} rect {{ fill: var(--s{n}); }} .s{n} line {{ stroke: var(--s{n}); }} "
    f".k{n} {{ color: var(--s{n}); }}\n"
    for n in range(SERIES)
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def as_html(config: Saved, summary: Summary) -> str:
    """The page."""
    asked = config.what["eval"]
    title = f"Evaluation of {', '.join(config.models)}"
    facts = (
        f"{config.dataset['source']}, split {asked['split']}, {len(config.dataset['problems'])} problems, "
        f"{asked['n']} samples each, {asked['mode']}, judged by {' and '.join(config.judges)}"
    )
    versions = ", ".join(f"{name} {value}" for name, value in config.versions.items())
    body = [
        f"<h1>{escape(title)}</h1><p>{escape(facts)}</p><p class=muted>{escape(versions)}</p>",
        *_warnings(summary),
        "<h2>Results</h2>",
        _headline(summary),
        interval_plot(
            {one.model: [_point(found) for found in one.pass_at] for one in summary.models},
            "pass@k with 95 % intervals",
        ),
        _legend(config.models),
        "<p class=muted>Means over problems; 95 % intervals by bootstrap over problems. Errors and unusable problems "
        "are in no rate.</p>",
        *(_model(one) for one in summary.models),
        "<h2>Configuration</h2>",
        f"<pre>{escape(json.dumps(config.model_dump(exclude={'dataset'}), indent=2, ensure_ascii=False))}</pre>",
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _legend(models: Sequence[str]) -> str:
    """Which colour is which model, where there are several."""
    if len(models) < 2:
        return ""
    named = (f"<span class=k{place % SERIES}>●</span> {escape(name)}" for place, name in enumerate(models))
    return f"<p>{' &nbsp; '.join(named)}</p>"


def _point(found: PassAtK) -> Point:
    return Point(f"pass@{found.k}", found.value, found.low, found.high)


def _warnings(summary: Summary) -> Iterable[str]:
    for one in summary.models:
        missing = one.expected - one.scored - one.unusable - one.errors
        if missing:
            yield f"<p class=warn>{escape(one.model)}: {missing} of {one.expected} samples are still missing.</p>"
        if one.errors:
            codes = ", ".join(f"{code} ({count})" for code, count in one.error_codes.items())
            yield f"<p class=warn>{escape(one.model)}: {one.errors} samples ended in errors: {escape(codes)}.</p>"
        if one.unusable:
            yield f"<p class=warn>{escape(one.model)}: {one.unusable} samples: their problem cannot be judged.</p>"


def interval(found: Interval | None, *, percent: bool = True) -> str:
    """A value with its interval, as text."""
    if found is None:
        return "-"
    form = "{:.1%}" if percent else "{:.2f}"
    return f"{form.format(found.value)} [{form.format(found.low)}, {form.format(found.high)}]"


def _headline(summary: Summary) -> str:
    ks = sorted({found.k for one in summary.models for found in one.pass_at})
    head = ["model", "samples", "passed", *(f"pass@{k}" for k in ks), "mean return", "steps to solve", "tokens", "cost"]
    rows = []
    for one in summary.models:
        by_k = {found.k: found for found in one.pass_at}
        steps = "-" if one.mean_steps_to_solve is None else f"{one.mean_steps_to_solve:.2f}"
        tokens = one.tokens
        rows.append(
            [
                one.model,
                f"{one.scored}",
                f"{one.passed}",
                *(interval(by_k.get(k)) for k in ks),
                interval(one.mean_return, percent=False),
                steps,
                f"{tokens.prompt:,} + {tokens.completion:,}" if tokens.samples else "-",
                "-" if tokens.cost is None else f"{tokens.cost:.4f}",
            ]
        )
    return table(head, rows, numbers=range(1, len(head)))


def _model(one: ModelSummary) -> str:
    parts = [f"<h2>{escape(one.model)}</h2>"]
    rates = [(found.problem, found.rate) for found in one.problems if found.rate is not None]
    if rates:
        parts += ["<h3>Problems</h3>", strip([(name, rate) for name, rate in rates], "pass rate of every problem")]
    if one.categories:
        named = {f"{ALL_CATEGORIES.get(code, 'unknown')} ({code})": count for code, count in one.categories.items()}
        parts += ["<h3>Why samples failed</h3>", bars(named, "failures by category")]
    if len(one.steps_to_solve) > 1:
        steps = {f"{count} steps": samples for count, samples in one.steps_to_solve.items()}
        parts += ["<h3>Steps to solve</h3>", bars(steps, "passes by steps")]
    if one.difficulties:
        rows = [
            [group.name, str(group.problems), *(interval(found) for found in group.pass_at)]
            for group in one.difficulties
        ]
        ks = [f"pass@{found.k}" for found in one.difficulties[0].pass_at]
        parts += ["<h3>By difficulty</h3>", table(["difficulty", "problems", *ks], rows, numbers=range(1, 2 + len(ks)))]
    parts.append(_agreement(one))
    rows = [
        [
            found.problem,
            found.difficulty or "",
            f"{found.passed}/{found.n}",
            "-" if found.mean_return is None else f"{found.mean_return:.2f}",
            str(found.errors or ""),
            found.outcomes,
        ]
        for found in one.problems
    ]
    head = ["problem", "difficulty", "passed", "mean return", "errors", "samples"]
    parts += ["<h3>Every problem</h3>", table(head, rows, numbers=(2, 3, 4))]
    return "\n".join(part for part in parts if part)


def _agreement(one: ModelSummary) -> str:
    found = one.agreement
    if found is None:
        return ""
    counts = table(
        ["", "classic passes", "classic fails"],
        [
            ["golden passes", str(found.both_pass), str(found.only_golden)],
            ["golden fails", str(found.only_classic), str(found.both_fail)],
        ],
        numbers=(1, 2),
    )
    rows = [
        [each.problem, str(each.sample), each.golden_reason, f"{each.classic_category} ({each.classic_reason})"]
        for each in found.disagreements
    ]
    listed = table(["problem", "sample", "golden", "classic"], rows, numbers=(1,)) if rows else ""
    return f"<h3>Golden and classic judge</h3>{counts}{listed}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    """An HTML table of plain texts; the columns `numbers` are right-aligned."""
    right = set(numbers)

    def line(cells: Sequence[str], tag: str) -> str:
        marked = (f"<{tag}{' class=n' if place in right else ''}>{escape(cell)}" for place, cell in enumerate(cells))
        return f"<tr>{''.join(f'{cell}</{tag}>' for cell in marked)}</tr>"

    lines = "\n".join(line(row, "td") for row in rows)
    return f"<div class=scroll><table><thead>{line(head, 'th')}</thead><tbody>\n{lines}\n</tbody></table></div>"
