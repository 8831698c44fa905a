"""One episode from the first file to the submission."""

import asyncio
import json
import re
from typing import Any

import pytest

from tests.conftest import until
from tests.environment.conftest import COUNTER, FLIP_FLOP, HANDSHAKE, Begin
from tests.icarus import made
from verilog_taskapp.environment.actions import ToolCall
from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.environment.observation import StepResult
from verilog_taskapp.environment.rewards import Rewards
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.runner import Runner
from verilog_taskapp.problems.model import Problem

RIGHT = made.as_design(made.FLIP_FLOP)
WRONG = RIGHT.replace("<= d", "<= ~d")
BROKEN = RIGHT.replace("<= d", "<= nothing")


async def write(episode: Episode, content: object, path: object = "TopModule.v", **more: object) -> StepResult:
    return await episode.step(ToolCall("write_file", {"path": path, "content": content, **more}))


async def compile_(episode: Episode, **arguments: object) -> StepResult:
    return await episode.step(ToolCall("compile", arguments))


async def simulate(episode: Episode, **arguments: object) -> StepResult:
    return await episode.step(ToolCall("simulate", arguments))


async def submit(episode: Episode, **arguments: object) -> StepResult:
    return await episode.step(ToolCall("submit", arguments))


# --- the start


async def test_an_episode_starts_with_the_specification_as_a_comment(begin: Begin) -> None:
    episode = await begin()
    seen = episode.observation().to_wire()
    assert seen == {
        "files": {
            "TopModule.v": "// Implement module TopModule in this file.\n//\n// Store d at the\n// positive edge.\n"
        },
        "files_summary": "TopModule.v (83 bytes)",
        "task_completed": False,
        "reward_last": 0.0,
        "total_reward": 0.0,
        "terminated": False,
        "truncated": False,
        "compile_status": "",
        "simulate_status": "",
        "build_dir": "build",
        "problem_name": "dff",
        "steps_left": 10,
    }
    assert episode.files_provided == ("TopModule.v",)


async def test_visible_files_of_the_problem_are_there_and_hidden_ones_are_not(begin: Begin) -> None:
    problem = Problem(
        "files",
        "Use the table.",
        made.GATES_BENCH.reference,
        made.GATES_BENCH.testbench,
        visible_files={"table.mem": "00\n", "rtl/helper.v": "module helper; endmodule\n"},
        hidden_files={"secret.sv": "module secret; endmodule\n"},
    )
    episode = await begin(problem)
    assert episode.files_provided == ("TopModule.v", "rtl/helper.v", "table.mem")
    await write(episode, made.as_design(made.GATES))
    assert (await submit(episode)).observation.task_completed


async def test_the_stub_does_not_compile_and_says_what_is_missing(begin: Begin) -> None:
    result = await compile_(await begin())
    assert (result.outcome, result.reward) == ("failed", -0.01)
    assert result.message == ("compilation failed\nerror: no module named TopModule was found in the compiled files")


# --- a whole episode


async def test_a_straight_episode_earns_every_bonus_once(begin: Begin) -> None:
    episode = await begin()
    results = [await write(episode, RIGHT), await compile_(episode), await simulate(episode), await submit(episode)]
    assert [dict(result.reward_components) for result in results] == [
        {"step_penalty": -0.01},
        {"step_penalty": -0.01, "compile_success": 0.1},
        {"step_penalty": -0.01, "simulate_pass": 1.0},
        {"step_penalty": -0.01, "submit_pass": 10.0},
    ]
    assert [result.outcome for result in results] == ["ok"] * 4
    assert [result.done for result in results] == [False, False, False, True]
    assert [result.observation.steps_left for result in results] == [9, 8, 7, 6]
    assert episode.total_reward == pytest.approx(11.06)
    assert results[-1].observation.total_reward == pytest.approx(11.06)
    last = results[-1].observation.to_wire()
    assert (last["task_completed"], last["terminated"], last["truncated"]) == (True, True, False)
    assert last["compile_status"] == "Last compile: Success"
    assert last["simulate_status"] == "Last simulation: Passed"
    assert results[0].message == f"wrote TopModule.v ({len(RIGHT)} bytes, 5 lines)"
    assert results[1].message == "compilation succeeded"
    assert results[2].message == "passed: 60 samples match"
    assert results[3].message == "submission passed: 60 samples match"


