"""From an assistant message to one tool call, or to a sentence that tells the model what was wrong.

Reasoning is separated first; then the tool call is looked for in the native ``tool_calls``, the whole text as JSON,
each fenced block, and the first balanced JSON object that names a tool. Nothing that a model writes raises here, and
the work is linear in the length of the answer.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from verilog_taskapp.environment.actions import TOOL_NAMES, TOOLS, ToolCall

Source = Literal["native", "json", "fence", "embedded"]
Problem = Literal["no_tool_call", "malformed_json", "unknown_tool", "bad_arguments"]

ATTEMPT_CHARS = 1024
"""What one attempt to decode costs at least: Python counts lines up to the place of an error."""
SPARE_CHARS = 256 * 1024
"""Characters that attempts may look at beyond four times the length of the text."""
MAX_DEPTH = 32
"""Deepest nesting accepted in arguments; the tools need 2."""

_CALL_DEPTH = 4  # wrappers such as {"action": {...}} or {"tool_calls": [{"function": {...}}]}
_ARGUMENT_KEYS = ("args", "arguments", "parameters")
_NAME_KEYS = ("tool", "tool_name", "function", "name")
_NAMESPACES = ("functions.", "tools.")
_ALIASES = {"path": ("file_path", "file", "filename"), "content": ("contents", "code", "text")}

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
# Each repeated class excludes what follows it, so that neither pattern backtracks over long runs.
_FENCE = re.compile(r"(?:```|~~~)[^\s{\[`~]{0,40}\s*(?=[{\[])")
_OBJECT = re.compile(r"\{\s*\"")
_CALL_START = re.compile(r"\{\s*\"(?:tool|tool_name|function|name)\"")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Answer:
    """What one assistant message says; exactly one of `call` and `problem` is set."""

    reasoning: str
    """Thinking, from its own fields and from ``<think>`` tags."""
    text: str
    """The answer without the reasoning."""
    call: ToolCall | None = None
    """The first tool call of the message; arguments as sent, names of arguments made canonical."""
    source: Source | None = None
    """Where the call, or the attempt at one, stood."""
    problem: Problem | None = None
    complaint: str = ""
    """For the model: what was wrong; empty if there is a call."""
    extra_calls: int = 0
    """Further calls in the same message, which are ignored."""
    call_id: str | None = None
    """``id`` of a native call, which its ``tool`` message must repeat."""


@dataclass(frozen=True)
class _Wrong:
    problem: Problem
    complaint: str


@dataclass(frozen=True)
class _Failure:
    reason: str
    position: int
    reached: int  # how far the decoder may have read


def read_answer(message: Mapping[str, Any]) -> Answer:
    """Read an assistant message of a chat completion (``choices[].message``)."""
    thinking, content = _fields(message)
    tagged, text, cut = _separate(content)
    reasoning = "\n".join(dict.fromkeys(part.strip() for part in (*thinking, tagged) if part.strip()))

    native = _native_calls(message)
    if native:
        first = native[0]
        function = inner if isinstance(inner := first.get("function"), dict) else first
        name = value if isinstance(value := function.get("name"), str) else ""
        call = _resolve({"tool": name, "args": function.get("arguments")})
        call_id = value if isinstance(value := first.get("id"), str) else None
        return _answer(reasoning, text, call, source="native", extra_calls=len(native) - 1, call_id=call_id)
    source, calls, failure = _find(text)
    if calls:
        return _answer(reasoning, text, _resolve(calls[0]), source=source, extra_calls=len(calls) - 1)
    return _answer(reasoning, text, _nothing(text, cut, source, failure), source=source)


def read_call(tool: str, arguments: object) -> Answer:
    """A call that came as a name and arguments, as in scripts and session steps, by the same rules as a model's."""
    return _answer("", "", _resolve({"tool": tool, "args": arguments}))


def parse_tool_text(text: str) -> tuple[str, dict[str, Any]] | None:
    """Tool name and arguments of the call in an answer's text; None if there is no usable one."""
    call = read_answer({"content": text}).call
    return None if call is None else (call.tool, dict(call.arguments))


