"""``verilog-taskapp export``: stored conversations as fine-tuning examples."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verilog_taskapp.cli.console import Exit, emit_json, fail, progress, read_settings, run, stdout
from verilog_taskapp.cli.options import EnvFileOption, JsonOption, Split

if TYPE_CHECKING:
    from verilog_taskapp.settings import Settings
    from verilog_taskapp.tracing.export import Exported
    from verilog_taskapp.tracing.lists import TraceFilter


class Format(StrEnum):
    """What can be written."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    DATASETS = "datasets"


_ENDINGS = {".jsonl": Format.JSONL, ".json": Format.JSONL, ".parquet": Format.PARQUET, "": Format.DATASETS}


def export(
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="File or directory; replaced if it exists.")],
    kind: Annotated[
        Format | None,
        typer.Option("--format", help="What to write.  \\[by OUTPUT's ending; none: datasets]", show_default=False),
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run", help="Only this run.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only this model.")] = None,
    problem: Annotated[str | None, typer.Option("--problem", help="Only this problem.")] = None,
    split: Annotated[Split, typer.Option("--split", help="Only problems of this part of their set.")] = Split.ALL,
    min_return: Annotated[float | None, typer.Option("--min-return", help="Only episodes with at least that.")] = None,
    passed: Annotated[
        bool | None, typer.Option("--passed/--failed", help="Only episodes that passed, or that did not.")
    ] = None,
    dedupe: Annotated[bool, typer.Option("--dedupe", help="Leave out conversations that are there already.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many, the oldest.")] = None,
    env_file: EnvFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write stored conversations as fine-tuning examples (OpenAI messages, as TRL's SFTTrainer takes them).

    Reads the traces that VERILOG_TRACE_DB_URL or the cache directory holds; a server may be running.
    """
    chosen = kind or _ENDINGS.get(output.suffix.lower())
    if chosen is None:
        fail(f"--format is needed: {output.suffix} could be anything", Exit.USAGE)
    settings = read_settings(env_file)
    from verilog_taskapp.tracing.lists import TraceFilter

    which = TraceFilter(
        run_id=run_id,
        model=model,
        problem_id=problem,
        split=None if split is Split.ALL else split.value,
        min_return=min_return,
        passed=passed,
    )
    exported = run(_export(settings, which, output, chosen, dedupe=dedupe, limit=limit))
    if as_json:
        emit_json({"output": str(output), "format": chosen.value, **asdict(exported)})
    else:
        stdout().print(_told(exported, output), soft_wrap=True)
    if not exported.examples:
        raise typer.Exit(Exit.FAILED)


async def _export(
    settings: "Settings", which: "TraceFilter", output: Path, kind: Format, *, dedupe: bool, limit: int | None
) -> "Exported":
    from verilog_taskapp.tracing.database import TraceDatabase, faults
    from verilog_taskapp.tracing.export import export
    from verilog_taskapp.tracing.faults import TraceDatabaseFailed, TracesRefused
    from verilog_taskapp.tracing.location import TraceLocationInvalid, trace_location
    from verilog_taskapp.tracing.queries import TraceQueries

    try:
        location = trace_location(settings)
    except TraceLocationInvalid as error:
        fail(str(error), Exit.USAGE)
    if location.file is not None and not location.file.exists():
        fail(f"no traces are stored: there is no {location.file}", Exit.NO_ANSWER)
    database = TraceDatabase(location)
    try:
        await database.open()
        with progress() as bar:
            task = bar.add_task("examples", total=None)
            with faults():
                return await export(
                    TraceQueries(database.readers),
                    which,
                    output,
                    kind.value,
                    dedupe=dedupe,
                    limit=limit,
                    progress=lambda done: bar.update(task, completed=done),
                )
    except (TraceDatabaseFailed, TracesRefused) as error:
        fail(f"the export failed: {error}", Exit.NO_ANSWER)
    finally:
        await database.close()


def _told(exported: "Exported", output: Path) -> str:
    parts = [f"{exported.examples} examples written to {output}"]
    if exported.duplicates:
        parts.append(f"{exported.duplicates} duplicates left out")
    if exported.without:
        parts.append(f"{exported.without} traces without a model's words left out")
    return ", ".join(parts)
