import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verilog_taskapp.environment.actions import TOOL_NAMES, ToolCall
from verilog_taskapp.rollout import parsing
from verilog_taskapp.rollout.parsing import parse_tool_text, read_answer

MUX = 'module TopModule(input a, b, sel, output o);\n  assign o = {sel} ? b : a; // "quoted" {braces}\nendmodule\n'
WRITE = {"path": "TopModule.v", "content": MUX}
WRITE_JSON = json.dumps({"tool": "write_file", "args": WRITE})
COMPILE = '{"tool": "compile", "args": {}}'

READS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "bare object": (COMPILE, "compile", {}, "json"),
    "blank lines around": (f"\n\n{COMPILE}\n", "compile", {}, "json"),
    "pretty-printed": (json.dumps({"tool": "write_file", "args": WRITE}, indent=2), "write_file", WRITE, "json"),
    "code with braces and quotes": (WRITE_JSON, "write_file", WRITE, "json"),
    "literal newlines in a string": (
        '{"tool": "write_file", "args": {"path": "TopModule.v", "content": "module TopModule;\n\tendmodule\n"}}',
        "write_file",
        {"path": "TopModule.v", "content": "module TopModule;\n\tendmodule\n"},
        "json",
    ),
    "list of one": (f"[{COMPILE}]", "compile", {}, "json"),
    "name and arguments": ('{"name": "simulate", "arguments": {}}', "simulate", {}, "json"),
    "name and parameters": ('{"name": "submit", "parameters": {}}', "submit", {}, "json"),
    "name alone": ('{"name": "submit"}', "submit", {}, "json"),
    "function wrapper": (
        '{"type": "function", "function": {"name": "compile", "arguments": "{\\"sources\\": [\\"a.v\\"]}"}}',
        "compile",
        {"sources": ["a.v"]},
        "json",
    ),
    "function as a name": ('{"function": "compile", "arguments": {}}', "compile", {}, "json"),
    "tool as a wrapper": ('{"tool": {"name": "compile", "arguments": {}}}', "compile", {}, "json"),
    "tool_calls wrapper": (
        '{"tool_calls": [{"id": "1", "function": {"name": "simulate", "arguments": "{}"}}]}',
        "simulate",
        {},
        "json",
    ),
    "our own record of a call": ('{"tool_name": "simulate", "arguments": {}}', "simulate", {}, "json"),
    "thought beside an action": (
        '{"thought": "now {compile}", "action": {"tool": "compile", "args": {}}}',
        "compile",
        {},
        "json",
    ),
    "arguments as a JSON string": (
        json.dumps({"tool": "write_file", "args": json.dumps(WRITE)}),
        "write_file",
        WRITE,
        "json",
    ),
    "empty string as arguments": ('{"tool": "submit", "args": ""}', "submit", {}, "json"),
    "null as arguments": ('{"tool": "submit", "args": null}', "submit", {}, "json"),
    "no arguments": ('{"tool": "submit"}', "submit", {}, "json"),
    "arguments beside the tool": (
        json.dumps({"tool": "write_file", **WRITE, "reason": "fix"}),
        "write_file",
        WRITE,
        "json",
    ),
    "aliases beside the tool": (
        json.dumps({"tool": "write_file", "filename": "TopModule.v", "code": MUX}),
        "write_file",
        WRITE,
        "json",
    ),
    "file_path and contents": (
        json.dumps({"tool": "write_file", "args": {"file_path": "TopModule.v", "contents": MUX}}),
        "write_file",
        WRITE,
        "json",
    ),
    "file and text": (
        json.dumps({"tool": "write_file", "args": {"file": "TopModule.v", "text": MUX}}),
        "write_file",
        WRITE,
        "json",
    ),
    "canonical name wins, alias stays": (
        '{"tool": "write_file", "args": {"path": "a.v", "file": "b.v", "content": ""}}',
        "write_file",
        {"path": "a.v", "file": "b.v", "content": ""},
        "json",
    ),
    "aliases only for write_file": ('{"tool": "compile", "args": {"file": 1}}', "compile", {"file": 1}, "json"),
    "unknown arguments are kept for the environment to name": (
        '{"tool": "compile", "args": {"sources": ["TopModule.v"], "testbench": "tb.v"}}',
        "compile",
        {"sources": ["TopModule.v"], "testbench": "tb.v"},
        "json",
    ),
    "name in capitals with spaces": ('{"tool": " Write_File ", "args": {}}', "write_file", {}, "json"),
    "namespaced name": ('{"tool": "functions.compile", "args": {}}', "compile", {}, "json"),
    "json fence": (f"```json\n{WRITE_JSON}\n```", "write_file", WRITE, "fence"),
    "bare fence": (f"```\n{COMPILE}\n```", "compile", {}, "fence"),
    "tilde fence": (f"~~~json\n{COMPILE}\n~~~", "compile", {}, "fence"),
    "fence without line break": (f"```json {COMPILE} ```", "compile", {}, "fence"),
    "fence of another name": (f"```tool_call\n{COMPILE}\n```", "compile", {}, "fence"),
    "unclosed fence": (f"I compile.\n```json\n{COMPILE}", "compile", {}, "fence"),
    "fence with a list": (f"```json\n[{COMPILE}]\n```", "compile", {}, "fence"),
    "fence between prose": (f"Let me compile {{it}}:\n\n```json\n{COMPILE}\n```\nDone.", "compile", {}, "fence"),
    "fence after a Verilog fence": (
        f"```verilog\n{MUX}```\nNow:\n```json\n{WRITE_JSON}\n```",
        "write_file",
        WRITE,
        "fence",
    ),
    "fence before an earlier embedded call": (
        f'Not {{"tool": "submit"}} yet.\n```json\n{COMPILE}\n```',
        "compile",
        {},
        "fence",
    ),
    "fence of other JSON, then the call": (
        f'```json\n{{"ports": {{"a": 1}}}}\n```\n```json\n{COMPILE}\n```',
        "compile",
        {},
        "fence",
    ),
    "fence inside the content": (
        '```json\n{"tool": "write_file", "args": {"path": "a.v", "content": "\n```verilog\nmodule a;\n```\n"}}\n```',
        "write_file",
        {"path": "a.v", "content": "\n```verilog\nmodule a;\n```\n"},
        "fence",
    ),
    "prose around": (f"I will write it: {WRITE_JSON} That is all {{really}}.", "write_file", WRITE, "embedded"),
    "inline code": (f"Use `{COMPILE}` now", "compile", {}, "embedded"),
    "Hermes tags": (
        '<tool_call>\n{"name": "compile", "arguments": {}}\n</tool_call>',
        "compile",
        {},
        "embedded",
    ),
    "Mistral marker": ('[TOOL_CALLS][{"name": "compile", "arguments": {}}]', "compile", {}, "embedded"),
    "Verilog concatenation before": (
        f'assign q = {{"a", b}}; assign r = {{2{{a}}}};\n{COMPILE}',
        "compile",
        {},
        "embedded",
    ),
    "other object before": (f'ports {{"clk": 1}} so {COMPILE}', "compile", {}, "embedded"),
    "named object before": (f'{{"name": "TopModule", "ports": []}} {COMPILE}', "compile", {}, "embedded"),
    "outer object cut off": (
        '{"thought": "go", "action": {"tool": "compile", "args": {}}',
        "compile",
        {},
        "embedded",
    ),
    "text after the object": (f"{COMPILE}<|im_end|>", "compile", {}, "embedded"),
    "think tags": (f"<think>maybe {WRITE_JSON}?</think>\n{COMPILE}", "compile", {}, "json"),
    "two think tags": (f"<think>a</think><think>b</think>{COMPILE}", "compile", {}, "json"),
    "think closed only": (f"maybe {WRITE_JSON}\n</think>\n\n{COMPILE}", "compile", {}, "json"),
    "think tag in capitals": (f"<THINK>a</THINK>{COMPILE}", "compile", {}, "json"),
    "answer before an unclosed think": (f"{COMPILE}\n<think>and then", "compile", {}, "json"),
    "think tag in a string": (
        '{"tool": "write_file", "args": {"path": "a.v", "content": "// <think>"}}',
        "write_file",
        {"path": "a.v", "content": "// <think>"},
        "json",
    ),
}