async def test_doing_it_again_earns_nothing_more(begin: Begin) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    await compile_(episode)
    await simulate(episode)
    assert (await compile_(episode)).reward == -0.01
    assert (await simulate(episode)).reward == -0.01
    await write(episode, WRONG)
    await compile_(episode)
    await write(episode, RIGHT)
    assert (await compile_(episode)).reward == -0.01
    assert (await simulate(episode)).reward == -0.01
    assert episode.total_reward == pytest.approx(1.1 - 0.01 * 10)


async def test_simulating_without_compiling_pays_only_for_the_simulation(begin: Begin) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    result = await simulate(episode)
    assert dict(result.reward_components) == {"step_penalty": -0.01, "simulate_pass": 1.0}
    assert result.message.splitlines()[0] == "the files had changed: compiled them first"
    assert result.observation.compile_status == "Last compile: Success"
    assert not result.done


async def test_submitting_at_once_is_judged_on_what_is_there(begin: Begin) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    result = await submit(episode)
    assert (result.done, result.observation.task_completed) == (True, True)
    assert result.reward == pytest.approx(9.99)
    with pytest.raises(RuntimeError, match="over"):
        await compile_(episode)


async def test_a_failing_submission_ends_the_episode_too(begin: Begin) -> None:
    episode = await begin()
    await write(episode, WRONG)
    result = await submit(episode)
    assert (result.outcome, result.done, result.reward) == ("failed", True, -0.01)
    assert not result.observation.task_completed
    assert result.message.startswith("submission failed: ")
    assert result.facts["verdict"] == "fail"


async def test_editing_after_a_good_simulation_is_judged_as_edited(begin: Begin) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    assert (await simulate(episode)).outcome == "ok"
    await write(episode, WRONG)
    result = await submit(episode)
    assert (result.outcome, result.observation.task_completed) == ("failed", False)


async def test_a_repair_after_a_bad_simulation_is_judged_as_repaired(begin: Begin) -> None:
    episode = await begin()
    await write(episode, WRONG)
    assert (await simulate(episode)).outcome == "failed"
    await write(episode, RIGHT)
    assert (await submit(episode)).observation.task_completed


async def test_the_rewards_are_those_of_the_options(begin: Begin) -> None:
    episode = await begin(rewards=Rewards(1.0, 2.0, 4.0, -0.5), max_steps=3)
    await write(episode, RIGHT)
    assert [(await compile_(episode)).reward, (await simulate(episode)).reward] == [0.5, 1.5]
    result = await submit(episode)
    assert result.reward == 3.5
    assert result.observation.steps_left == 0


async def test_partial_credit_is_the_share_of_right_outputs(begin: Begin) -> None:
    half = made.as_design(made.COUNTER).replace("&count", "~&count")
    for design, share in ((half, 0.5), (made.as_design(made.COUNTER), 0.0), ("module TopModule(", 0.0)):
        episode = await begin(COUNTER, rewards=Rewards(partial=4.0))
        await write(episode, design)
        components = (await submit(episode)).reward_components
        assert components.get("partial", 0.0) == pytest.approx(4.0 * share)
        assert ("submit_pass" in components) == (share == 0.0 and "module TopModule(input" in design)


# --- blocked and idle turns


async def test_a_blocked_call_costs_a_step_and_nothing_else(begin: Begin) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    result = episode.block(ToolCall("compile", {}), "write a file first")
    assert (result.outcome, result.message) == ("blocked", "write a file first")
    assert dict(result.reward_components) == {"step_penalty": -0.01}
    assert result.observation.compile_status == ""
    assert (episode.counts.blocks, episode.counts.steps, episode.counts.compiles) == (1, 2, 0)
    assert (await compile_(episode)).reward == pytest.approx(0.09)


async def test_a_turn_without_a_call_costs_a_step(begin: Begin) -> None:
    episode = await begin()
    assert dict(episode.idle()) == {"step_penalty": -0.01}
    assert (episode.counts.steps, episode.counts.refused_calls) == (1, 1)
    assert episode.observation().steps_left == 9
    assert episode.observation().reward_last == -0.01


async def test_an_episode_that_is_cut_off_says_so_and_is_not_done(begin: Begin) -> None:
    episode = await begin()
    episode.truncate()
    seen = episode.observation()
    assert (seen.truncated, seen.terminated, seen.task_completed) == (True, False, False)


