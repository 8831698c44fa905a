import json
import re
from dataclasses import replace

import pytest

from verilog_taskapp.environment.actions import TOOL_NAMES, ToolCall
from verilog_taskapp.environment.observation import Observation, StepResult
from verilog_taskapp.rollout.guidance import AutoOverride
from verilog_taskapp.rollout.parsing import parse_tool_text
from verilog_taskapp.rollout.prompts import (
    JSON_REMINDER,
    NATIVE_REMINDER,
    LastTurn,
    describe_call,
    simulator_line,
    system_message,
    task_message,
    tool_format_hint,
    turn_message,
)

MODULE = "module TopModule(input a, output b);\n  assign b = a;\nendmodule\n"
STATE = Observation(
    problem_name="Prob007_wire",
    files={"TopModule.v": MODULE},
    files_summary="TopModule.v",
    compile_status="Last compile: Failed\nTopModule.v:3: syntax error",
    simulate_status="",
    reward_last=-0.01,
    total_reward=0.08,
    task_completed=False,
    terminated=False,
    truncated=False,
    steps_left=7,
)
ERRORS = "TopModule.v:3: syntax error\nI give up."
COMPILED = StepResult(
    ToolCall("compile", {}), "failed", ERRORS, -0.01, {"step": -0.01}, False, STATE, notes=("`binary` is ignored.",)
)


def test_the_system_message_says_role_tools_format_and_rules() -> None:
    text = system_message("json", simulator_line("12.0"))
    assert text.startswith("You are a digital design engineer.")
    for tool in TOOL_NAMES:
        assert f"\n- {tool} " in text
    for words in (
        '{"path": string, "content": string}',
        '"sources"?: [string, ...]',
        "exactly one JSON object",
        "```json fence",
        "replaces the whole file",
        "Compile after a change, simulate to verify, submit once the tests pass",
        "Never compile twice without a change in between",
        "Icarus Verilog 12.0",
    ):
        assert words in text


def test_the_example_in_the_system_message_is_a_call_we_read() -> None:
    example = next(line for line in system_message().splitlines() if line.startswith('{"tool"'))
    read = parse_tool_text(example)
    assert read is not None
    assert read[0] == "write_file"
    assert set(read[1]) == {"path", "content"}
    json.loads(example)


def test_the_native_system_message_asks_for_a_tool_call_instead_of_json() -> None:
    text = system_message("native", "Simulator: X")
    assert "JSON" not in text
    assert "exactly one tool call" in text
    assert text.endswith("Simulator: X")


def test_the_prompt_is_short() -> None:
    assert len(system_message("json", simulator_line("11.0"))) < 2400  # about 600 tokens


@pytest.mark.parametrize(
    ("version", "refused", "taken"),
    [
        ("11.0", ["signed'(x)", "`break`"], ["use before declaration"]),
        ("12.0", ["`break`"], ["signed'(x)", "use before declaration"]),
        ("13.0 (devel)", ["use before declaration"], ["`break`", "signed'(x)"]),
        ("unknown", ["concurrent assertions"], ["`break`", "use before declaration"]),
    ],
)
def test_the_simulator_line_names_what_that_version_refuses(version: str, refused: list[str], taken: list[str]) -> None:
    line = simulator_line(version)
    assert f"Icarus Verilog {version} " in line
    assert "concurrent assertions" in line
    assert all(words in line for words in refused)
    assert not any(words in line for words in taken)


def test_the_proxy_hint_says_tools_and_format_and_nothing_of_a_task() -> None:
    hint = tool_format_hint()
    assert all(f"- {tool} " in hint for tool in TOOL_NAMES)
    assert "exactly one JSON object" in hint
    assert "specification" not in hint


def test_the_task_message_is_the_task_then_the_status_then_the_given_files() -> None:
    state = replace(
        STATE,
        files={"TopModule.v": "// stub", "pkg.sv": "package p;\nendpackage\n", "own.v": "x"},
        compile_status="",
        reward_last=0.0,
        total_reward=0.0,
        steps_left=10,
    )
    text = task_message(
        "Build a wire.\n", "TopModule", ["TopModule.v", "pkg.sv"], state, guidance="Begin.", preview_chars=600
    )
    assert text == (
        "Build a wire.\n\n"
        "Implement module TopModule. Files in the workspace: TopModule.v, pkg.sv, own.v.\n\n"
        "Status: step 0, 10 left; reward +0, total +0; task completed: no\n"
        "Not compiled yet\nNot simulated yet\n\n"
        "=== pkg.sv (22 chars) ===\npackage p;\nendpackage\n\n"
        "Guidance: Begin."
    )