@pytest.mark.parametrize("label", READS)
def test_a_call_is_read_from(label: str) -> None:
    text, tool, arguments, source = READS[label]
    answer = read_answer({"role": "assistant", "content": text})
    assert (answer.call, answer.source) == (ToolCall(tool, arguments), source)  # type: ignore[arg-type]
    assert answer.problem is None
    assert answer.complaint == ""
    assert parse_tool_text(text) == (tool, arguments)


WRONG: dict[str, tuple[str, str, str]] = {
    "nothing": ("", "no_tool_call", "The answer is empty."),
    "prose": ("I think the design is fine.", "no_tool_call", "holds no tool call"),
    "Verilog only": (f"```verilog\n{MUX}```", "no_tool_call", "send the code with write_file"),
    "JSON without a tool": ('{"path": "a.v", "content": ""}', "no_tool_call", 'needs a "tool" key'),
    "a number as tool": ('{"tool": 3, "args": {}}', "no_tool_call", 'needs a "tool" key'),
    "JSON that is no object": ("[1, 2]", "no_tool_call", 'needs a "tool" key'),
    "unclosed think": (f"<think>I should call {COMPILE} but", "no_tool_call", "reasoning was cut off"),
    "unknown tool": ('{"tool": "read_file", "args": {}}', "unknown_tool", 'no tool "read_file"'),
    "unknown name": ('{"name": "ls", "arguments": {}}', "unknown_tool", "write_file, compile, simulate, submit"),
    "string arguments": ('{"tool": "compile", "args": "TopModule.v"}', "bad_arguments", "a string that is not a JSON"),
    "string arguments with a tail": ('{"tool": "compile", "args": "{} x"}', "bad_arguments", "Extra data"),
    "list arguments": ('{"tool": "compile", "args": ["a.v"]}', "bad_arguments", "not a list"),
    "number arguments": ('{"tool": "compile", "args": 1}', "bad_arguments", "not a single value"),
    "string of a number": ('{"tool": "compile", "args": "1"}', "bad_arguments", "not a single value"),
    "deep arguments": (
        '{"tool": "compile", "args": {"sources": ' + "[" * 40 + "]" * 40 + "}}",
        "bad_arguments",
        "nested more than 32",
    ),
    "cut off in a string": (WRITE_JSON[:90], "malformed_json", "does not end"),
    "cut off in a fence": (f"```json\n{WRITE_JSON[:90]}", "malformed_json", "does not end"),
    "closing brace missing": ('{"tool": "compile", "args": {}', "malformed_json", "does not end"),
    "unescaped quotes": (
        '{"tool": "write_file", "args": {"path": "a.v", "content": "initial $display("hi");"}}',
        "malformed_json",
        'near "',
    ),
    "trailing comma": ('{"tool": "compile", "args": {},}', "malformed_json", "not valid JSON"),
    "bad escape": (
        r'{"tool": "write_file", "args": {"path": "a.v", "content": "4\'b0"}}',
        "malformed_json",
        r"Invalid \escape",
    ),
    "Python literals": ("{'tool': 'compile', 'args': {}}", "no_tool_call", "holds no tool call"),
}


