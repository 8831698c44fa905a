"""An evaluation from its configuration to its directory full of results."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from verilog_taskapp.errors import InvalidRequest
from verilog_taskapp.evaluation.backend import Backend, InProcess, SampleFault, connect
from verilog_taskapp.evaluation.campaign import Campaign, Draw, Tally, tasks_of
from verilog_taskapp.evaluation.config import EvalConfig
from verilog_taskapp.evaluation.directory import Saved, begin, in_order, load, samples_in, saved
from verilog_taskapp.evaluation.grading import Grader
from verilog_taskapp.evaluation.journal import RESULTS_FILE, Journal, write_atomically
from verilog_taskapp.evaluation.report import as_html
from verilog_taskapp.evaluation.sampler import Sampler
from verilog_taskapp.evaluation.samples import Sample
from verilog_taskapp.evaluation.summary import Summary, as_csv, summarize
from verilog_taskapp.inference.client import ChatClient
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.problems.problem_set import ProblemSet
from verilog_taskapp.services import open_services
from verilog_taskapp.settings import Settings

SUMMARY_FILE, TABLE_FILE, REPORT_FILE = "summary.json", "summary.csv", "report.html"


@dataclass(frozen=True)
class Opened:
    """What an evaluation works with."""

    config: EvalConfig
    saved: Saved
    chosen: tuple[Problem, ...]
    draw: Draw


@dataclass(frozen=True)
class Outcome:
    """How an evaluation ended."""

    summary: Summary
    tally: Tally
    fatal: SampleFault | None
    dropped_bytes: int
    """Of a torn line that a killed run had left."""


@asynccontextmanager
async def opened(
    config: EvalConfig, settings: Settings, *, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[Opened]:
    """Everything that samples are drawn with; `transport` is the network of model calls, for tests.

    Raises `SampleFault` when the service does not answer, `InvalidRequest` for a problem or a set that is not there,
    and the faults of opening the service's parts.
    """
    settings = _adapted(config, settings)
    async with AsyncExitStack() as stack:
        world = None
        backend: Backend
        if config.eval.server is None:
            services = await stack.enter_async_context(open_services(settings, transport=transport))
            world, chat, problems = services.world, services.chat, services.world.problems
            backend = InProcess(services.rollouts)
        else:
            key = settings.server_keys[0] if settings.server_keys else None
            backend = await stack.enter_async_context(
                connect(
                    config.eval.server,
                    key,
                    max_time_s=config.eval.max_time_s,
                    concurrency=config.eval.concurrency,
                )
            )
            problems = await asyncio.to_thread(load_problem_set, settings)
            chat = await stack.enter_async_context(ChatClient(settings, transport))
            _require_same_set(problems, backend.versions.dataset)
        grader = None
        if "classic" in config.judges:
            opening = Grader.open(settings)
            grader = await (Grader.over(world) if world is not None else stack.enter_async_context(opening))
        chosen = _chosen(config, problems)
        sampler = Sampler(config, settings, problems, backend, chat, world=world, grader=grader)
        kept = saved(config, settings, problems, [one.id for one in chosen], backend.versions)
        yield Opened(config, kept, chosen, sampler.draw)


def _adapted(config: EvalConfig, settings: Settings) -> Settings:
    """The settings with the evaluation's own problem set and room for its samples."""
    changes: dict[str, object] = {"max_rollouts": max(settings.max_rollouts, config.eval.concurrency)}
    if config.eval.dataset is not None:
        changes["dataset"] = config.eval.dataset
    return settings.model_copy(update=changes)


def _require_same_set(problems: ProblemSet, version: str) -> None:
    if problems.version != version:
        message = (
            f"the server's problems (version {version}) are not those of {problems.source} here (version "
            f"{problems.version}): give --dataset, and VERILOG_MAX_INSTANCES and VERILOG_ERRATA, as the server has them"
        )
        raise InvalidRequest(message, stage="dataset")


def _chosen(config: EvalConfig, problems: ProblemSet) -> tuple[Problem, ...]:
    part = problems.split(config.eval.split)
    if not config.eval.problems:
        return part
    for one in config.eval.problems:
        problems.get(one)  # says which ids are close to a wrong one
    wanted = [one for one in part if one.id in config.eval.problems]
    missing = sorted(set(config.eval.problems) - {one.id for one in wanted})
    if missing:
        raise InvalidRequest(f"not in the split {config.eval.split}: {', '.join(missing)}", stage="dataset")
    return tuple(wanted)


async def evaluate(
    ready: Opened,
    folder: Path,
    *,
    resume: bool,
    stopping: asyncio.Event,
    show: Callable[[Tally], None],
) -> Outcome:
    """Draw every sample that is missing and write the results, also when the run is stopped or cancelled.

    `stopping` ends it after the samples in flight; cancellation ends it at once, and is raised once the results are
    written. Raises `WrongDirectory`, `JournalFault` and OSError.
    """
    await asyncio.to_thread(begin, folder, ready.saved, resume=resume)
    with Journal(folder / RESULTS_FILE) as journal:
        campaign = Campaign(
            tasks_of(ready.config, ready.chosen),
            ready.draw,
            journal,
            ready.config.eval.concurrency,
            ready.config.eval.retries,
            show,
            stopping=stopping,
        )
        try:
            await campaign.run()
        finally:
            summary = write_results(folder)
    return Outcome(summary, campaign.tally, campaign.fatal, journal.dropped_bytes)


def write_results(folder: Path) -> Summary:
    """Make summary, table and report from what a directory holds; blocks. Raises `WrongDirectory` and OSError."""
    config = load(folder)
    return write_summary(folder, config, samples_in(folder, config))


def write_summary(folder: Path, config: Saved, samples: list[Sample]) -> Summary:
    """The same for samples that were read already."""
    summary = summarize(config, in_order(samples, config))
    write_atomically(folder / SUMMARY_FILE, summary.model_dump_json(indent=2) + "\n")
    write_atomically(folder / TABLE_FILE, as_csv(summary))
    write_atomically(folder / REPORT_FILE, as_html(config, summary))
    return summary