def _answer(reasoning: str, text: str, outcome: ToolCall | _Wrong, **facts: Any) -> Answer:
    if isinstance(outcome, ToolCall):
        return Answer(reasoning, text, call=outcome, **facts)
    return Answer(reasoning, text, problem=outcome.problem, complaint=outcome.complaint, **facts)


# --- reasoning and text


def _fields(message: Mapping[str, Any]) -> tuple[list[str], str]:
    """Reasoning fields, and the content as one string."""
    thinking = [value for key in ("reasoning_content", "reasoning") if isinstance(value := message.get(key), str)]
    content = message.get("content")
    texts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            is_reasoning = part.get("type") in ("reasoning", "thinking")
            values = (part.get(key) for key in ("text", "thinking", "reasoning"))
            (thinking if is_reasoning else texts).extend(value for value in values if isinstance(value, str))
    return [_encodable_text(part) for part in thinking], _encodable_text("".join(texts))


def _separate(content: str) -> tuple[str, str, bool]:
    """Reasoning, answer, and whether the text ends inside an unclosed ``<think>``."""
    if not _THINK.search(content) or _is_json(content):  # inside a JSON string a tag is only text
        return "", content.strip(), False
    reasoning: list[str] = []
    answer: list[str] = []
    inside, start = False, 0
    for tag in _THINK.finditer(content):
        closing = bool(tag[1])
        if inside and not closing:
            continue
        before = content[start : tag.start()]
        if inside:
            reasoning.append(before)
        elif closing:  # opened by the chat template: all so far was reasoning
            reasoning += [*answer, before]
            answer.clear()
        else:
            answer.append(before)
        inside, start = not closing, tag.end()
    (reasoning if inside else answer).append(content[start:])
    return "\n".join(reasoning), "".join(answer).strip(), inside


def _encodable_text(text: str) -> str:
    """Lone surrogates cannot be sent or stored as UTF-8: replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


# --- finding JSON


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= 18 else digits  # no tool takes a number: keep what fits 64 bits


def _real(digits: str) -> float | str:
    value = float(digits)
    return value if math.isfinite(value) else digits


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer, parse_float=_real, parse_constant=str)


def _decode(text: str, start: int) -> tuple[object, int] | _Failure:
    """The JSON value at ``start`` and its end, or why there is none."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        unterminated = error.msg.startswith("Unterminated string")
        return _Failure(error.msg, error.pos, len(text) if unterminated else error.pos)
    except RecursionError:
        return _Failure("Nested too deeply", start, len(text))
    return value, end


def _decode_whole(text: str) -> object | _Failure:
    text = text.strip()
    got = _decode(text, 0)
    if isinstance(got, _Failure):
        return got
    return got[0] if got[1] == len(text) else _Failure("Extra data", got[1], got[1])


def _is_json(text: str) -> bool:
    return text.lstrip().startswith(("{", "[")) and not isinstance(_decode_whole(text), _Failure)


def _find(text: str) -> tuple[Source | None, list[dict[str, Any]], _Failure | None]:
    """All calls at the best place that has any, and the first failed attempt at one."""
    budget = 4 * len(text) + SPARE_CHARS
    failure: _Failure | None = None

    def values(starts: re.Pattern[str]) -> Iterator[object]:
        nonlocal budget, failure
        position = 0
        while budget > 0 and (match := starts.search(text, position)):
            start = match.start() if starts is _OBJECT else match.end()
            got = _decode(text, start)
            if isinstance(got, _Failure):
                budget -= max(ATTEMPT_CHARS, got.reached - start)
                position = start + 1
                if failure is None and _CALL_START.match(text, start):
                    failure = got
            else:
                value, position = got
                yield value

    if text.startswith(("{", "[")) and not isinstance(whole := _decode_whole(text), _Failure):
        return "json", _calls_in(whole), None
    if calls := [call for value in values(_FENCE) for call in _calls_in(value)]:
        return "fence", calls, failure
    if calls := [call for value in values(_OBJECT) for call in _calls_in(value)]:
        return "embedded", calls, failure
    return None, [], failure


