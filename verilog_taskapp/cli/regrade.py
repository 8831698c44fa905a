"""``verilog-taskapp regrade``: the stored designs of an evaluation, judged again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verilog_taskapp.cli.console import Exit, fail, note, progress, read_settings, run
from verilog_taskapp.cli.evaluate import JudgesChoice
from verilog_taskapp.cli.options import DatasetOption

if TYPE_CHECKING:
    from verilog_taskapp.evaluation.directory import Saved
    from verilog_taskapp.evaluation.samples import Sample
    from verilog_taskapp.evaluation.summary import Summary
    from verilog_taskapp.settings import Settings


def regrade(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of an evaluation.", show_default=False)],
    judge: Annotated[
        JudgesChoice, typer.Option("--judge", help="Who judges; of both, golden decides and differences are shown.")
    ] = JudgesChoice.BOTH,
    iverilog: Annotated[
        str | None,
        typer.Option(
            "--iverilog", metavar="PATH", help="Another Icarus compiler.  \\[VERILOG_IVERILOG]", show_default=False
        ),
    ] = None,
    dataset: DatasetOption = None,
) -> None:
    """Judge every stored design again, without asking a model. The results go to a directory inside DIR."""
    from verilog_taskapp.evaluation.directory import WrongDirectory
    from verilog_taskapp.evaluation.regrading import read_evaluation

    try:
        config, samples = read_evaluation(folder)
        settings = read_settings(dataset=dataset or config.dataset["source"], iverilog=iverilog)
        target, summary = run(_regrade(settings, folder, config, samples, judge))
    except WrongDirectory as error:
        fail(str(error), Exit.USAGE)
    except OSError as error:
        fail(f"{error.filename or folder}: {error.strerror or error}", Exit.NO_ANSWER)
    from verilog_taskapp.cli.results import print_summary

    print_summary(summary)
    note(f"results are in {target}")


async def _regrade(
    settings: "Settings", folder: Path, config: "Saved", samples: "list[Sample]", judge: JudgesChoice
) -> "tuple[Path, Summary]":
    from verilog_taskapp.evaluation import regrading
    from verilog_taskapp.evaluation.grading import Grader

    async with Grader.open(settings) as grader:
        with progress() as bar:
            counted = bar.add_task("designs", total=len(samples))

            def show(done: int, _: int) -> None:
                bar.update(counted, completed=done)

            return await regrading.regrade(folder, config, samples, grader, judge.value, show)