# --- calls that are wrong in themselves


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (ToolCall("write_file", {}), "write_file refused: the argument path is missing"),
        (ToolCall("write_file", {"path": "a.v"}), "write_file refused: the argument content is missing"),
        (ToolCall("write_file", {"path": "a.v", "content": None}), "content must be a string, not NoneType"),
        (ToolCall("write_file", {"path": "a.v", "content": ["x"]}), "content must be a string, not list"),
        (ToolCall("write_file", {"path": 7, "content": "x"}), "path must be a string, not int"),
        (ToolCall("write_file", {"path": "../a.v", "content": "x"}), "'..' is not allowed"),
        (ToolCall("write_file", {"path": "a.v", "content": "\0"}), "content holds a NUL character"),
        (ToolCall("write_file", {"path": "a.v", "content": "x" * 10**7}), "at most 262144 bytes"),
        (ToolCall("compile", {"sources": "TopModule.v"}), "sources must be a list of file names"),
        (ToolCall("compile", {"sources": [3]}), "sources must be a list of file names"),
        (ToolCall("compile", {"sources": ["other.v"]}), "no such file in the workspace: other.v"),
        (ToolCall("compile", {"sources": ["../../etc/passwd"]}), "'..' is not allowed"),
        (ToolCall("compile", {"sources": ["-I/etc"]}), "letters, digits"),
    ],
)
async def test_a_wrong_call_is_refused_with_a_message_and_costs_a_step(
    call: ToolCall, message: str, begin: Begin
) -> None:
    episode = await begin()
    before = dict(episode.observation().files)
    result = await episode.step(call)
    assert (result.outcome, result.reward, result.done) == ("refused", -0.01, False)
    assert message in result.message
    assert dict(result.observation.files) == before
    assert (episode.counts.steps, episode.counts.refused_calls, episode.counts.compiles) == (1, 1, 0)


async def test_arguments_that_a_tool_does_not_have_are_named_and_ignored(begin: Begin) -> None:
    episode = await begin()
    written = await write(episode, RIGHT, mode="w")
    assert written.notes == ("write_file has no argument 'mode': ignored",)
    compiled = await compile_(episode, testbench="tb.v", sources=None)
    assert compiled.notes == ("compile has no argument 'testbench': ignored",)
    assert compiled.outcome == "ok"
    simulated = await simulate(episode, binary="a.out", **{"x" * 100: 1})
    assert simulated.notes[0] == "simulate has no argument 'binary': ignored"
    assert len(simulated.notes[1]) < 90
    assert simulated.outcome == "ok"


async def test_what_was_normalised_is_noted(begin: Begin) -> None:
    result = await write(await begin(), f"```verilog\n{RIGHT}```", extra=1)
    assert [note.split()[0] for note in result.notes] == ["write_file", "The"]
    assert result.observation.files["TopModule.v"] == RIGHT.strip("\n") + "\n"


# --- compiling


async def test_messages_of_a_failed_compile_are_told_and_kept(begin: Begin) -> None:
    episode = await begin()
    await write(episode, BROKEN)
    result = await compile_(episode)
    line = "TopModule.v:4: error: Unable to bind wire/reg/memory `nothing' in `TopModule'"
    assert result.message.splitlines()[:2] == ["compilation failed", line]
    assert result.observation.compile_status.splitlines()[:2] == ["Last compile: Failed", line]
    assert result.facts["failure"] == "errors"
    assert result.facts["diagnostics"] == [
        {"severity": "error", "file": "TopModule.v", "line": 4, "message": line.partition("error: ")[2]}
    ]


async def test_messages_are_cut_at_the_limit(begin: Begin) -> None:
    episode = await begin(compile_message_chars=120)
    await write(episode, RIGHT.replace("endmodule", "".join(f"assign q{n} = w{n};\n" for n in range(40)) + "endmodule"))
    result = await compile_(episode)
    assert result.message.splitlines()[1].startswith("TopModule.v:5: error: ")
    assert any(line.endswith("more messages") for line in result.message.splitlines())
    assert result.message.count("error: ") == 1