@pytest.mark.parametrize("label", WRONG)
def test_what_is_wrong_is_said_of(label: str) -> None:
    text, problem, words = WRONG[label]
    answer = read_answer({"content": text})
    assert (answer.call, answer.problem) == (None, problem)
    assert words in answer.complaint
    assert parse_tool_text(text) is None


def test_only_the_first_of_several_calls_counts() -> None:
    submit = '{"tool": "submit", "args": {}}'
    for text in (
        f"[{COMPILE}, {submit}, {submit}]",
        f"{COMPILE}\n{submit}\n{submit}",
        f"```json\n{COMPILE}\n```\n```json\n{submit}\n```\nthen\n```json\n{submit}\n```",
    ):
        answer = read_answer({"content": text})
        assert answer.call == ToolCall("compile", {})
        assert answer.extra_calls == 2


def test_reasoning_is_collected_from_fields_and_tags_without_repeats() -> None:
    message = {
        "reasoning_content": "same",
        "reasoning": "same",
        "content": [{"type": "thinking", "thinking": "part"}, {"type": "text", "text": f"<think>tag</think>{COMPILE}"}],
    }
    answer = read_answer(message)
    assert answer.reasoning == "same\npart\ntag"
    assert answer.text == COMPILE


def test_the_call_in_a_closed_think_block_is_not_executed() -> None:
    answer = read_answer({"content": f"<think>{COMPILE}</think>"})
    assert (answer.call, answer.text) == (None, "")
    assert answer.reasoning == COMPILE


