"""What evaluations found, as tables for people."""

from typing import TYPE_CHECKING

from verilog_taskapp.cli.console import stdout

if TYPE_CHECKING:
    from verilog_taskapp.evaluation.agreement import Agreement
    from verilog_taskapp.evaluation.summary import ModelSummary, Summary

MAX_DISAGREEMENTS = 20
"""Printed; all of them are in the report."""


def print_summary(summary: "Summary") -> None:
    """The numbers of every model, and how the judges agree."""
    from rich.table import Table

    from verilog_taskapp.evaluation.report import interval

    out = stdout()
    table = Table(box=None, pad_edge=False)
    ks = sorted({found.k for one in summary.models for found in one.pass_at})
    for name in ("model", "samples", "passed", "errors", *(f"pass@{k}" for k in ks), "return"):
        table.add_column(name, justify="left" if name == "model" else "right", overflow="fold")
    for one in summary.models:
        by_k = {found.k: found for found in one.pass_at}
        counts = (f"{one.scored}/{one.expected}", str(one.passed), str(one.errors))
        returned = "-" if one.mean_return is None else f"{one.mean_return.value:.2f}"
        table.add_row(one.model, *counts, *(interval(by_k.get(k)) for k in ks), returned)
    out.print(table)
    for one in summary.models:
        _print_details(one)


def _print_details(one: "ModelSummary") -> None:
    from verilog_taskapp.evaluation.categories import ALL_CATEGORIES

    out = stdout()
    if one.categories:
        told = ", ".join(f"{count} {ALL_CATEGORIES.get(code, code)} ({code})" for code, count in one.categories.items())
        out.print(f"{one.model} failed: {told}", soft_wrap=True)
    if one.errors:
        told = ", ".join(f"{count} {code}" for code, count in one.error_codes.items())
        out.print(f"{one.model} errors, in no rate: {told}", soft_wrap=True)
    if one.unusable:
        out.print(f"{one.model}: {one.unusable} samples are of problems that cannot be judged here", soft_wrap=True)
    if one.tokens.cost is not None:
        out.print(f"{one.model} cost: {one.tokens.cost:.4f} for {one.tokens.samples} samples", soft_wrap=True)
    if one.agreement is not None:
        _print_agreement(one.model, one.agreement)


def _print_agreement(model: str, found: "Agreement") -> None:
    from rich.table import Table

    out = stdout()
    out.print(
        f"\n{model}: golden and classic agree on {found.both_pass + found.both_fail} of {found.compared} designs",
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False)
    for name in ("", "classic passes", "classic fails"):
        table.add_column(name, justify="right" if name else "left")
    table.add_row("golden passes", str(found.both_pass), str(found.only_golden))
    table.add_row("golden fails", str(found.only_classic), str(found.both_fail))
    out.print(table)
    if not found.disagreements:
        return
    listed = Table(box=None, pad_edge=False)
    for name in ("problem", "sample", "golden", "classic"):
        listed.add_column(name)
    for each in found.disagreements[:MAX_DISAGREEMENTS]:
        listed.add_row(
            each.problem, str(each.sample), each.golden_reason, f"{each.classic_reason} ({each.classic_category})"
        )
    out.print(listed)
    if len(found.disagreements) > MAX_DISAGREEMENTS:
        out.print(f"... and {len(found.disagreements) - MAX_DISAGREEMENTS} more, in the report")