def test_a_turn_message_is_feedback_status_files_request_and_guidance() -> None:
    text = turn_message(3, STATE, LastTurn(COMPILED), guidance="Update the design.", preview_chars=600)
    assert text == (
        "Last action: compile() -> failed\n"
        "TopModule.v:3: syntax error\nI give up.\n"
        "Note: `binary` is ignored.\n\n"
        "Status: step 3, 7 left; reward -0.01, total +0.08; task completed: no\n"
        "Last compile: Failed\nNot simulated yet\n\n"
        f"=== TopModule.v ({len(MODULE)} chars) ===\n{MODULE.rstrip()}\n\n"
        f"Choose the single most helpful tool now. {JSON_REMINDER}\n\n"
        "Guidance: Update the design."
    )


def test_compiler_messages_are_said_once() -> None:
    text = turn_message(3, STATE, LastTurn(COMPILED), preview_chars=600)
    assert text.count("syntax error") == 1


def test_without_guidance_there_is_no_guidance_line() -> None:
    assert "Guidance" not in turn_message(1, STATE, LastTurn(COMPILED), preview_chars=600)


def test_a_native_turn_message_asks_for_a_tool_call() -> None:
    text = turn_message(1, STATE, LastTurn(COMPILED), preview_chars=600, mode="native")
    assert text.endswith(NATIVE_REMINDER)
    assert "JSON" not in text


def test_an_unusable_answer_is_told_with_its_reason() -> None:
    text = turn_message(1, STATE, LastTurn(None, complaint="The answer is empty."), preview_chars=600)
    assert text.startswith(
        "Your answer was not usable: The answer is empty.\nLast action: none, no tool ran.\n\nStatus"
    )


def test_overrides_and_ignored_calls_are_told() -> None:
    fallback = AutoOverride(None, "no_tool_call", "compile")
    text = turn_message(1, STATE, LastTurn(COMPILED, "No call.", fallback), preview_chars=600)
    assert "not usable: No call.\nWithout a usable call, compile was chosen for you.\nLast action: compile()" in text
    again = AutoOverride("compile", "compile_after_success_without_changes", "simulate")
    text = turn_message(1, STATE, LastTurn(COMPILED, override=again, extra_calls=2), preview_chars=600)
    assert "so simulate was run instead." in text
    assert "one call per answer; 2 further ignored" in text


@pytest.mark.parametrize("preview", [0, 1, 10, len(MODULE) - 1])
def test_a_long_file_is_cut_and_the_message_says_by_how_much(preview: int) -> None:
    text = turn_message(1, STATE, LastTurn(COMPILED), preview_chars=preview)
    match = re.search(r"=== TopModule\.v \((\d+) chars\) ===\n(.*?)\n?\[cut: (\d+) of (\d+) chars", text, re.DOTALL)
    assert match is not None
    assert int(match[1]) == int(match[4]) == len(MODULE)
    assert int(match[3]) == len(MODULE) - preview
    assert match[2] == MODULE[:preview]


def test_a_file_that_fits_is_whole() -> None:
    text = turn_message(1, STATE, LastTurn(COMPILED), preview_chars=len(MODULE))
    assert "[cut" not in text
    assert MODULE.rstrip() in text


def test_an_empty_file_is_named() -> None:
    text = turn_message(1, replace(STATE, files={"a.v": ""}), LastTurn(COMPILED), preview_chars=5)
    assert "=== a.v (0 chars) ===\n\nChoose" in text


@pytest.mark.parametrize(
    ("call", "short"),
    [
        (ToolCall("submit", {}), "submit()"),
        (
            ToolCall("write_file", {"path": "TopModule.v", "content": "x" * 412}),
            'write_file(path="TopModule.v", content=412 chars)',
        ),
        (ToolCall("compile", {"sources": ["a.v", "b.v"]}), 'compile(sources=["a.v", "b.v"])'),
        (ToolCall("compile", {"sources": ["x" * 50] * 9}), "compile(sources=9 items)"),
        (ToolCall("compile", {"sources": [1, [2]]}), "compile(sources=[...])"),
        (ToolCall("compile", {"a": {"b": 1}, "c": None, "d": 2}), "compile(a={...}, c=null, d=2)"),
        (ToolCall("compile", {"k" * 50 + str(i): i for i in range(9)}), "compile(9 arguments)"),
    ],
)
def test_calls_are_described_in_short(call: ToolCall, short: str) -> None:
    assert describe_call(call) == short
