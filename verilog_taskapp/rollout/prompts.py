"""Every word that the loop says to a model: the product's prompt, as pure functions of what may be shown.

Nothing here sees a reference, a testbench, a key or a server path: only the task's text, the observation and the
tools' own messages.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from verilog_taskapp.environment.actions import TOOLS, ToolCall, ToolSpec
from verilog_taskapp.environment.observation import Observation, StepResult
from verilog_taskapp.rollout.guidance import AutoOverride

ToolMode = Literal["json", "native"]

ARGUMENT_CHARS = 60
"""Longest argument value repeated in the feedback; the model has just written it."""

JSON_REMINDER = 'Answer with one JSON object only: {"tool": "...", "args": {...}}'
NATIVE_REMINDER = "Answer with one tool call only."

_JSON_FORMAT = """\
Answer with exactly one JSON object {"tool": ..., "args": {...}}, optionally in a ```json fence, and no other prose:
{"tool": "write_file", "args": {"path": "TopModule.v", "content": "module TopModule (...);\\n  ...\\nendmodule\\n"}}
In JSON strings write a line break as \\n, a quote as \\" and a backslash as \\\\."""
_NATIVE_FORMAT = "Answer with exactly one tool call and no other prose."

_ROLE = """\
You are a digital design engineer. You implement a hardware module in Verilog/SystemVerilog from its specification.
A hidden testbench decides whether the outputs are right."""
_RULES = """\
Rules:
- One tool call per answer. The result comes back in the next message.
- Implement the module with exactly the name, ports and widths that the task gives. Write no testbench.
- write_file replaces the whole file: when you edit, send the complete file again.
- Compile after a change, simulate to verify, submit once the tests pass. Submitting ends the episode.
- Never compile twice without a change in between."""

_REFUSED_BY_ALL = "`inside`, `'{default: ...}`, streaming operators, `let`, concurrent assertions"
_REFUSED_BEFORE_12 = "casts `type'(x)` and `signed'(x)`, `parameter type`, `parameter string`"
_REFUSED_BEFORE_13 = "`break`, `continue`"
_REFUSED_SINCE_13 = "use before declaration, an int assigned to an enum"


@dataclass(frozen=True)
class LastTurn:
    """What became of the model's last answer."""

    result: StepResult | None
    """None: no tool ran, because the answer held no usable call."""
    complaint: str = ""
    """What was wrong with the answer; see `verilog_taskapp.rollout.parsing.Answer`."""
    override: AutoOverride | None = None
    """The tool that was executed in place of the model's."""
    extra_calls: int = 0
    """Further calls of the same answer, which were ignored."""


def simulator_line(version: str) -> str:
    """Which simulator compiles the design and what it refuses; ``version`` as in ``"12.0"``."""
    head = version.split(".")[0]
    major = int(head) if head.isdecimal() else None
    refused = [_REFUSED_BY_ALL]
    if major is not None and major < 12:
        refused.append(_REFUSED_BEFORE_12)
    if major is not None:
        refused.append(_REFUSED_BEFORE_13 if major < 13 else _REFUSED_SINCE_13)
    return f"Simulator: Icarus Verilog {version} with -g2012. It does not support: {', '.join(refused)}."


def tool_format_hint() -> str:
    """How to call the tools in plain text, for conversations that are not ours (the inference proxy)."""
    return f"Tools:\n{_tool_list()}\n\n{_JSON_FORMAT}"


def system_message(mode: ToolMode = "json", simulator: str = "") -> str:
    """The system message; ``simulator`` is a line such as `simulator_line` gives."""
    tools = f"Tools:\n{_tool_list()}"  # native mode sends them as schemas
    parts = [_ROLE, tools, _JSON_FORMAT, _RULES] if mode == "json" else [_ROLE, _NATIVE_FORMAT, _RULES]
    return "\n\n".join([*parts, simulator] if simulator else parts)


def task_message(
    prompt: str,
    top: str,
    files_provided: Sequence[str],
    observation: Observation,
    *,
    guidance: str = "",
    preview_chars: int,
) -> str:
    """The first user message: the task, the state, and the given files other than the stub of ``top``.

    ``preview_chars`` is the number of characters shown of each file; the stub only repeats the task.
    """
    stub = f"{top}.v"
    given = {path: observation.files[path] for path in files_provided if path in observation.files and path != stub}
    provided = f"Implement module {top}. Files in the workspace: {', '.join(observation.files) or 'none'}."
    return _paragraphs(
        prompt.strip(), provided, _status(0, observation), _files(given, preview_chars), _guidance_line(guidance)
    )


