"""``verilog-taskapp verify``: a verdict on design files, as an episode would give it."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verilog_taskapp.cli.console import Exit, emit_json, fail, note, read_settings, run, status_of, stdout
from verilog_taskapp.cli.options import DatasetOption, JsonOption
from verilog_taskapp.errors import TaskAppError

if TYPE_CHECKING:
    from verilog_taskapp.environment.workspace import Workspace
    from verilog_taskapp.environment.world import World
    from verilog_taskapp.problems.model import Problem
    from verilog_taskapp.settings import Feedback, Settings


class JudgeChoice(StrEnum):
    """Who decides."""

    GOLDEN = "golden"
    CLASSIC = "classic"


class FeedbackChoice(StrEnum):
    """How much is told about a failure."""

    VERDICT = "verdict"
    HINTS = "hints"
    WAVEFORM = "waveform"


def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The design's files.", show_default=False)],
    problem: Annotated[str, typer.Option("--problem", metavar="ID", help="The problem that they solve.")],
    dataset: DatasetOption = None,
    judge: Annotated[
        JudgeChoice,
        typer.Option(
            "--judge",
            help="golden: the service's own judge. classic: VerilogEval's flow and its official analyser's rules, for "
            "comparison with published numbers; a design can talk its way past it.",
        ),
    ] = JudgeChoice.GOLDEN,
    feedback: Annotated[
        FeedbackChoice, typer.Option("--feedback", help="How much is told about a failure.")
    ] = FeedbackChoice.WAVEFORM,
    as_json: JsonOption = False,
) -> None:
    """Judge design files: exit status 0 pass, 1 fail, 2 wrong usage, 3 no verdict."""
    settings = read_settings(dataset=dataset)
    if judge is JudgeChoice.CLASSIC:  # published numbers are of the set as it is, faults included
        settings = settings.model_copy(update={"errata": False})
    texts = _read(files)
    report = run(_verify(settings, problem, texts, judge, feedback.value))
    if as_json:
        emit_json({name: value for name, value in report.items() if name != "told"})
    else:
        _print(report, feedback)
    if report["verdict"] == "none":
        fail("\n".join(report["messages"]), Exit.NO_ANSWER)
    raise typer.Exit(Exit.OK if report["verdict"] == "pass" else Exit.FAILED)


def _read(paths: list[Path]) -> dict[str, str]:
    """The files' texts by their place below the folder that they have in common."""
    from verilog_taskapp.environment.workspace import MAX_FILE_BYTES

    absolute = [Path(os.path.abspath(path)) for path in paths]
    common = Path(os.path.commonpath([path.parent for path in absolute]))
    texts: dict[str, str] = {}
    for path, place in zip(paths, absolute, strict=True):
        try:
            with path.open("rb") as file:
                texts[place.relative_to(common).as_posix()] = file.read(MAX_FILE_BYTES + 1).decode()
        except OSError as error:
            fail(f"{path}: {error.strerror}", Exit.USAGE)
        except UnicodeDecodeError:
            fail(f"{path}: not UTF-8 text, or larger than {MAX_FILE_BYTES} bytes", Exit.USAGE)
    return texts


def _workspace(problem: "Problem", texts: Mapping[str, str]) -> "Workspace":
    """The files as the model's workspace would hold them, by the same rules."""
    from verilog_taskapp.environment.workspace import Refused, Workspace

    workspace = Workspace(problem.visible_files)
    for name, text in texts.items():
        try:
            _, changes = workspace.write(name, text)
        except Refused as refusal:
            fail(f"{name}: {refusal}", Exit.USAGE)
        for change in changes:
            note(f"{name}: {change}")
    if not workspace.sources:
        fail("there is no .v or .sv file among them", Exit.USAGE)
    return workspace


async def _verify(
    settings: "Settings", problem_id: str, texts: Mapping[str, str], judge: JudgeChoice, feedback: "Feedback"
) -> dict[str, Any]:
    from verilog_taskapp.environment.world import World

    try:
        async with World.open(settings) as world:
            problem = world.problems.get(problem_id)
            workspace = _workspace(problem, texts)
            if judge is JudgeChoice.CLASSIC:
                return await _classic(world, problem, workspace)
            return await _golden(world, problem, workspace, feedback)
    except TaskAppError as error:
        if status_of(error) is not Exit.NO_ANSWER:
            raise
        return _no_verdict(judge, error.code, error.message)


async def _golden(world: "World", problem: "Problem", workspace: "Workspace", feedback: "Feedback") -> dict[str, Any]:
    from verilog_taskapp.environment.feedback import facts, told

    chosen = await world.choose(problem_id=problem.id)
    compilation = await world.judge.compile(chosen.prepared, workspace.files, workspace.sources)
    verdict = await world.judge.final(chosen.prepared, compilation)
    messages = compilation.messages(world.settings.compile_message_chars)
    return {
        "problem": problem.id,
        **facts(verdict, feedback),
        "messages": messages.splitlines(),
        "ms": round((verdict.wall_s + compilation.wall_s) * 1000, 3),
        "told": told(verdict, feedback, world.settings.design_output_chars),
    }


async def _classic(world: "World", problem: "Problem", workspace: "Workspace") -> dict[str, Any]:
    from verilog_taskapp.environment.world import bench_of, limits_of
    from verilog_taskapp.icarus.official import OfficialFlow

    flow = OfficialFlow(world.runner, world.tools, limits_of(world.settings, world.settings.compile_cpu_s))
    verdict = await flow.judge(bench_of(problem), workspace.files, workspace.sources)
    count = "" if verdict.samples is None else f", {verdict.mismatches} of {verdict.samples} samples mismatch"
    word = "passed" if verdict.passed else "failed"
    return {
        "problem": problem.id,
        "verdict": "pass" if verdict.passed else "fail",
        "reason": verdict.category_name,
        "category": verdict.category,
        "judge": JudgeChoice.CLASSIC.value,
        "samples": verdict.samples,
        "mismatches": verdict.mismatches,
        "outputs": {},
        "first_mismatch": None,
        "messages": verdict.log_excerpt.splitlines(),
        "ms": round(verdict.wall_s * 1000, 3),
        "cpu_ms": round(verdict.cpu_s * 1000, 3),
        "told": f"{word} by the official analyser's rules: {verdict.category} ({verdict.category_name}){count}",
    }


def _no_verdict(judge: JudgeChoice, reason: str, message: str) -> dict[str, Any]:
    return {
        "verdict": "none",
        "reason": reason,
        "judge": judge.value,
        "samples": None,
        "mismatches": None,
        "outputs": {},
        "first_mismatch": None,
        "messages": [message],
        "ms": 0.0,
    }


def _print(report: Mapping[str, Any], feedback: FeedbackChoice) -> None:
    from rich.text import Text

    if report["verdict"] == "none":
        return
    out = stdout()
    headline, _, rest = report["told"].partition("\n")
    colour = "green" if report["verdict"] == "pass" else "red"
    out.print(Text(f"{report['problem']}: {headline}", style=f"bold {colour}"), soft_wrap=True)
    if rest:
        out.print(rest, soft_wrap=True)
    relevant = report["verdict"] == "fail" or "category" not in report
    wanted = feedback is not FeedbackChoice.VERDICT or report["reason"] == "compile_error"
    if report["messages"] and relevant and wanted:
        title = "log" if "category" in report else "compiler messages"
        out.print(f"{title}:\n" + "\n".join(report["messages"]), soft_wrap=True)
