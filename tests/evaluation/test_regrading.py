"""Stored designs are judged again, by another judge or the same."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evaluation.test_run import RIGHT, TALKS, config_of, evaluated
from tests.support import Model, saying
from verilog_taskapp.evaluation.directory import WrongDirectory, load, samples_in
from verilog_taskapp.evaluation.grading import Grader
from verilog_taskapp.evaluation.regrading import read_evaluation, regrade
from verilog_taskapp.settings import Settings


@pytest.fixture
async def folder(settings: Settings, model: Model, tmp_path: Path) -> Path:
    """An evaluation of four samples: two right designs, one that talks its way to a pass, one without a design."""
    answers: Iterator[str] = iter([RIGHT, TALKS, RIGHT, ""])
    model.answer = lambda body: saying(f"```verilog\n{next(answers)}```")(body)
    config = config_of(mode="single-shot", problems=("vt001_min_max",), n=4, concurrency=1)
    await evaluated(config, settings, model, tmp_path / "out")
    return tmp_path / "out"


async def test_the_other_judge_is_asked_and_the_old_results_stay(settings: Settings, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    config, samples = read_evaluation(folder)
    assert [one.passed for one in samples] == [True, False, True, False]
    shown: list[tuple[int, int]] = []
    async with Grader.open(settings) as grader:
        target, summary = await regrade(folder, config, samples, grader, "classic", lambda *done: shown.append(done))
        version = grader.world.tools.version
    assert target == folder / f"regrade-classic-icarus{version}"
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    again = samples_in(target, load(target))
    assert [one.passed for one in again] == [True, True, True, False]
    assert [one.category for one in again] == [None, None, None, "no_design"]
    assert summary.models[0].passed == 3
    assert sorted(shown) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    written = json.loads((target / "config.json").read_text())
    assert (written["what"]["eval"]["judge"], written["regraded"]["judge"]) == ("classic", "golden")


async def test_the_same_judge_says_the_same(settings: Settings, folder: Path) -> None:
    config, samples = read_evaluation(folder)
    async with Grader.open(settings) as grader:
        target, summary = await regrade(folder, config, samples, grader, "both", lambda *_: None)
    again = samples_in(target, load(target))
    assert [(one.passed, one.category) for one in again] == [(one.passed, one.category) for one in samples]
    agreement = summary.models[0].agreement
    assert agreement is not None
    assert (agreement.both_pass, agreement.only_classic, agreement.unjudged) == (2, 1, 1)


async def test_designs_are_not_judged_by_other_problems(settings: Settings, folder: Path) -> None:
    config, samples = read_evaluation(folder)
    other = [one.model_copy(update={"problem_hash": "0" * 64}) for one in samples]
    async with Grader.open(settings) as grader:
        with pytest.raises(WrongDirectory, match="is not what it was when the design was written"):
            await regrade(folder, config, other, grader, "golden", lambda *_: None)


async def test_a_design_without_a_verdict_becomes_an_error(settings: Settings, folder: Path) -> None:
    config, samples = read_evaluation(folder)
    async with Grader.open(settings) as grader:
        for one in samples:
            await grader.world.choose(problem_id=one.problem)
        await grader.world.runner.__aexit__(None, None, None)
        _, summary = await regrade(folder, config, samples, grader, "golden", lambda *_: None)
    assert (summary.models[0].errors, summary.models[0].scored) == (3, 1)


def test_a_folder_that_is_no_evaluation(tmp_path: Path) -> None:
    with pytest.raises(WrongDirectory, match=r"there is no config\.json"):
        read_evaluation(tmp_path)