def turn_message(
    step: int,
    observation: Observation,
    last: LastTurn,
    *,
    guidance: str = "",
    preview_chars: int,
    mode: ToolMode = "json",
) -> str:
    """A later message: feedback on the last action, state, files, what to do next.

    ``step`` counts the model turns so far. In mode ``native`` it is the content of the ``tool`` message.
    """
    return _paragraphs(
        _feedback(observation, last),
        _status(step, observation),
        _files(observation.files, preview_chars),
        "Choose the single most helpful tool now. " + (JSON_REMINDER if mode == "json" else NATIVE_REMINDER),
        _guidance_line(guidance),
    )


def describe_call(call: ToolCall) -> str:
    """A call in short: ``write_file(path="TopModule.v", content=412 chars)``."""
    shown = ", ".join(f"{name[:ARGUMENT_CHARS]}={_short(value)}" for name, value in call.arguments.items())
    return f"{call.tool}({shown if len(shown) <= 6 * ARGUMENT_CHARS else f'{len(call.arguments)} arguments'})"


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _tool_list() -> str:
    return "\n".join(f"- {spec.name} {_signature(spec)}: {spec.description}" for spec in TOOLS)


def _signature(spec: ToolSpec) -> str:
    required = spec.parameters["required"]
    fields = (
        f'"{name}"{"" if name in required else "?"}: {_type(schema)}'
        for name, schema in spec.parameters["properties"].items()
    )
    return "{" + ", ".join(fields) + "}"


def _type(schema: Mapping[str, Any]) -> str:
    return f"[{schema['items']['type']}, ...]" if schema["type"] == "array" else str(schema["type"])


def _short(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if len(value) <= ARGUMENT_CHARS else f"{len(value)} chars"
    if isinstance(value, list):
        names = ", ".join(_short(item) for item in value) if all(isinstance(item, str) for item in value) else "..."
        return f"[{names}]" if len(names) <= ARGUMENT_CHARS else f"{len(value)} items"
    return "{...}" if isinstance(value, Mapping) else json.dumps(value)


def _feedback(observation: Observation, last: LastTurn) -> str:
    lines: list[str] = []
    if last.complaint:
        lines.append(f"Your answer was not usable: {last.complaint}")
    if last.override is not None:
        lines.append(_override_line(last.override))
    if last.result is None:
        lines.append("Last action: none, no tool ran.")
    else:
        lines.append(f"Last action: {describe_call(last.result.call)} -> {last.result.outcome}")
        lines += [last.result.message.rstrip()] if last.result.message.strip() else []
        lines += [f"Note: {note}" for note in last.result.notes]
    if last.extra_calls:
        lines.append(f"Note: one call per answer; {last.extra_calls} further ignored.")
    return "\n".join(lines)


def _override_line(override: AutoOverride) -> str:
    if override.original is None:
        return f"Without a usable call, {override.executed} was chosen for you."
    return f"Nothing had changed since the last successful compile, so {override.executed} was run instead."


def _status(step: int, observation: Observation) -> str:
    completed = "yes" if observation.task_completed else "no"
    return (
        f"Status: step {step}, {observation.steps_left} left; "
        f"reward {observation.reward_last:+.4g}, total {observation.total_reward:+.4g}; task completed: {completed}\n"
        f"{_first_line(observation.compile_status) or 'Not compiled yet'}\n"
        f"{_first_line(observation.simulate_status) or 'Not simulated yet'}"
    )


def _first_line(status: str) -> str:
    return status.strip().partition("\n")[0]  # the rest was the tool's message


def _files(files: Mapping[str, str], preview_chars: int) -> str:
    return "\n\n".join(_file(path, text, preview_chars) for path, text in files.items())


def _file(path: str, text: str, preview_chars: int) -> str:
    if len(text) <= preview_chars:
        return f"=== {path} ({len(text)} chars) ===\n{text.rstrip()}".rstrip()
    head = f"=== {path} ({len(text)} chars) ==="
    cut = f"[cut: {len(text) - preview_chars} of {len(text)} chars not shown]"
    return "\n".join(part for part in (head, text[:preview_chars], cut) if part)


def _guidance_line(guidance: str) -> str:
    return f"Guidance: {guidance}" if guidance else ""
