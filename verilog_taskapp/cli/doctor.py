"""``verilog-taskapp doctor``: what works here and what does not."""

import asyncio
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from verilog_taskapp import __version__
from verilog_taskapp.cli.console import Exit, emit_json, read_settings, run, stdout
from verilog_taskapp.cli.options import DatasetOption, EnvFileOption, JsonOption
from verilog_taskapp.errors import TaskAppError

if TYPE_CHECKING:
    from verilog_taskapp.icarus.runner import Runner
    from verilog_taskapp.icarus.toolchain import Toolchain
    from verilog_taskapp.settings import Settings

Health = Literal["ok", "info", "warning", "broken"]
STYLES: dict[Health, str] = {"ok": "green", "info": "dim", "warning": "yellow", "broken": "bold red"}

VERSION_NOTES = {
    11: "refuses T'(x) and signed'(x) casts, parameter type, parameter string, break and continue",
    12: "refuses break and continue",
    13: "refuses names used before their declaration and an int assigned to an enum",
}
"""What designs can not use, by the simulator's major version."""
NO_LEGACY_FLAG = (
    "has no flag to accept VerilogEval's testbenches, which use a name before its declaration; "
    "verify --judge classic fails on all of them"
)


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    health: Health
    detail: str


def doctor(dataset: DatasetOption = None, env_file: EnvFileOption = None, as_json: JsonOption = False) -> None:
    """Check the tool chain, the problem set, the folders and the keys; exit status 1 if something needed is broken."""
    settings = read_settings(env_file, dataset=dataset)
    findings = run(_examine(settings))
    works = all(one.health != "broken" for one in findings)
    if as_json:
        emit_json({"ok": works, "version": __version__, "checks": [asdict(one) for one in findings]})
    else:
        _print(findings, works)
    raise typer.Exit(Exit.OK if works else Exit.FAILED)


async def _examine(settings: "Settings") -> list[Finding]:
    simulator, version = await _simulator(settings)
    findings = [_python(), *simulator, await asyncio.to_thread(_cache, settings.cache_dir)]
    findings += await asyncio.to_thread(_problems, settings, version)
    return findings + _keys(settings)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok" if sys.version_info >= (3, 11) else "broken", version)


async def _simulator(settings: "Settings") -> tuple[list[Finding], str | None]:
    """The findings, and the simulator's version if it runs."""
    from verilog_taskapp.icarus.confinement import confinement, described
    from verilog_taskapp.icarus.runner import Runner
    from verilog_taskapp.icarus.toolchain import find

    findings: list[Finding] = []
    version: str | None = None
    try:
        sandbox = await asyncio.to_thread(confinement, settings.sandbox, settings.iverilog)
        health: Health = "warning" if sandbox is None else "ok"
        findings.append(Finding("sandbox", health, described(settings.sandbox)))
    except TaskAppError as error:
        return [Finding("sandbox" if "sandbox" in error.message else "iverilog", "broken", error.message)], None
    try:
        async with Runner(children=settings.max_children, scratch_root=settings.scratch_dir, sandbox=sandbox) as runner:
            findings.append(Finding("scratch folder", "ok", str(runner.scratch.parent)))
            tools = await find(settings.iverilog, runner)
            version = tools.version
            findings += _about(tools)
            findings.append(await _self_test(settings, runner, tools))
    except TaskAppError as error:
        findings.append(Finding("scratch folder" if len(findings) == 1 else "iverilog", "broken", error.message))
    return findings, version


def _about(tools: "Toolchain") -> list[Finding]:
    known = "" if tools.supported else "; not one of the versions that verdicts were tested with"
    findings = [
        Finding("iverilog", "ok" if tools.supported else "warning", f"{tools.version} at {tools.iverilog}{known}"),
        Finding("vvp", "ok", str(tools.vvp)),
    ]
    if tools.major in VERSION_NOTES:
        findings.append(Finding(f"Icarus {tools.major}", "info", VERSION_NOTES[tools.major]))
    if tools.major >= 13 and not tools.accepts_legacy_flags:
        findings.append(Finding(f"Icarus {tools.version}", "warning", NO_LEGACY_FLAG))
    return findings


