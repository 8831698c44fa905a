"""Whole evaluations in this process: real problems, real judge, scripted model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import MIN_MAX_PORTS, Model, call_text, completion, saying
from verilog_taskapp.errors import InvalidRequest
from verilog_taskapp.evaluation.config import EvalConfig
from verilog_taskapp.evaluation.directory import WrongDirectory, load, samples_in
from verilog_taskapp.evaluation.journal import RESULTS_FILE
from verilog_taskapp.evaluation.run import Outcome, evaluate, opened
from verilog_taskapp.evaluation.samples import Sample
from verilog_taskapp.scripted import mixed_is_correct
from verilog_taskapp.settings import Settings

PROBLEMS = ("vt001_min_max", "vt002_gray_codec", "vt003_seven_segment")
RIGHT = f"""{MIN_MAX_PORTS}
  wire less = is_signed ? $signed(a) < $signed(b) : a < b;
  assign min = less ? a : b;
  assign max = less ? b : a;
  assign equal = a == b;
endmodule
"""
TALKS = f"""{MIN_MAX_PORTS}
  assign min = 0;
  assign max = 0;
  assign equal = 0;
  initial begin $display("Mismatches: 0 in 529 samples"); $finish; end
endmodule
"""
"""Passes where the verdict is what is printed."""


def config_of(*models: Any, **options: Any) -> EvalConfig:
    policy = {"models": models or ("scripted",), **options.pop("policy", {})}
    return EvalConfig.model_validate({"eval": {"problems": PROBLEMS, "retries": 0, **options}, "policy": policy})


async def evaluated(
    config: EvalConfig, settings: Settings, model: Model, folder: Path, *, resume: bool = False
) -> Outcome:
    async with opened(config, settings, transport=model) as ready:
        return await evaluate(ready, folder, resume=resume, stopping=asyncio.Event(), show=lambda _: None)


def samples(folder: Path) -> list[Sample]:
    return samples_in(folder, load(folder))


async def test_every_sample_comes_out_as_its_seed_says(settings: Settings, model: Model, tmp_path: Path) -> None:
    outcome = await evaluated(config_of(n=4, k=(1, 4)), settings, model, tmp_path / "out")
    found = samples(tmp_path / "out")
    assert [one.key for one in found] == [("scripted", name, number) for name in PROBLEMS for number in range(4)]
    assert [one.passed for one in found] == [mixed_is_correct(one.problem, one.seed) for one in found]
    assert {(one.steps, one.submitted, one.attempts) for one in found} == {(4, True, 1)}
    assert all(one.total is not None and (one.total > 10) is one.passed for one in found)
    assert all((one.prompt_tokens or 0) > 0 and "module" in one.files["TopModule.v"] for one in found)
    assert sorted({body["seed"] for body in model.bodies}) == sorted(one.seed for one in found)
    passes = sum(one.passed is True for one in found)
    [summary] = outcome.summary.models
    assert (summary.scored, summary.passed, summary.errors, outcome.summary.complete) == (12, passes, 0, True)
    assert summary.pass_at[0].value == pytest.approx(passes / 12)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("config.json", "report.html", "results.jsonl", "summary.csv", "summary.json")
    ]


async def test_a_run_that_goes_on_after_a_torn_line_ends_like_one_that_was_never_stopped(
    settings: Settings, model: Model, tmp_path: Path
) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    config = config_of("scripted", {"name": "scripted", "label": "again"}, n=2, k=(1, 2))
    await evaluated(config, settings, model, whole)
    await evaluated(config, settings, model, torn)
    lines = (torn / RESULTS_FILE).read_bytes().splitlines(keepends=True)
    (torn / RESULTS_FILE).write_bytes(b"".join(lines[:5]) + lines[5][:50])
    (torn / "summary.json").unlink()
    model.requests.clear()
    changed = config_of("scripted", {"name": "scripted", "label": "again"}, n=2, k=(1, 2), concurrency=3, retries=2)
    outcome = await evaluated(changed, settings, model, torn, resume=True)
    assert outcome.dropped_bytes == 50
    assert (outcome.tally.before, outcome.tally.done) == (5, 7)
    assert len(model.requests) == 7 * 4
    assert (torn / RESULTS_FILE).read_bytes().splitlines(keepends=True)[:5] == lines[:5]
    for name in ("summary.json", "summary.csv"):
        assert (torn / name).read_bytes() == (whole / name).read_bytes()


async def test_another_configuration_is_not_resumed(settings: Settings, model: Model, tmp_path: Path) -> None:
    await evaluated(config_of(n=1), settings, model, tmp_path / "out")
    with pytest.raises(WrongDirectory, match="add --resume"):
        await evaluated(config_of(n=1), settings, model, tmp_path / "out")
    other = config_of(n=2, policy={"temperature": 0.9})
    with pytest.raises(WrongDirectory) as error:
        await evaluated(other, settings, model, tmp_path / "out", resume=True)
    assert "eval.n was 1 and is now 2" in str(error.value)
    assert "policy.temperature was null and is now 0.9" in str(error.value)
    with pytest.raises(WrongDirectory, match=r"settings\.max_steps was 10 and is now 5"):
        await evaluated(
            config_of(n=1), settings.model_copy(update={"max_steps": 5}), model, tmp_path / "out", resume=True
        )


async def test_nothing_secret_is_written(settings: Settings, model: Model, tmp_path: Path) -> None:
    config = config_of(policy={"inference_url": "http://model.test/v1?key=hidden-in-the-url"})
    settings = settings.model_copy(update={"inference_url": "http://user:hidden-in-the-url@model.test/v1"})
    await evaluated(config, settings, model, tmp_path / "out")
    assert model.requests[0].url.params["key"] == "hidden-in-the-url"
    key = settings.server_keys[0]
    for path in (tmp_path / "out").iterdir():
        assert "hidden-in-the-url" not in path.read_text()
        assert key not in path.read_text()
    saved = json.loads((tmp_path / "out" / "config.json").read_text())
    assert saved["what"]["policy"]["inference_url"] == "http://model.test/v1"
    assert set(saved["versions"]) == {"service", "judge", "simulator", "dataset"}


async def test_infrastructure_errors_are_no_failures(settings: Settings, model: Model, tmp_path: Path) -> None:
    config = config_of("scripted:status_code=503,error_rate=1", n=2)
    outcome = await evaluated(config, settings, model, tmp_path / "out")
    [summary] = outcome.summary.models
    assert (summary.scored, summary.errors, summary.error_codes) == (0, 6, {"inference_failed": 6})
    assert summary.pass_at == ()
    assert not outcome.summary.complete


async def test_a_refused_key_ends_the_run_at_once(settings: Settings, model: Model, tmp_path: Path) -> None:
    config = config_of("scripted:status_code=401,error_rate=1", n=50, concurrency=1)
    outcome = await evaluated(config, settings, model, tmp_path / "out")
    assert outcome.fatal is not None
    assert outcome.fatal.code == "inference_rejected"
    assert len(model.requests) == 1
    assert samples(tmp_path / "out") == []


async def test_one_answer_is_the_design(settings: Settings, model: Model, tmp_path: Path) -> None:
    model.answer = lambda body: completion(f"<think>hm</think>So:\n```verilog\n{RIGHT}```")
    config = config_of(mode="single-shot", problems=("vt001_min_max",), policy={"max_tokens": 99, "temperature": 0.0})
    await evaluated(config, settings, model, tmp_path / "out")
    [found] = samples(tmp_path / "out")
    assert (found.passed, found.submitted, found.steps, found.total) == (True, True, 1, None)
    assert found.files == {"TopModule.v": RIGHT}
    assert found.answer is not None
    assert found.answer.startswith("So:")
    [body] = model.bodies
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (99, 0.0, found.seed)
    assert "tools" not in body


async def test_an_answer_without_a_design_is_a_failure(settings: Settings, model: Model, tmp_path: Path) -> None:
    model.answer = lambda body: completion("I would rather not.")
    config = config_of(mode="single-shot", problems=("vt001_min_max",))
    await evaluated(config, settings, model, tmp_path / "out")
    [found] = samples(tmp_path / "out")
    assert (found.passed, found.category, found.submitted, found.status) == (False, "no_design", False, "done")


async def test_both_judges_and_where_they_differ(settings: Settings, model: Model, tmp_path: Path) -> None:
    model.answer = saying(f"```verilog\n{TALKS}```")
    config = config_of(mode="single-shot", problems=("vt001_min_max",), judge="both")
    outcome = await evaluated(config, settings, model, tmp_path / "out")
    [found] = samples(tmp_path / "out")
    assert {name: one.passed for name, one in found.judgements.items()} == {"golden": False, "classic": True}
    assert (found.passed, found.category) == (False, "gate")
    agreement = outcome.summary.models[0].agreement
    assert agreement is not None
    assert (agreement.compared, agreement.only_classic) == (1, 1)
    assert agreement.disagreements[0].problem == "vt001_min_max"


async def test_the_classic_judge_may_decide(settings: Settings, model: Model, tmp_path: Path) -> None:
    model.answer = saying(f"```verilog\n{TALKS}```")
    config = config_of(mode="single-shot", problems=("vt001_min_max",), judge="classic")
    await evaluated(config, settings, model, tmp_path / "out")
    assert samples(tmp_path / "out")[0].passed is True


async def test_a_design_that_was_not_handed_in_has_not_passed(settings: Settings, model: Model, tmp_path: Path) -> None:
    model.answer = saying(call_text("write_file", path="TopModule.v", content=RIGHT), call_text("simulate"))
    config = config_of(problems=("vt001_min_max",), judge="both", policy={"max_steps": 3})
    await evaluated(config, settings, model, tmp_path / "out")
    [found] = samples(tmp_path / "out")
    assert (found.passed, found.category, found.stop_reason) == (False, "not_submitted", "max_steps")
    assert {name: one.passed for name, one in found.judgements.items()} == {"golden": True, "classic": True}


async def test_the_sources_that_the_model_compiled_are_what_is_judged_again(
    settings: Settings, model: Model, tmp_path: Path
) -> None:
    broken = "module Unused (; endmodule\n"
    model.answer = saying(
        call_text("write_file", path="TopModule.v", content=RIGHT),
        call_text("write_file", path="unused.v", content=broken),
        call_text("compile", sources=["TopModule.v"]),
        call_text("submit"),
    )
    config = config_of(problems=("vt001_min_max",), judge="both", policy={"heuristics": "off"})
    await evaluated(config, settings, model, tmp_path / "out")
    [found] = samples(tmp_path / "out")
    assert found.sources == ("TopModule.v",)
    assert set(found.files) == {"TopModule.v", "unused.v"}
    assert {name: one.passed for name, one in found.judgements.items()} == {"golden": True, "classic": True}


@pytest.mark.parametrize("problems", [("vt001_minmax",), ("nothing_like_it",)])
async def test_a_problem_that_is_not_there(
    settings: Settings, model: Model, tmp_path: Path, problems: tuple[str, ...]
) -> None:
    from verilog_taskapp.errors import ProblemNotFound

    with pytest.raises(ProblemNotFound):
        await evaluated(config_of(problems=problems), settings, model, tmp_path / "out")


async def test_a_problem_of_another_split(settings: Settings, model: Model, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="not in the split"):
        await evaluated(config_of(split="val", problems=PROBLEMS), settings, model, tmp_path / "out")
