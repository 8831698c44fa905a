"""Judging the stored designs of an evaluation again: with another judge, another simulator or a newer version."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verilog_taskapp import __version__
from verilog_taskapp.errors import ProblemNotFound, TaskAppError
from verilog_taskapp.evaluation.config import JudgeChoice, JudgeName
from verilog_taskapp.evaluation.directory import CONFIG_FILE, Saved, WrongDirectory, load, samples_in
from verilog_taskapp.evaluation.grading import Grader
from verilog_taskapp.evaluation.journal import RESULTS_FILE, write_atomically, write_samples
from verilog_taskapp.evaluation.run import write_summary
from verilog_taskapp.evaluation.samples import Failure, Sample
from verilog_taskapp.evaluation.scoring import scored
from verilog_taskapp.evaluation.summary import Summary
from verilog_taskapp.icarus.store import JUDGE_VERSION

IN_FLIGHT = 16
"""Designs that are waiting for the judge's processes at once."""


def read_evaluation(folder: Path) -> tuple[Saved, list[Sample]]:
    """An evaluation and its samples. Raises `WrongDirectory`."""
    config = load(folder)
    return config, samples_in(folder, config)


def name_of(judge: JudgeChoice, simulator: str) -> str:
    """The directory that results of this judge and simulator are written to, inside the evaluation's own."""
    return f"regrade-{judge}-icarus{simulator}"


async def regrade(
    folder: Path,
    config: Saved,
    samples: list[Sample],
    grader: Grader,
    judge: JudgeChoice,
    show: Callable[[int, int], None],
) -> tuple[Path, Summary]:
    """Judge every stored design and write a directory beside the old results, which stay as they are.

    `show` is told how many are done, and of how many. Raises `WrongDirectory` when the problems are other ones than
    those that the designs were written for, and OSError. A design without a verdict becomes an error.
    """
    judges: tuple[JudgeName, ...] = ("golden", "classic") if judge == "both" else (judge,)
    _require_same_problems(samples, grader)
    places = asyncio.Semaphore(IN_FLIGHT)
    done = 0

    async def graded(sample: Sample) -> Sample:
        nonlocal done
        async with places:
            found = await _regraded(sample, grader, judges)
        done += 1
        show(done, len(samples))
        return found

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(graded(one)) for one in samples]
    tools = grader.world.tools
    target = folder / name_of(judge, tools.version)
    new = _regraded_config(config, judge, folder.name, f"icarus {tools.version}", grader.world.problems.version)
    results = [task.result() for task in tasks]
    return target, await asyncio.to_thread(_write, target, new, results)


async def _regraded(sample: Sample, grader: Grader, judges: tuple[JudgeName, ...]) -> Sample:
    if not sample.files or sample.status == "error":
        return sample
    try:
        judgements = await grader.judgements(sample.problem, sample.files, sample.sources, judges)
    except TaskAppError as error:  # there is no verdict, which is neither a pass nor a failure
        failure = Failure(code=error.code, message=error.message, stage=error.stage)
        return sample.model_copy(update={"status": "error", "passed": None, "error": failure})
    fresh = sample.model_copy(update={"judgements": judgements, "status": "done"})
    return scored(fresh, judges[0])


def _require_same_problems(samples: list[Sample], grader: Grader) -> None:
    for sample in samples:
        try:
            problem = grader.world.problems.get(sample.problem)
        except ProblemNotFound as error:
            raise WrongDirectory(f"{error.message}: give the --dataset that the evaluation was of") from error
        if sample.problem_hash and sample.problem_hash != problem.content_hash:
            raise WrongDirectory(
                f"the problem {sample.problem} is not what it was when the design was written: give the --dataset, and "
                "VERILOG_ERRATA, of the evaluation"
            )


def _regraded_config(config: Saved, judge: JudgeChoice, origin: str, simulator: str, dataset: str) -> Saved:
    what: dict[str, Any] = {**config.what, "eval": {**config.what["eval"], "judge": judge}}
    versions = {"service": __version__, "judge": JUDGE_VERSION, "simulator": simulator, "dataset": dataset}
    regraded = {"of": origin, "versions": config.versions, "judge": config.what["eval"]["judge"]}
    return config.model_copy(update={"what": what, "versions": versions, "regraded": regraded})


def _write(target: Path, config: Saved, samples: list[Sample]) -> Summary:
    target.mkdir(exist_ok=True)
    write_atomically(target / CONFIG_FILE, config.model_dump_json(indent=2) + "\n")
    write_samples(target / RESULTS_FILE, samples)
    return write_summary(target, config, samples)
