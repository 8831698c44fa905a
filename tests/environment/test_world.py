"""Which problem a seed or an id means, checked with the installed simulator."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.environment.conftest import COUNTER, FLIP_FLOP, HANDSHAKE
from verilog_taskapp.environment.actions import ToolCall
from verilog_taskapp.environment.rewards import Rewards
from verilog_taskapp.environment.world import World, bench_of, limits_of, options_of, secrets_of
from verilog_taskapp.errors import EnvironmentFailed, InvalidRequest, ProblemNotFound, ProblemUnusable
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.runner import MIB, Runner
from verilog_taskapp.problems.model import Problem, ProblemLimits
from verilog_taskapp.problems.problem_set import ProblemSet
from verilog_taskapp.settings import Settings

BAD = replace(FLIP_FLOP, id="bad", reference=FLIP_FLOP.reference.replace("<= d", "<= e"))
LIES = replace(COUNTER, id="lies", testbench=COUNTER.testbench.replace("wire tb_match =", "wire tb_match = 0 &"))


def world_of(judge: Judge, boxed: Runner, *problems: Problem, **settings: object) -> World:
    """A world of problems that are all in the split ``val``."""
    placed = tuple(replace(problem, split="val") for problem in problems)
    return World(Settings(**settings), ProblemSet("made", "Made", "made", placed), judge, boxed)  # type: ignore[arg-type]


async def test_a_seed_means_a_problem_of_the_split(judge: Judge, boxed: Runner) -> None:
    world = world_of(judge, boxed, FLIP_FLOP, COUNTER, HANDSHAKE)
    chosen = [(await world.choose(seed=seed)).problem.id for seed in (None, 0, 1, 2, 3, 3_000_001)]
    assert chosen == ["dff", "dff", "counter", "handshake", "dff", "counter"]
    assert (await world.choose(split="all", seed=2)).problem.id == "handshake"


async def test_an_unusable_problem_is_stepped_over_and_moves_no_other_seed(judge: Judge, boxed: Runner) -> None:
    world = world_of(judge, boxed, FLIP_FLOP, BAD, LIES, COUNTER)
    for _ in range(2):
        chosen = [(await world.choose(seed=seed)).problem.id for seed in range(5)]
        assert chosen == ["dff", "counter", "counter", "counter", "dff"]


async def test_stepping_over_goes_round_the_end(judge: Judge, boxed: Runner) -> None:
    world = world_of(judge, boxed, FLIP_FLOP, BAD)
    assert (await world.choose(seed=1)).problem.id == "dff"


async def test_an_unusable_problem_asked_for_by_name_says_why(judge: Judge, boxed: Runner) -> None:
    world = world_of(judge, boxed, FLIP_FLOP, BAD, LIES)
    with pytest.raises(
        ProblemUnusable, match=rf"problem bad cannot be used with Icarus {judge.tools.version}: does not"
    ):
        await world.choose(problem_id="bad")
    with pytest.raises(ProblemUnusable, match=r"fails its own testbench: \d+ of 120 samples"):
        await world.choose(problem_id="lies")
    assert (await world.choose(problem_id="dff")).prepared.status == "golden"


async def test_a_set_without_a_usable_problem_is_an_error(judge: Judge, boxed: Runner) -> None:
    with pytest.raises(ProblemUnusable, match="no problem of the split 'val' is usable"):
        await world_of(judge, boxed, BAD, LIES).choose()


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
async def test_a_seed_that_is_no_whole_number_is_invalid(seed: object, judge: Judge, boxed: Runner) -> None:
    with pytest.raises(InvalidRequest, match="seed must be a whole number from 0"):
        await world_of(judge, boxed, FLIP_FLOP).choose(seed=seed)  # type: ignore[arg-type]


async def test_unknown_names_are_not_found(judge: Judge, boxed: Runner) -> None:
    world = world_of(judge, boxed, FLIP_FLOP)
    with pytest.raises(ProblemNotFound, match="dff"):
        await world.choose(problem_id="dff8")
    with pytest.raises(InvalidRequest, match="unknown split"):
        await world.choose(split="nope")
    with pytest.raises(InvalidRequest, match="has no problems"):
        await world.choose(split="train")


async def test_an_id_outranks_split_and_seed(judge: Judge, boxed: Runner) -> None:
    world = world_of(judge, boxed, FLIP_FLOP, COUNTER)
    assert (await world.choose(split="train", seed=7, problem_id="counter")).problem.id == "counter"


async def test_a_classic_problem_is_marked(judge: Judge, boxed: Runner) -> None:
    chosen = await world_of(judge, boxed, HANDSHAKE).choose()
    assert (chosen.prepared.status, chosen.prepared.usable) == ("classic", True)


async def test_an_episode_begins_with_the_settings_or_with_changes(judge: Judge, boxed: Runner) -> None:
    world = world_of(judge, boxed, FLIP_FLOP, max_steps=4, feedback="verdict", reward_step_penalty=-0.5)
    chosen = await world.choose()
    assert world.begin(chosen).options == options_of(world.settings)
    assert world.begin(chosen).options.rewards.step_penalty == -0.5
    changed = world.options(max_steps=2, feedback=None, rewards=Rewards(partial=1.0))
    assert (changed.max_steps, changed.feedback, changed.rewards.partial) == (2, "verdict", 1.0)


def test_a_problems_own_limits_go_to_its_bench() -> None:
    bench = bench_of(replace(FLIP_FLOP, limits=ProblemLimits(compile_cpu_s=3.0, run_cpu_s=7.0)))
    assert (bench.compile_cpu_s, bench.run_cpu_s) == (3.0, 7.0)
    assert bench.key == FLIP_FLOP.content_hash


def test_limits_follow_the_settings() -> None:
    limits = limits_of(Settings(wall_factor=4.0, address_space_bytes=MIB, file_size_bytes=5), 2.0)
    assert (limits.cpu_s, limits.wall_s, limits.address_space_bytes, limits.file_size_bytes) == (2.0, 8.0, MIB, 5)


async def test_the_world_opens_with_the_bundled_problems_and_closes_without_a_trace(tmp_path: Path) -> None:
    settings = Settings(scratch_dir=tmp_path / "scratch", cache_dir=tmp_path / "cache")
    async with World.open(settings) as world:
        assert len(world.problems) >= 30
        chosen = await world.choose(seed=0)
        episode = world.begin(chosen)
        design = chosen.problem.reference.replace(chosen.problem.reference_top, chosen.problem.top)
        await episode.step(ToolCall("write_file", {"path": "TopModule.sv", "content": design}))
        assert (await episode.step(ToolCall("submit", {}))).observation.task_completed
    assert list((tmp_path / "scratch").rglob("*/*")) == []


async def test_a_world_without_a_simulator_does_not_open(tmp_path: Path) -> None:
    settings = Settings(iverilog="no-such-iverilog", scratch_dir=tmp_path, cache_dir=tmp_path / "cache")
    with pytest.raises(EnvironmentFailed, match="Icarus Verilog was not found"):
        async with World.open(settings):
            pass


async def test_machines_with_the_same_stimulus_key_judge_on_the_same_hidden_stimuli(tmp_path: Path) -> None:
    def settings(machine: str, key: str | None) -> Settings:
        folder = tmp_path / machine
        return Settings.model_validate(
            {"cache_dir": folder / "cache", "scratch_dir": folder / "scratch", "stimulus_key": key}
        )

    given = settings("one", "a key of some length")
    async with World.open(given) as world:
        used = world.judge.secrets.draws("bench", 0)
    assert used == secrets_of(settings("other", "a key of some length")).draws("bench", 0)
    assert used != secrets_of(settings("other", "another key of length")).draws("bench", 0)
    assert used != secrets_of(settings("other", None)).draws("bench", 0)
    assert "a key of some length" not in repr(given)
    with pytest.raises(ValueError, match="stimulus_key"):
        settings("one", "too short")
