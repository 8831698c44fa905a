"""``verilog-taskapp check``: does every reference pass its own testbench here?"""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verilog_taskapp.cli.console import Exit, emit_json, note, progress, read_settings, run, stdout
from verilog_taskapp.cli.options import DatasetOption, JsonOption
from verilog_taskapp.errors import EnvironmentFailed

if TYPE_CHECKING:
    from verilog_taskapp.settings import Settings


def check(
    dataset: DatasetOption = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Simulators at once.  \\[the number of cores]", show_default=False),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Also record the secret stimuli of every usable problem now.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run every reference through its own testbench and report which problems are usable.

    Results are kept in the cache, recordings too: without --record a problem's secret stimuli are recorded when they
    are first needed. Unusable problems are reported, not errors; the exit status is 3 when some could
    not be checked through a fault of this machine.
    """
    report = run(_check(read_settings(dataset=dataset, max_children=jobs), record=record))
    if as_json:
        emit_json(report)
    else:
        _print(report)
    if report["failed"]:
        note(f"{len(report['failed'])} problems could not be checked: {report['failed'][0]['reason']}", kind="error")
        raise typer.Exit(Exit.NO_ANSWER)


async def _check(settings: "Settings", *, record: bool) -> dict[str, Any]:
    from verilog_taskapp.environment.world import World, bench_of
    from verilog_taskapp.icarus.judge import Prepared
    from verilog_taskapp.problems.model import Problem

    found: dict[str, list[dict[str, str]]] = {"unusable": [], "classic": [], "failed": []}
    golden = recorded = 0
    async with World.open(settings) as world:
        turn = asyncio.Semaphore(world.runner.children * 2)

        async def examine(problem: Problem) -> tuple[Problem, Prepared | EnvironmentFailed]:
            nonlocal recorded
            async with turn:
                try:
                    result: Prepared | EnvironmentFailed = await world.judge.prepare(bench_of(problem))
                    if record and isinstance(result, Prepared):
                        count = await world.judge.record_secrets(result)
                        recorded += count
                except EnvironmentFailed as error:
                    result = error
            bar.advance(counted)
            return problem, result

        with progress() as bar:
            counted = bar.add_task(f"Icarus {world.tools.version}", total=len(world.problems))
            results = await asyncio.gather(*(examine(problem) for problem in world.problems))
        for problem, result in results:
            if isinstance(result, EnvironmentFailed):
                found["failed"].append({"id": problem.id, "reason": result.message})
            elif result.status == "golden":
                golden += 1
            else:
                found[result.status].append({"id": problem.id, "reason": result.reason})
        return {
            "dataset": world.problems.source,
            "version": world.problems.version,
            "simulator": world.tools.version,
            "usable": golden + len(found["classic"]),
            "golden": golden,
            "secret_stimuli_recorded": recorded,
            **found,
            "skipped": [{"id": row.id, "reason": row.reason} for row in world.problems.skipped],
            "errata": [
                {"id": problem.id, "reason": erratum.what} for problem in world.problems for erratum in problem.errata
            ],
        }


def _print(report: dict[str, Any]) -> None:
    from rich.table import Table

    out = stdout()
    headings = {
        "unusable": "unusable: the reference does not pass",
        "classic": "judged the weaker way, by the testbench's own words",
        "skipped": "skipped rows of the set",
        "errata": "known faults of the set (VERILOG_ERRATA=false takes it as it is)",
        "failed": "not checked",
    }
    for key, heading in headings.items():
        if not report[key]:
            continue
        table = Table(title=heading, title_justify="left", title_style="bold", box=None, pad_edge=False)
        table.add_column("id", no_wrap=True)
        table.add_column("reason", overflow="fold")
        for one in report[key]:
            table.add_row(one["id"], one["reason"])
        out.print(table)
        out.print()
    total = report["usable"] + len(report["unusable"]) + len(report["failed"])
    out.print(
        f"{report['dataset']}: {report['usable']} of {total} problems are usable with Icarus {report['simulator']} "
        f"({report['golden']} judged by golden trace, {len(report['classic'])} the classic way)",
        soft_wrap=True,
    )
