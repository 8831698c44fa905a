"""``verilog-taskapp problems``: what is in a problem set."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from verilog_taskapp.cli.console import Exit, emit_json, fail, note, read_settings, status_of, stdout
from verilog_taskapp.cli.options import DatasetOption, JsonOption, Split
from verilog_taskapp.errors import TaskAppError

if TYPE_CHECKING:
    from verilog_taskapp.problems.model import Problem
    from verilog_taskapp.problems.problem_set import ProblemSet

app = typer.Typer(help="List the problems of a set, or show one.", no_args_is_help=True)


@app.command("list")
def list_problems(
    dataset: DatasetOption = None,
    split: Annotated[Split, typer.Option("--split", help="Only this part of the set.")] = Split.ALL,
    as_json: JsonOption = False,
) -> None:
    """List the problems of a set with their splits."""
    problem_set = _load(dataset)
    try:
        chosen = problem_set.split(split.value)
    except TaskAppError as error:
        fail(error.message, status_of(error))
    if as_json:
        emit_json({**_set_facts(problem_set), "problems": [_facts(problem) for problem in chosen]})
        return
    _print_list(problem_set, chosen)
    for row in problem_set.skipped:
        note(f"skipped {row.id}: {row.reason}")


@app.command("show")
def show(
    problem_id: Annotated[str, typer.Argument(metavar="ID", help="The problem's id.")],
    dataset: DatasetOption = None,
    with_reference: Annotated[
        bool, typer.Option("--with-reference", help="Also show the hidden reference and testbench.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a problem: its facts and its specification."""
    problem_set = _load(dataset)
    try:
        problem = problem_set.get(problem_id)
    except TaskAppError as error:
        fail(error.message, status_of(error))
    shown = {**_facts(problem), "prompt": problem.prompt, "visible_files": dict(problem.visible_files)}
    hidden = {
        "reference": problem.reference,
        "testbench": problem.testbench,
        "hidden_files": dict(problem.hidden_files),
    }
    if as_json:
        emit_json({**shown, **(hidden if with_reference else {})})
        return
    out = stdout()
    for name, value in _facts(problem).items():
        if value:
            out.print(f"{name:<12} {', '.join(value) if isinstance(value, list) else value}", soft_wrap=True)
    texts = {"prompt": problem.prompt, **problem.visible_files}
    if with_reference:
        texts |= {"reference": problem.reference, "testbench": problem.testbench, **problem.hidden_files}
    for name, text in texts.items():
        out.rule(name, align="left")
        out.print(text.strip(), soft_wrap=True)


def _load(dataset: str | None) -> "ProblemSet":
    settings = read_settings(dataset=dataset)
    from verilog_taskapp.problems.load import load_problem_set

    try:
        return load_problem_set(settings)
    except TaskAppError as error:
        fail(error.message, Exit.NO_ANSWER)


def _set_facts(problem_set: "ProblemSet") -> dict[str, Any]:
    facts = problem_set.facts
    return {
        "dataset": {
            "id": facts.id,
            "name": facts.name,
            "version": facts.version,
            "instance_count": facts.instance_count,
            "splits": facts.split_counts,
        },
        "skipped": [{"id": row.id, "reason": row.reason} for row in facts.skipped],
    }


def _facts(problem: "Problem") -> dict[str, Any]:
    from verilog_taskapp.problems.splits import effective_split

    return {
        "id": problem.id,
        "title": problem.title,
        "description": problem.description,
        "split": effective_split(problem),
        "difficulty": problem.difficulty,
        "tags": list(problem.tags),
        "top": problem.top,
        "source": problem.source,
        "licence": problem.licence,
        "errata": [erratum.what for erratum in problem.errata],
    }


def _print_list(problem_set: "ProblemSet", chosen: "tuple[Problem, ...]") -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("id", "split", "difficulty", "title"):
        table.add_column(name, no_wrap=name != "title")
    for problem in chosen:
        facts = _facts(problem)
        table.add_row(facts["id"], facts["split"], facts["difficulty"], facts["title"])
    out = stdout()
    out.print(table)
    counts = ", ".join(f"{split} {count}" for split, count in problem_set.facts.split_counts.items())
    out.print(f"\n{problem_set.facts.description} ({counts})", soft_wrap=True)