def test_text_keeps_what_stands_between_think_blocks() -> None:
    answer = read_answer({"content": "a<think>1</think>b<think>2<think>3</think>c"})
    assert (answer.text, answer.reasoning) == ("abc", "1\n2<think>3")


def test_content_parts_may_be_strings_and_unknown_parts_are_skipped() -> None:
    answer = read_answer({"content": ['{"tool": ', {"type": "text", "text": '"submit"}'}, {"type": "image_url"}, 7]})
    assert answer.call == ToolCall("submit", {})


NATIVE = {"id": "call_1", "type": "function", "function": {"name": "write_file", "arguments": json.dumps(WRITE)}}


def test_a_native_call_wins_over_the_text_and_keeps_its_id() -> None:
    answer = read_answer({"content": COMPILE, "tool_calls": [NATIVE, NATIVE]})
    assert answer.call == ToolCall("write_file", WRITE)
    assert (answer.source, answer.call_id, answer.extra_calls) == ("native", "call_1", 1)


@pytest.mark.parametrize("arguments", ["", "  ", "{}", None, {}])
def test_native_arguments_may_be_empty(arguments: object) -> None:
    call = {"id": "1", "function": {"name": "compile", "arguments": arguments}}
    assert read_answer({"content": None, "tool_calls": [call]}).call == ToolCall("compile", {})


def test_a_legacy_function_call_is_read() -> None:
    answer = read_answer({"content": None, "function_call": {"name": "submit", "arguments": "{}"}})
    assert (answer.call, answer.call_id) == (ToolCall("submit", {}), None)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ({"name": "ls", "arguments": "{}"}, "unknown_tool"),
        ({"name": "ls"}, "unknown_tool"),
        ({"name": None}, "unknown_tool"),
        ({"name": "write_file", "arguments": '{"path": "TopModule.v", "content": "mod'}, "bad_arguments"),
    ],
)
def test_a_wrong_native_call_is_not_replaced_by_one_in_the_text(function: dict[str, Any], problem: str) -> None:
    answer = read_answer({"content": COMPILE, "tool_calls": [{"id": "1", "function": function}]})
    assert (answer.call, answer.problem, answer.source) == (None, problem, "native")


@pytest.mark.parametrize("calls", [None, [], "compile", [3]])
def test_without_native_calls_the_text_is_read(calls: object) -> None:
    assert read_answer({"content": COMPILE, "tool_calls": calls}).source == "json"


def test_arguments_can_always_be_sent_and_stored() -> None:
    text = (
        '{"tool": "compile", "args": {"sources": ["\\ud800.v"], "\\udfff": 1, "a": NaN, "b": -Infinity, '
        '"c": 1e999, "d": ' + "9" * 5000 + ', "e": 18446744073709551616, "f": 2.5, "g": -7}}'
    )
    call = read_answer({"content": text}).call
    assert call is not None
    assert dict(call.arguments) == {
        "sources": ["\ufffd.v"],
        "\ufffd": 1,
        "a": "NaN",
        "b": "-Infinity",
        "c": "1e999",
        "d": "9" * 5000,
        "e": "18446744073709551616",
        "f": 2.5,
        "g": -7,
    }
    json.dumps(call.arguments, ensure_ascii=False, allow_nan=False).encode()
    assert read_answer({"content": "\udc00", "reasoning": "\udc00"}).text == "\ufffd"


