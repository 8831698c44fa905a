"""A session goes on elsewhere exactly as it would have here."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest

from tests.support import MIN_MAX
from verilog_taskapp.contracts import InitializeResponse, StepResponse
from verilog_taskapp.environment.actions import ToolCall
from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.environment.observation import StepResult
from verilog_taskapp.environment.state import EpisodeSnapshot
from verilog_taskapp.environment.world import World
from verilog_taskapp.errors import ProblemNotFound
from verilog_taskapp.scripted.designs import designs_of
from verilog_taskapp.sessions import encoding
from verilog_taskapp.sessions.encoding import decode, encode
from verilog_taskapp.sessions.record import OpenSession, Unfinished

pytestmark = pytest.mark.asyncio(loop_scope="module")

Carry = Callable[[EpisodeSnapshot], EpisodeSnapshot]


def session_of(state: EpisodeSnapshot, **more: Any) -> OpenSession:
    opened = InitializeResponse(env_id="s", observation={"files": dict(state.files)}, prompt=[], tools=[])
    return OpenSession("s", opened, 25, state, **more)


def through_bytes(state: EpisodeSnapshot) -> EpisodeSnapshot:
    found = decode(encode(session_of(state), "tools"), "tools")
    assert isinstance(found, OpenSession)
    return found.episode


def without_program(state: EpisodeSnapshot) -> EpisodeSnapshot:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "MAX_COMPILATION_BYTES", 0)
        found = through_bytes(state)
    assert found.compilation is None
    return found


def call(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments)  # type: ignore[arg-type]


def calls_for(world: World, problem: str) -> list[ToolCall]:
    """Every tool in every state: fresh, changed, unchanged, failing, passing, chosen sources, data files, refused."""
    designs = designs_of(world.problems.get(problem))
    right, wrong = (call("write_file", path="TopModule.v", content=text) for text in (designs.right, designs.wrong))
    broken = call("write_file", path="TopModule.v", content="module TopModule (input a; endmodule\n")
    spoken = call(
        "write_file", path="TopModule.v", content=designs.right + '\nmodule x; initial $display("é"); endmodule'
    )
    compile_, simulate = call("compile"), call("simulate")
    return [
        *(compile_, simulate, right, compile_, compile_, simulate, simulate, compile_),
        *(
            call("write_file", path=name, content=text)
            for name, text in (("d.hex", "00\n"), ("o.v", "module o; endmodule"))
        ),
        *(simulate, call("compile", sources=["TopModule.v"])),
        *(call("compile", sources=["TopModule.v"]), simulate, compile_, call("compile", sources=["none.v"])),
        *(wrong, wrong, compile_, simulate, simulate, compile_, broken, compile_, compile_, simulate, simulate),
        *(spoken, simulate, right, compile_, simulate, call("submit")),
    ]


def seen(result: StepResult) -> dict[str, Any]:
    """All of a result but for how long it took."""
    facts = {name: value for name, value in result.facts.items() if name not in ("ms", "cpu_ms", "cached")}
    return {**vars(result), "facts": facts}


async def played(world: World, problem: str, carry: Carry | None) -> tuple[list[Mapping[str, Any]], Episode]:
    episode = world.begin(await world.choose(problem_id=problem), world.options(feedback="waveform", max_steps=40))
    results: list[Mapping[str, Any]] = []
    for one in calls_for(world, problem):
        if carry is not None:
            episode = await world.restore(carry(episode.snapshot()))
        results.append(seen(await episode.step(one)))
    return results, episode


@pytest.mark.parametrize("problem", [MIN_MAX["problem"], "vt014_limit_counter"])
@pytest.mark.parametrize("carry", [lambda state: state, through_bytes, without_program])
async def test_an_episode_that_moves_before_every_step_is_the_same_episode(
    world: World, problem: str, carry: Carry
) -> None:
    expected, stayed = await played(world, problem, None)
    got, moved = await played(world, problem, carry)
    assert got == expected
    assert moved.counts == stayed.counts
    assert (moved.counts.compiles_without_change, moved.counts.simulations_without_change) == (5, 3)
    assert (moved.total_reward, moved.task_completed, moved.done) == (stayed.total_reward, True, True)


async def test_what_was_compiled_is_not_compiled_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = world.begin(await world.choose(problem_id=MIN_MAX["problem"]))
    right = designs_of(episode.problem).right
    for one in (call("write_file", path="TopModule.v", content=right), call("compile"), call("simulate")):
        await episode.step(one)
    monkeypatch.setattr(world.judge, "compile", None)
    moved = await world.restore(through_bytes(episode.snapshot()))
    for one in (call("compile"), call("simulate"), call("submit")):
        assert (await moved.step(one)).outcome == "ok"
    assert moved.task_completed


async def test_another_simulator_compiles_for_itself(world: World) -> None:
    episode = world.begin(await world.choose(problem_id=MIN_MAX["problem"]))
    right = designs_of(episode.problem).right
    for one in (call("write_file", path="TopModule.v", content=right), call("compile"), call("simulate")):
        await episode.step(one)
    found = decode(encode(session_of(episode.snapshot()), "icarus 11"), "icarus 12")
    assert isinstance(found, OpenSession)
    assert (found.episode.compilation, found.episode.verdict, found.episode.changed) == (None, None, False)
    moved = await world.restore(found.episode)
    assert (await moved.step(call("submit"))).outcome == "ok"
    assert moved.total_reward == pytest.approx(0.1 + 1 + 10 - 4 * 0.01)


async def test_another_text_of_the_problem_is_not_gone_on_with(world: World) -> None:
    state = world.begin(await world.choose(seed=0)).snapshot()
    with pytest.raises(ProblemNotFound, match="not what it was"):
        await world.restore(replace(state, problem_hash="other"))
    with pytest.raises(ProblemNotFound):
        await world.restore(replace(state, problem_id="other"))


async def test_a_snapshot_does_not_follow_its_episode(world: World) -> None:
    episode = world.begin(await world.choose(seed=0))
    before = episode.snapshot()
    copy = through_bytes(before)
    await episode.step(call("write_file", path="TopModule.v", content="module"))
    await episode.step(call("compile"))
    assert before == copy


def answer(number: int, files: Mapping[str, str]) -> StepResponse:
    observation = {"files": dict(files), "steps_left": number}
    return StepResponse(env_id="s", observation=observation, reward=0.1 * number, done=False, truncated=False)


async def test_the_text_of_a_file_is_kept_once(world: World) -> None:
    state = world.begin(await world.choose(seed=0)).snapshot()
    noise = "".join(chr(33 + (number * number * 7919) % 90) for number in range(200_000))
    answers = {f"step {number}": answer(number, {"big.v": noise, "n.v": str(number)}) for number in range(64)}
    session = session_of(replace(state, files={"big.v": noise}), answers=answers, unfinished=Unfinished("x", ({},)))
    data = encode(session, "tools")
    assert decode(data, "tools") == session
    assert len(zlib.decompress(data)) < 2 * len(noise) + 64 * 1000


def of_an_open_one(change: Callable[[dict[str, Any]], object]) -> bytes:
    found = {"format": 2, "simulator": "tools", "open": {"id": "s", "texts": []}}
    change(found)
    return zlib.compress(orjson.dumps(found))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no zlib",
        zlib.compress(b"no json"),
        zlib.compress(b"[]"),
        zlib.compress(b"{}"),
        of_an_open_one(lambda _: None),
        of_an_open_one(lambda found: found.update(format=3)),
        of_an_open_one(lambda found: found.pop("open")),
        of_an_open_one(lambda found: found.update(closed={"id": "s", "facts": 3})),
    ],
)
async def test_what_is_no_session_is_told(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a session|format 3|line 1"):
        decode(data, "tools")
