import pytest

from verilog_taskapp.environment.actions import ToolCall, ToolName
from verilog_taskapp.environment.observation import Observation, Outcome, StepResult
from verilog_taskapp.rollout.guidance import BLOCK_HINT, AutoOverride, Decision, Guidance, Heuristics

COMPILE = ToolCall("compile", {"sources": ["TopModule.v"]})
SIMULATE = ToolCall("simulate", {})
SUBMIT = ToolCall("submit", {})
WRITE = ToolCall("write_file", {"path": "TopModule.v", "content": ""})

MODES: tuple[Heuristics, ...] = ("full", "guidance", "off")
OK = "Last compile: Success"
FAILED = "Last compile: Failed\nTopModule.v:1: syntax error"


def result(tool: ToolName, outcome: Outcome = "ok", compile_status: str = "") -> StepResult:
    observation = Observation("p", {}, "", compile_status, "", 0.0, 0.0, False, False, False, 9)
    return StepResult(ToolCall(tool, {}), outcome, "", 0.0, {}, False, observation)


def after(*results: StepResult) -> Guidance:
    state = Guidance()
    for one in results:
        state = state.after(one)
    return state


WRITTEN = after(result("write_file"))
COMPILED = after(result("write_file"), result("compile"))
BROKEN = after(result("write_file"), result("compile", "failed"))
PASSED = COMPILED.after(result("simulate", compile_status=OK))
MISMATCHED = COMPILED.after(result("simulate", "failed", OK))


def test_a_write_makes_the_code_dirty_and_clears_a_failure() -> None:
    assert Guidance(dirty=True) == WRITTEN
    assert BROKEN.needs_update
    assert BROKEN.after(result("write_file")) == Guidance(dirty=True)
    assert PASSED.after(result("write_file")).clean is False


def test_a_compile_makes_it_clean_and_forgets_the_simulation() -> None:
    assert Guidance(compiled="ok") == COMPILED
    assert PASSED.after(result("compile")) == COMPILED
    assert Guidance(compiled="failed") == BROKEN
    assert not BROKEN.clean


def test_a_simulation_is_remembered_with_its_result() -> None:
    assert Guidance(compiled="ok", simulated="passed") == PASSED
    assert Guidance(compiled="ok", simulated="failed") == MISMATCHED


def test_a_simulation_of_changed_code_counts_as_a_compile() -> None:
    assert WRITTEN.after(result("simulate", compile_status=OK)) == PASSED
    assert WRITTEN.after(result("simulate", "failed", OK)) == MISMATCHED
    assert WRITTEN.after(result("simulate", "failed", FAILED)) == BROKEN


@pytest.mark.parametrize("state", [Guidance(), WRITTEN, COMPILED, BROKEN, PASSED, MISMATCHED])
def test_refused_and_blocked_calls_and_submissions_change_nothing(state: Guidance) -> None:
    assert state.after(result("write_file", "refused")) == state
    assert state.after(result("compile", "refused")) == state
    assert state.after(result("compile", "blocked")) == state
    assert state.after(result("submit", "failed", OK)) == state


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", [WRITE, SIMULATE, SUBMIT])
@pytest.mark.parametrize("state", [Guidance(), WRITTEN, COMPILED, BROKEN, PASSED])
def test_other_tools_are_executed_as_they_are(mode: Heuristics, call: ToolCall, state: Guidance) -> None:
    assert state.decide(call, mode, False) == Decision("execute", call)


@pytest.mark.parametrize("state", [Guidance(), WRITTEN, PASSED, MISMATCHED, COMPILED.after(result("write_file"))])
def test_a_compile_that_can_tell_something_is_executed(state: Guidance) -> None:
    for mode in MODES:
        assert state.decide(COMPILE, mode, False) == Decision("execute", COMPILE)


def test_compiling_again_after_success_becomes_a_simulation_in_mode_full_only() -> None:
    decision = COMPILED.decide(COMPILE, "full", False)
    assert (decision.kind, decision.call) == ("override", SIMULATE)
    assert decision.to_info() == {
        "auto_override": {
            "from": "compile",
            "reason": "compile_after_success_without_changes",
            "to": "simulate",
        }
    }
    assert COMPILED.decide(COMPILE, "guidance", False) == Decision("execute", COMPILE)
    assert COMPILED.decide(COMPILE, "off", False) == Decision("execute", COMPILE)


@pytest.mark.parametrize("mode", ["full", "guidance"])
def test_compiling_again_after_a_failure_is_blocked(mode: Heuristics) -> None:
    decision = BROKEN.decide(COMPILE, mode, False)
    assert (decision.kind, decision.call) == ("block", COMPILE)
    assert decision.to_info() == {
        "compile_blocked": {"reason": "design_requires_update_before_compile", "hint": BLOCK_HINT}
    }
    assert "write_file" in BLOCK_HINT
    assert BROKEN.after(result("write_file")).decide(COMPILE, mode, False).kind == "execute"


def test_nothing_is_blocked_in_mode_off() -> None:
    assert BROKEN.decide(COMPILE, "off", False) == Decision("execute", COMPILE)


@pytest.mark.parametrize(("completed", "tool"), [(False, "compile"), (True, "submit")])
@pytest.mark.parametrize("state", [Guidance(), WRITTEN, COMPILED, PASSED])
def test_without_a_call_mode_full_falls_back(state: Guidance, completed: bool, tool: ToolName) -> None:
    decision = state.decide(None, "full", completed)
    assert decision == Decision("override", ToolCall(tool, {}), AutoOverride(None, "no_tool_call", tool))
    assert decision.to_info() == {"auto_override": {"from": None, "reason": "no_tool_call", "to": tool}}


def test_the_fall_back_compile_is_blocked_like_any_other() -> None:
    decision = BROKEN.decide(None, "full", False)
    assert decision.kind == "block"
    assert sorted(decision.to_info()) == ["auto_override", "compile_blocked"]


@pytest.mark.parametrize("mode", ["guidance", "off"])
def test_without_a_call_nothing_runs_in_the_other_modes(mode: Heuristics) -> None:
    decision = BROKEN.decide(None, mode, True)
    assert decision == Decision("no_op")
    assert decision.to_info() == {}


@pytest.mark.parametrize(
    ("state", "step", "words"),
    [
        (Guidance(), 0, ["Begin by writing Adder"]),
        (Guidance(), 1, []),
        (WRITTEN, 1, ["compile before you simulate or submit"]),
        (WRITTEN, 0, ["Begin by writing Adder", "compile before you simulate or submit"]),
        (BROKEN, 2, ["match the required ports and behaviour before compiling again"]),
        (COMPILED, 2, ["run simulate"]),
        (PASSED, 3, ["The checks passed: submit."]),
        (MISMATCHED, 3, ["do not submit yet, edit the design"]),
        (MISMATCHED.after(result("write_file")), 4, ["compile before you simulate or submit"]),
    ],
)
def test_the_line_holds_what_applies_and_nothing_else(state: Guidance, step: int, words: list[str]) -> None:
    for mode in ("full", "guidance"):
        line = state.line(step, False, mode=mode, top="Adder")
        for advice in words:
            assert advice in line
        assert len([sentence for sentence in line.split(". ") if sentence]) == len(words)


def test_there_is_no_line_in_mode_off_or_when_completed() -> None:
    assert Guidance().line(0, False, mode="off") == ""
    assert PASSED.line(3, True, mode="full") == ""