MILLION = 1_000_000
ADVERSARIAL = {
    "braces": "{" * MILLION,
    "braces and quotes": '{"' * (MILLION // 2),
    "nested objects": '{"a":' * (MILLION // 5),
    "nested calls": '{"tool":[' * (MILLION // 9),
    "nested lists": "[" * MILLION,
    "unterminated strings": '{"a' * (MILLION // 3),
    "escaped quotes": '{ "\\' * (MILLION // 4),
    "long lists that never close": '{"a":[' * 64 + "1," * (MILLION // 2),
    "fences": "```" * (MILLION // 3),
    "tildes": "~" * MILLION,
    "fenced objects": "```\n{" * (MILLION // 5),
    "fenced strings": '```json{"a":"' * (MILLION // 13),
    "fence and spaces": "``` " + " " * MILLION,
    "brace and spaces": "{" + " " * MILLION,
    "digits": '{"tool":' + "9" * MILLION,
    "objects": '{"a":1}' * (MILLION // 7),
    "calls": '{"tool":"compile"}' * (MILLION // 18),
    "opened thoughts": "<think>" * (MILLION // 7),
    "closed thoughts": "</think>" * (MILLION // 8),
}


@pytest.mark.parametrize("label", ADVERSARIAL)
def test_the_work_on_an_adversarial_answer_is_linear(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ADVERSARIAL[label]
    looked_at = 0
    failed = 0
    decode = parsing._decode

    def counted(text: str, start: int) -> tuple[object, int] | parsing._Failure:
        nonlocal looked_at, failed
        got = decode(text, start)
        failed += isinstance(got, parsing._Failure)
        looked_at += (got.reached if isinstance(got, parsing._Failure) else got[1]) - start
        return got

    monkeypatch.setattr(parsing, "_decode", counted)
    read_answer({"content": text})
    budget = 4 * len(text) + parsing.SPARE_CHARS
    assert looked_at <= budget + 6 * len(text)  # the last attempts of a budget, whole text, and what could be decoded
    assert failed <= budget // parsing.ATTEMPT_CHARS + 4


pieces = [*"{}[]\"'\\`~\n\t :,;", "```", "```json\n", '{"tool": "submit"}', "é", "endmodule"]
calls = st.builds(
    lambda path, content, extra: {"tool": "write_file", "args": {**extra, "path": path, "content": content}},
    st.text(max_size=20),
    st.lists(st.sampled_from(pieces)).map("".join),
    st.dictionaries(st.text(max_size=5), st.integers(-9, 9) | st.booleans() | st.none(), max_size=2),
)
prose = st.text(alphabet=st.characters(exclude_characters='"<', exclude_categories=["Cs"]), max_size=60)


@given(calls, st.booleans(), st.sampled_from([None, 2]))
def test_a_dumped_call_survives(call: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    dumped = json.dumps(call, ensure_ascii=ascii_only, indent=indent)
    answer = read_answer({"content": dumped})
    assert answer.call is not None
    assert answer.extra_calls == 0
    assert {"tool": answer.call.tool, "args": answer.call.arguments} == {"tool": "write_file", "args": _clean(call)}


@given(calls, prose, prose, st.sampled_from(["{}", "```json\n{}\n```", "```\n{}\n```", "<tool_call>{}</tool_call>"]))
def test_a_dumped_call_survives_in_prose(call: dict[str, Any], before: str, after: str, frame: str) -> None:
    framed = frame.replace("{}", json.dumps(call))
    answer = read_answer({"content": f"{before}\n{framed}\n{after}"})
    assert answer.call is not None
    assert {"tool": answer.call.tool, "args": answer.call.arguments} == {"tool": "write_file", "args": _clean(call)}


def _clean(call: dict[str, Any]) -> object:
    return json.loads(json.dumps(call["args"]))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tool", "args", "name", "arguments", "function", "path", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
fragments = st.lists(
    st.sampled_from(
        [
            *'{}[]":,\\`',
            "```json\n",
            "<think>",
            "</think>",
            '{"tool": "compile"',
            '"args": ',
            *TOOL_NAMES,
            "\ud800",
            "1e999",
        ]
    )
    | st.text(max_size=4)
).map("".join)


@given(fragments | json_values.map(json.dumps))
def test_no_text_raises(text: str) -> None:
    answer = read_answer({"content": text})
    assert (answer.call is None) == (answer.problem is not None) == bool(answer.complaint)
    answer.text.encode()
    answer.complaint.encode()


@given(st.dictionaries(st.sampled_from(["content", "tool_calls", "reasoning", "function_call"]), json_values))
def test_no_message_raises(message: dict[str, Any]) -> None:
    answer = read_answer(message)
    assert (answer.call is None) == (answer.problem is not None)
