"""``verilog-taskapp compare``: two evaluations of the same problems, side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verilog_taskapp.cli.console import Exit, emit_json, fail, note, stdout
from verilog_taskapp.cli.options import JsonOption

if TYPE_CHECKING:
    from verilog_taskapp.evaluation.comparison import Comparison
    from verilog_taskapp.evaluation.directory import Saved

MAX_CHANGED = 40
"""Problems that are printed; --json has all."""


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Directory of an evaluation.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="Directory of another one.", show_default=False)],
    model_a: Annotated[
        str | None, typer.Option("--model-a", metavar="M", help="Which model, if A has several.", show_default=False)
    ] = None,
    model_b: Annotated[
        str | None, typer.Option("--model-b", metavar="M", help="Which model, if B has several.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two evaluations, sample by sample of the same problem: B minus A."""
    from verilog_taskapp.evaluation.comparison import NotComparable
    from verilog_taskapp.evaluation.comparison import compare as compared
    from verilog_taskapp.evaluation.directory import WrongDirectory, load, samples_in

    try:
        sides = []
        for folder, wanted in ((a, model_a), (b, model_b)):
            config = load(folder)
            model = _model(folder, config, wanted)
            samples = [one for one in samples_in(folder, config) if one.model == model]
            sides.append((config, f"{folder} ({model})", samples))
        (first, name_a, samples_a), (second, name_b, samples_b) = sides
        if first.dataset["fingerprint"] != second.dataset["fingerprint"]:
            note("the two are of different versions of the problem set: only problems of the same id are compared")
        bootstrap = {"resamples": first.how["bootstrap"], "seed": first.what["eval"]["seed"]}
        found = compared((name_a, name_b), samples_a, samples_b, **bootstrap)
    except (WrongDirectory, NotComparable) as error:
        fail(str(error), Exit.USAGE)
    if as_json:
        emit_json(found.model_dump(mode="json"))
    else:
        _print(found)


def _model(folder: Path, config: "Saved", wanted: str | None) -> str:
    models = config.models
    if wanted is None and len(models) == 1:
        return models[0]
    if wanted in models:
        return str(wanted)
    from verilog_taskapp.evaluation.directory import WrongDirectory

    what = "holds several models, name one" if wanted is None else f"has no model {wanted!r}"
    raise WrongDirectory(f"{folder} {what}: {', '.join(models)}")


def _print(found: "Comparison") -> None:
    from rich.table import Table

    out = stdout()
    out.print(
        f"A  {found.a}: pass@1 {found.pass_at_1_a:.1%}\n"
        f"B  {found.b}: pass@1 {found.pass_at_1_b:.1%}\n"
        f"B - A  {found.difference:+.1%} [{found.low:+.1%}, {found.high:+.1%}] over {found.problems} problems",
        soft_wrap=True,
    )
    out.print(
        f"{found.pairs} pairs: {found.both} pass in both, {found.neither} in neither, {found.only_a} only in A, "
        f"{found.only_b} only in B; {found.unpaired} samples have no counterpart",
        soft_wrap=True,
    )
    out.print(
        f"pass rate: {found.better} problems better, {found.worse} worse (exact sign test, p = {found.sign_p:.3g})\n"
        f"solved by more than half: {found.gained} gained, {found.lost} lost "
        f"(McNemar's exact test, p = {found.mcnemar_p:.3g})",
        soft_wrap=True,
    )
    if not found.changed:
        return
    table = Table(box=None, pad_edge=False)
    for name in ("problem that changed", "A", "B", "B - A"):
        table.add_column(name, justify="left" if name.startswith("problem") else "right")
    for one in found.changed[:MAX_CHANGED]:
        table.add_row(
            one.problem,
            f"{one.a_passed}/{one.a_samples}",
            f"{one.b_passed}/{one.b_samples}",
            f"{one.difference:+.0%}",
        )
    out.print(table)
    if len(found.changed) > MAX_CHANGED:
        out.print(f"... and {len(found.changed) - MAX_CHANGED} more, with --json")
