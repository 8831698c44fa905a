"""The agent loop on a real episode: turns, limits, and a record that is complete at any moment."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.rollout.conftest import Parts
from tests.support import HANGS, MIN_MAX, Answer, call_text, completion, rollout_request, saying, turn_of
from verilog_taskapp.contracts.tool_calls import ToolCallRequest
from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.errors import EnvironmentFailed, InferenceFailed, InferenceRejected
from verilog_taskapp.rollout.agent import AgentLoop, play_script
from verilog_taskapp.rollout.outcome import Progress, tool_and_outcome
from verilog_taskapp.rollout.policy import resolve_policy
from verilog_taskapp.scripted.designs import designs_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def episode_of(parts: Parts) -> Episode:
    world = parts.services.world
    return world.begin(await world.choose(problem_id=MIN_MAX["problem"]))


async def play(
    parts: Parts,
    answer: Answer,
    *,
    time_s: float = 60.0,
    max_ops: int = 100,
    progress: Progress | None = None,
    **policy: Any,
) -> tuple[Episode, Progress]:
    """Play an episode with a model that answers so."""
    episode, progress = await episode_of(parts), progress or Progress()
    parts.model.answer = answer
    services = parts.services
    loop = AgentLoop(
        episode,
        resolve_policy(rollout_request(policy=policy), services.settings),
        services.chat,
        progress,
        deadline=asyncio.get_running_loop().time() + time_s,
        max_ops=max_ops,
        simulator=services.world.tools.version,
        preview_chars=services.settings.file_preview_chars,
    )
    await loop.run()
    return episode, progress


def right(parts: Parts) -> str:
    return designs_of(parts.services.world.problems.get(MIN_MAX["problem"])).right


def told(parts: Parts, turn: int) -> str:
    """The last message that the model was sent at a turn."""
    content: str = parts.model.bodies[turn]["messages"][-1]["content"]
    return content


async def test_the_episode_ends_with_the_submission(parts: Parts) -> None:
    write = call_text("write_file", path="TopModule.v", content=right(parts))
    episode, progress = await play(parts, saying(write, call_text("submit"), call_text("compile")))
    assert (episode.done, episode.task_completed, episode.truncated) == (True, True, False)
    assert (len(progress.steps), progress.ops_executed, progress.stop_reason) == (2, 2, None)
    assert len(parts.model.requests) == 2, "nobody is asked after the end"


async def test_the_model_is_told_the_task_first_and_the_result_of_each_action_after(parts: Parts) -> None:
    problem = parts.services.world.problems.get(MIN_MAX["problem"])
    write = call_text("write_file", path="TopModule.v", content="module TopModule(); endmodule")
    await play(parts, saying(write, call_text("compile"), call_text("submit")))
    assert problem.prompt.strip() in told(parts, 0)
    assert "Begin by writing TopModule" in told(parts, 0)
    assert "write_file(" in told(parts, 1)
    assert "compile before you simulate or submit" in told(parts, 1)
    assert "compile() -> failed" in told(parts, 2)
    assert "TopModule has no port named" in told(parts, 2) or "port" in told(parts, 2)


async def test_files_are_shown_up_to_the_limit(parts: Parts) -> None:
    long = "module TopModule(); endmodule\n" + "// filler\n" * 500
    await play(parts, saying(call_text("write_file", path="TopModule.v", content=long), call_text("submit")))
    shown = told(parts, 1)
    assert shown.count("// filler") < 100
    assert "chars not shown" in shown


async def test_turns_without_a_call_cost_the_penalty_and_are_explained(parts: Parts) -> None:
    episode, progress = await play(parts, saying("no idea"), heuristics="off", max_steps=3)
    assert [tool_and_outcome(step) for step in progress.steps] == [("none", "refused")] * 3
    assert episode.total_reward == pytest.approx(-0.03)
    assert (progress.ops_executed, progress.stop_reason, episode.truncated) == (0, "max_steps", True)
    assert "not usable" in told(parts, 1)


async def test_blocked_compiles_are_no_operations(parts: Parts) -> None:
    _, progress = await play(parts, saying(call_text("compile")), max_steps=4)
    assert [tool_and_outcome(step) for step in progress.steps] == [
        ("compile", "failed"),
        *[("compile", "blocked")] * 3,
    ]
    assert progress.ops_executed == 1
    assert "write_file first" in told(parts, 2)


async def test_of_several_calls_the_first_is_played_and_the_rest_is_mentioned(parts: Parts) -> None:
    both = f"```json\n{call_text('compile')}\n```\n```json\n{call_text('submit')}\n```"
    _, progress = await play(parts, saying(both), max_steps=2)
    assert progress.steps[0].tool_calls[0].tool_name == "compile"
    assert getattr(progress.steps[0].info, "extra_calls", None) == 1
    assert "1 further ignored" in told(parts, 1)


async def test_reasoning_is_recorded_and_not_sent_back(parts: Parts) -> None:
    _, progress = await play(parts, saying(f"<think>my plan</think>{call_text('compile')}"), max_steps=2)
    info = progress.steps[0].info
    assert getattr(info, "reasoning", None) == "my plan"
    assert info.assistant_message == call_text("compile")
    assert "my plan" not in str(parts.model.bodies[1])


async def test_the_number_of_operations_is_a_limit(parts: Parts) -> None:
    episode, progress = await play(parts, saying(call_text("simulate")), max_ops=2)
    assert (progress.ops_executed, progress.stop_reason, episode.truncated) == (2, "max_ops", True)
    assert len(parts.model.requests) == 2


async def test_the_deadline_is_a_limit_even_inside_a_tool(parts: Parts) -> None:
    write = call_text("write_file", path="TopModule.v", content=HANGS)
    episode, progress = await play(parts, saying(write, call_text("simulate")), time_s=0.7, heuristics="off")
    assert (progress.stop_reason, episode.truncated, episode.done) == ("max_time_s", True, False)
    assert [tool_and_outcome(step) for step in progress.steps] == [("write_file", "ok")]
    assert progress.messages[-1]["role"] == "assistant", "what it asked for is kept, though it came to nothing"
    assert parts.services.world.runner.busy == 0


async def test_a_passed_deadline_asks_nobody(parts: Parts) -> None:
    _, progress = await play(parts, saying(call_text("compile")), time_s=-1)
    assert (progress.stop_reason, progress.steps, parts.model.requests) == ("max_time_s", [], [])


async def test_a_full_context_is_a_limit(parts: Parts) -> None:
    refusal = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    episode, progress = await play(
        parts,
        lambda body: completion(call_text("compile")) if turn_of(body) == 0 else httpx.Response(400, json=refusal),
    )
    assert (progress.stop_reason, len(progress.steps), episode.truncated) == ("context_length", 1, True)


async def test_a_refusal_of_the_model_server_is_raised(parts: Parts) -> None:
    with pytest.raises(InferenceRejected):
        await play(parts, lambda _: httpx.Response(401))


async def test_failures_until_the_deadline_are_the_model_server_s(parts: Parts) -> None:
    def failing(_: dict[str, Any]) -> httpx.Response:
        return httpx.Response(503, headers={"Retry-After": "0"})

    with pytest.raises(InferenceFailed) as failed:
        await play(parts, failing, time_s=0.5)
    assert failed.value.extras["attempts"]


async def test_a_fault_of_ours_is_raised_and_the_record_ends_before_it(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise EnvironmentFailed("no simulator")

    monkeypatch.setattr(parts.services.world.judge, "compile", broken)
    progress = Progress()
    with pytest.raises(EnvironmentFailed):
        await play(
            parts, saying(call_text("write_file", path="a.v", content=""), call_text("compile")), progress=progress
        )
    assert [step.tool_calls[0].tool_name for step in progress.steps] == ["write_file"]
    assert [message["role"] for message in progress.messages] == ["system", "user", "assistant", "user", "assistant"]


async def test_each_step_records_the_observation_it_acted_on(parts: Parts) -> None:
    _, progress = await play(parts, saying(call_text("write_file", path="a.v", content="x"), call_text("submit")))
    first, second = progress.steps
    assert set(first.obs["files"]) == {"TopModule.v"}
    assert set(second.obs["files"]) == {"TopModule.v", "a.v"}
    assert (first.obs["steps_left"], second.obs["steps_left"]) == (10, 9)


# --- scripts


async def scripted(parts: Parts, *calls: dict[str, Any], time_s: float = 60.0, max_ops: int = 100) -> Progress:
    progress = Progress()
    deadline = asyncio.get_running_loop().time() + time_s
    requests = [ToolCallRequest.model_validate(one) for one in calls]
    await play_script(await episode_of(parts), requests, progress, deadline=deadline, max_ops=max_ops)
    return progress


async def test_a_script_is_played_as_it_is(parts: Parts) -> None:
    progress = await scripted(parts, {"tool": "compile"}, {"tool": "compile"}, {"tool": "x"}, {"tool": "submit"})
    assert [tool_and_outcome(step) for step in progress.steps] == [
        ("compile", "failed"),
        ("compile", "failed"),
        ("none", "refused"),
        ("submit", "failed"),
    ]
    assert (progress.ops_executed, progress.stop_reason) == (3, None)


@pytest.mark.parametrize(
    ("limits", "reason", "steps"),
    [({"max_ops": 1}, "max_ops", 1), ({"time_s": -1}, "max_time_s", 0), ({}, "ops_exhausted", 2)],
)
async def test_a_script_has_the_same_limits(parts: Parts, limits: dict[str, Any], reason: str, steps: int) -> None:
    progress = await scripted(parts, {"tool": "compile"}, {"tool": "simulate"}, **limits)
    assert (progress.stop_reason, len(progress.steps)) == (reason, steps)


async def test_a_script_cannot_outrun_its_time_with_writes(parts: Parts) -> None:
    write = {"tool": "write_file", "args": {"path": "a.v", "content": "x"}}
    progress = await scripted(parts, *[write] * 50, time_s=-1)
    assert (progress.stop_reason, progress.steps) == ("max_time_s", [])