async def test_compiling_again_without_a_change_says_so_and_runs_nothing(
    begin: Begin, boxed: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    await compile_(episode)
    monkeypatch.setattr(boxed, "run", None)
    result = await compile_(episode)
    assert result.message == "nothing changed since the last compile\ncompilation succeeded"
    assert episode.counts.compiles_without_change == 1


async def test_writing_the_same_text_is_no_change(begin: Begin) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    await compile_(episode)
    await write(episode, RIGHT)
    assert "nothing changed" in (await compile_(episode)).message


async def test_only_the_selected_sources_are_compiled_until_others_are(begin: Begin) -> None:
    episode = await begin()
    await write(episode, "module TopModule(", "broken.v")
    await write(episode, RIGHT, "good.sv")
    assert (await compile_(episode)).outcome == "failed"
    selected = await compile_(episode, sources=["good.sv"])
    assert (selected.outcome, selected.message) == ("ok", "compilation succeeded (good.sv)")
    assert (await simulate(episode)).outcome == "ok"
    assert (await compile_(episode, sources=[])).outcome == "failed"
    assert (await compile_(episode, sources=["./good.sv", "good.sv"])).outcome == "ok"
    assert (await submit(episode)).observation.task_completed


async def test_selecting_all_sources_is_no_selection(begin: Begin) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    await compile_(episode)
    assert "nothing changed" in (await compile_(episode, sources=["TopModule.v"])).message


async def test_selecting_other_sources_is_a_change(begin: Begin) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    await write(episode, "module unused; endmodule\n", "more.v")
    await compile_(episode)
    await simulate(episode)
    result = await compile_(episode, sources=["TopModule.v"])
    assert "nothing changed" not in result.message
    assert episode.counts.compiles_without_change == 0


# --- simulating


async def test_simulating_again_without_a_change_runs_nothing(
    begin: Begin, boxed: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = await begin()
    await write(episode, WRONG)
    first = await simulate(episode)
    monkeypatch.setattr(boxed, "run", None)
    again = await simulate(episode)
    assert again.message == first.message.partition("\n")[2]
    assert episode.counts.simulations_without_change == 1


async def test_simulating_what_does_not_compile_tells_the_compilers_messages(begin: Begin) -> None:
    episode = await begin()
    await write(episode, BROKEN)
    result = await simulate(episode)
    assert result.outcome == "failed"
    assert result.message.splitlines()[:3] == [
        "the files had changed: compiled them first",
        "failed: the design does not compile",
        "compilation failed",
    ]
    assert result.observation.simulate_status.startswith("Last simulation: Failed")
    assert result.observation.compile_status.startswith("Last compile: Failed\nTopModule.v:4: error: ")


async def test_hints_tell_outputs_and_counts_without_expected_values(begin: Begin) -> None:
    episode = await begin(COUNTER)
    await write(episode, made.as_design(made.COUNTER).replace("&count", "count == 14"))
    result = await simulate(episode)
    lines = result.message.splitlines()
    assert lines[2] == "output count (4 bits): no mismatches"
    assert lines[3].startswith("output wrapped (1 bit): ")
    assert result.observation.simulate_status.splitlines() == ["Last simulation: Failed", *lines[2:4]]


async def test_the_waveform_is_shown_only_when_asked_for(begin: Begin) -> None:
    for feedback in ("verdict", "hints", "waveform"):
        episode = await begin(feedback=feedback)
        await write(episode, WRONG)
        result = await simulate(episode)
        assert (" exp " in result.message) == (feedback == "waveform")
        assert ("waveform" in result.facts) == (feedback == "waveform")
        assert ("output q" in result.message) == (feedback != "verdict")
        assert (result.observation.simulate_status == "Last simulation: Failed") == (feedback == "verdict")
        json.dumps(result.facts)


async def test_a_design_that_ends_the_simulation_is_told_so(begin: Begin) -> None:
    episode = await begin()
    await write(
        episode,
        RIGHT.replace("initial", 'initial begin $display("Mismatches: 0 in 60 samples"); #1 $fatal; end\ninitial'),
    )
    result = await simulate(episode)
    assert result.outcome == "failed"
    assert "failed: the simulation ended early: the design must not call $finish or $stop" in result.message
    assert "printed by the design itself (not by the testbench):\nMismatches: 0 in 60 samples" in result.message
    assert not (await submit(episode)).observation.task_completed


# --- what must not be seen


SECRETS = ("RefModule", "good1", "top_module1", "tb_match", "stats1", "vt_", ".judge", "/tmp", "/dev/shm", "scratch")


@pytest.mark.parametrize("feedback", ["verdict", "hints", "waveform"])
@pytest.mark.parametrize("problem", [FLIP_FLOP, HANDSHAKE], ids=["golden", "classic"])
@pytest.mark.parametrize(
    "design",
    [
        RIGHT,
        WRONG,
        BROKEN,
        "module TopModule(",
        RIGHT.replace("input [7:0] d", "input d"),
        RIGHT.replace("d,", "e,"),
        RIGHT.replace("initial", 'initial $display("%m");\ninitial'),
        RIGHT.replace("initial", "initial $finish;\ninitial"),
        RIGHT.replace("initial", "initial $nonsense;\ninitial"),
        RIGHT.replace("initial", "nothing n();\ninitial"),
        "`include \"nope.vh\"\n" + RIGHT,
    ],
)  # fmt: skip
async def test_nothing_of_bench_and_reference_or_of_the_server_is_seen(
    design: str, problem: Problem, feedback: str, begin: Begin
) -> None:
    episode = await begin(problem, feedback=feedback)
    if problem is HANDSHAKE:
        design = re.sub(r"\bd\b", "request", re.sub(r"\bq\b", "grant", design.replace("[7:0] ", "")))
    results = [await write(episode, design), await compile_(episode), await simulate(episode), await submit(episode)]
    seen = json.dumps(
        [
            [one.message, one.notes, dict(one.facts), one.observation.to_wire(), dict(one.call.arguments)]
            for one in results
        ]
    )
    assert not [secret for secret in SECRETS if secret in seen]


# --- faults of ours


async def test_a_fault_of_ours_is_an_error_and_leaves_the_episode_as_it_was(
    begin: Begin, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    before = (episode.observation(), episode.counts.steps, episode.total_reward)

    async def broken(*_: Any, **__: Any) -> Any:
        raise EnvironmentFailed("the disk is full")

    for tool in ("compile", "simulate", "submit"):
        with monkeypatch.context() as patched:
            patched.setattr(judge, "compile", broken)
            with pytest.raises(EnvironmentFailed):
                await episode.step(ToolCall(tool, {}))
        assert (episode.observation(), episode.counts.steps, episode.total_reward) == before
        assert not episode.done
    assert (await simulate(episode)).message.startswith("the files had changed")
    with monkeypatch.context() as patched:
        patched.setattr(judge, "run", broken)
        with pytest.raises(EnvironmentFailed):
            await submit(episode)
    assert not episode.done
    assert (await submit(episode)).reward == pytest.approx(9.99)


async def test_a_failed_selection_of_sources_does_not_count_as_a_change(
    begin: Begin, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = await begin()
    await write(episode, RIGHT)
    await write(episode, "module unused; endmodule\n", "more.v")
    await compile_(episode)

    async def broken(*_: Any, **__: Any) -> Any:
        raise EnvironmentFailed("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(judge, "compile", broken)
        with pytest.raises(EnvironmentFailed):
            await compile_(episode, sources=["TopModule.v"])
    assert "nothing changed" in (await compile_(episode)).message


async def test_a_cancelled_step_leaves_the_episode_as_it_was(begin: Begin, boxed: Runner) -> None:
    episode = await begin()
    await write(episode, RIGHT.replace("initial", "initial while (1) ;\ninitial"))
    await compile_(episode)
    before = (episode.observation(), episode.counts.steps)
    step = asyncio.create_task(simulate(episode))
    await until(lambda: boxed.busy)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert (episode.observation(), episode.counts.steps) == before


# --- side by side


async def test_two_episodes_of_one_problem_do_not_see_each_other(begin: Begin) -> None:
    first, second = await begin(), await begin()

    async def play(episode: Episode, design: str) -> list[StepResult]:
        await write(episode, "// mine\n", f"own_{'a' if design == RIGHT else 'b'}.v")
        return [await write(episode, design), await compile_(episode), await simulate(episode), await submit(episode)]

    right, wrong = await asyncio.gather(play(first, RIGHT), play(second, WRONG))
    assert [result.outcome for result in right] == ["ok"] * 4
    assert [result.outcome for result in wrong] == ["ok", "ok", "failed", "failed"]
    assert first.files_provided == ("TopModule.v", "own_a.v")
    assert second.files_provided == ("TopModule.v", "own_b.v")
    assert first.total_reward > 10 > second.total_reward


async def test_a_classic_problem_pays_the_same(begin: Begin) -> None:
    episode = await begin(HANDSHAKE)
    await write(episode, made.as_design(made.HANDSHAKE))
    assert (await compile_(episode)).reward == pytest.approx(0.09)
    assert (await simulate(episode)).reward == pytest.approx(0.99)
    result = await submit(episode)
    assert result.reward == pytest.approx(9.99)
    assert result.facts["judge"] == "classic"


async def test_the_events_of_an_episode_are_counted(begin: Begin) -> None:
    episode = await begin()
    await write(episode, BROKEN)
    await compile_(episode)
    await compile_(episode)
    await simulate(episode)
    await write(episode, RIGHT)
    await simulate(episode)
    await submit(episode)
    counts = episode.counts
    assert (counts.steps, counts.compiles, counts.failed_compiles, counts.compiles_without_change) == (7, 2, 2, 1)
    assert (counts.simulations, counts.simulations_without_change, counts.submitted) == (2, 0, True)