def _calls_in(value: object) -> list[dict[str, Any]]:
    """The objects in ``value`` that name a tool, in order, not looking into their arguments."""
    found: list[dict[str, Any]] = []
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if isinstance(item, dict) and _name(item) is not None:
            found.append(item)
        elif depth < _CALL_DEPTH and isinstance(item, dict | list):
            children = list(item.values() if isinstance(item, dict) else item)
            stack.extend((child, depth + 1) for child in reversed(children))
    return found


def _native_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        return [call for call in calls if isinstance(call, dict)]
    legacy = message.get("function_call")
    return [legacy] if isinstance(legacy, dict) else []


# --- from an object to a call


def _name(item: dict[str, Any]) -> str | None:
    """The tool's name as written; None for an object that is no call, such as one that merely has a name."""
    has_arguments = "args" in item or "arguments" in item
    for key in _NAME_KEYS:
        value = item.get(key)
        if isinstance(value, str) and (key.startswith("tool") or has_arguments or _folded(value) in TOOL_NAMES):
            return value
    return None


def _folded(name: str) -> str:
    folded = name.strip().casefold()
    for namespace in _NAMESPACES:
        folded = folded.removeprefix(namespace)
    return folded


def _resolve(item: dict[str, Any]) -> ToolCall | _Wrong:
    name = _name(item) or ""
    spec = next((spec for spec in TOOLS if spec.name == _folded(name)), None)
    if spec is None:
        shown = json.dumps(_encodable_text(name[:60]), ensure_ascii=False)
        return _Wrong("unknown_tool", f"There is no tool {shown}; the tools are {', '.join(TOOL_NAMES)}.")
    key = next((key for key in _ARGUMENT_KEYS if key in item), None)
    given: object = item if key is None else item[key]
    if isinstance(given, str):
        given = _decode_whole(given) if given.strip() else {}
    if isinstance(given, _Failure):
        return _Wrong(
            "bad_arguments",
            f"The arguments of {spec.name} are a string that is not a JSON object ({given.reason}).",
        )
    if not isinstance(given, dict | None):
        kind = "a list" if isinstance(given, list) else "a single value"
        return _Wrong("bad_arguments", f"The arguments of {spec.name} must be a JSON object, not {kind}.")
    arguments = _canonical(given or {}) if spec.name == "write_file" else given or {}
    if key is None:  # arguments beside the tool's name: take those that the tool has
        arguments = {name: value for name, value in arguments.items() if name in spec.parameters["properties"]}
    if _too_deep(arguments):
        return _Wrong("bad_arguments", f"The arguments of {spec.name} are nested more than {MAX_DEPTH} levels deep.")
    return ToolCall(spec.name, _encodable(arguments))


def _canonical(arguments: dict[str, Any]) -> dict[str, Any]:
    renamed = dict(arguments)
    for name, aliases in _ALIASES.items():
        alias = next((alias for alias in aliases if alias in renamed), None)
        if name not in renamed and alias is not None:
            renamed[name] = renamed.pop(alias)
    return renamed


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        children = [list(v.values()) if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)]
        level = [child for group in children for child in group]
        if not level:
            return False
    return True


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return _encodable_text(value)
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable_text(key): _encodable(item) for key, item in value.items()}
    return value


# --- complaints


def _nothing(text: str, cut: bool, source: Source | None, failure: _Failure | None) -> _Wrong:
    if cut:
        return _Wrong("no_tool_call", "The reasoning was cut off before any answer: think more briefly.")
    if source == "json":
        return _Wrong("no_tool_call", 'The JSON names no tool: it needs a "tool" key with the name of one.')
    if failure is not None and failure.reached >= len(text):
        return _Wrong(
            "malformed_json",
            "The JSON of the tool call does not end: the answer was cut off, or a quote or brace is missing.",
        )
    if failure is not None:
        near = json.dumps(text[max(0, failure.position - 20) : failure.position + 20], ensure_ascii=False)
        return _Wrong(
            "malformed_json",
            f"The tool call is not valid JSON ({failure.reason}, near {near}). "
            'Inside a JSON string write \\" for a quote and \\\\ for a backslash.',
        )
    if "endmodule" in text:
        return _Wrong("no_tool_call", "The answer holds Verilog but no tool call: send the code with write_file.")
    return _Wrong("no_tool_call", "The answer holds no tool call." if text else "The answer is empty.")