async def _self_test(settings: "Settings", runner: "Runner", tools: "Toolchain") -> Finding:
    """Compile, record, replay and compare one bundled problem, cache left aside."""
    from verilog_taskapp.environment.world import bench_of, limits_of
    from verilog_taskapp.icarus.judge import Judge
    from verilog_taskapp.problems.load import load_problem_set

    bundled = settings.model_copy(update={"dataset": "bundled", "dataset_columns": {}, "max_instances": 1})
    try:
        problems = await asyncio.to_thread(load_problem_set, bundled)
        problem = problems.problems[0]
        judge = Judge(
            runner,
            tools,
            compile_limits=limits_of(settings, settings.compile_cpu_s),
            run_limits=limits_of(settings, settings.run_cpu_s),
        )
        prepared = await judge.prepare(bench_of(problem))
        design = f"module {problem.top}; endmodule\n"
        if prepared.status != "golden":
            return Finding("self test", "broken", f"{problem.id}: {prepared.reason}")
        refused = await judge.judge(prepared, {"TopModule.v": design}, ("TopModule.v",))
    except TaskAppError as error:
        return Finding("self test", "broken", error.message)
    if refused.passed:
        return Finding("self test", "broken", f"{problem.id}: an empty design passes")
    return Finding("self test", "ok", f"{problem.id}: the reference passes, an empty design does not")


def _cache(folder: Path) -> Finding:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding("cache folder", "warning", f"{folder}: {error.strerror}; golden traces are recorded every time")
    return Finding("cache folder", "ok", str(folder))


def _problems(settings: "Settings", version: str | None) -> list[Finding]:
    from verilog_taskapp.environment.world import secrets_of
    from verilog_taskapp.icarus.stimuli import PUBLIC
    from verilog_taskapp.icarus.store import GoldenStore
    from verilog_taskapp.problems.load import load_problem_set

    findings = [_datasets_library(settings)]
    try:
        found = load_problem_set(settings)
    except TaskAppError as error:
        return [*findings, Finding("problem set", "broken", error.message)]
    skipped = f", {len(found.skipped)} rows skipped" if found.skipped else ""
    sizes = ", ".join(f"{split} {count}" for split, count in found.facts.split_counts.items())
    errata = sum(bool(problem.errata) for problem in found)
    corrected = f", {errata} with errata" if errata else ""
    detail = f"{found.source}: {len(found)} problems ({sizes}){skipped}{corrected}"
    findings.append(Finding("problem set", "warning" if found.skipped else "ok", detail))
    if version is not None:
        store = GoldenStore(settings.cache_dir, version)
        secrets = secrets_of(settings)
        keys = [problem.content_hash for problem in found]
        public = sum(store.is_recorded(key, PUBLIC) for key in keys)
        hidden = sum(store.is_recorded(key, secrets.draws(key, index)) for key in keys for index in range(secrets.size))
        told = f"{public} public and {hidden} secret stimuli of {len(keys)} problems; the rest on first use"
        findings.append(Finding("golden traces", "info", told))
    return findings


def _datasets_library(settings: "Settings") -> Finding:
    needed = not settings.dataset.startswith(("bundled", "dir:"))
    try:
        import datasets
    except ImportError as error:
        return Finding("datasets library", "broken" if needed else "warning", f"cannot be imported: {error}")
    return Finding("datasets library", "ok", datasets.__version__)


def _keys(settings: "Settings") -> list[Finding]:
    findings = [
        Finding("server key", "ok", "set")
        if settings.server_keys
        else Finding("server key", "warning", "not set: protected routes answer 503 (ENVIRONMENT_API_KEY)")
    ]
    given = {"GROQ_API_KEY": settings.groq_api_key, "OPENAI_API_KEY": settings.openai_api_key}
    named = dict.fromkeys(settings.inference_key_envs)
    if settings.proxy_api_key_env:
        named[settings.proxy_api_key_env] = None
    for name, value in {**named, **settings.named_keys, **given}.items():
        findings.append(Finding(f"provider key {name}", "info", "set" if value else "not set"))
    return findings


def _print(findings: list[Finding], works: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in findings:
        table.add_row(one.name, Text(one.health, style=STYLES[one.health]), Text(one.detail))
    out = stdout()
    out.print(Text(f"verilog-taskapp {__version__} on {os.uname().sysname}", style="bold"))
    out.print(table)
    if not works:
        out.print("\nsomething that is needed is broken", style="bold red")
