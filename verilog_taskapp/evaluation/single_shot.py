"""One model turn with the specification; the code in the answer is the design. VerilogEval's own way of asking."""

import re
from dataclasses import dataclass

from verilog_taskapp.contracts import RolloutRequest
from verilog_taskapp.errors import ContextLengthExceeded
from verilog_taskapp.icarus.gate import declared_modules
from verilog_taskapp.inference.client import ChatClient
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.rollout.parsing import read_answer
from verilog_taskapp.rollout.policy import resolve_policy
from verilog_taskapp.settings import Settings

SYSTEM = (
    "You are a digital design engineer. You write synthesizable Verilog that does exactly what a specification says."
)
_FENCED = re.compile(r"^[ \t]*(```+|~~~+)[^\n`]*\n(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_BEGIN = re.compile(r"^[ \t]*module\b", re.MULTILINE)
_DIRECTIVE = re.compile(r"[ \t]*`\w")
_END = re.compile(r"\bendmodule\b")


@dataclass(frozen=True)
class Shot:
    """What a model answered."""

    text: str
    """Without its reasoning."""
    design: str | None
    """None: there is no code in it."""
    stop_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


def messages_for(problem: Problem) -> list[dict[str, str]]:
    """The conversation that is sent."""
    asked = (
        f"{problem.prompt.strip()}\n\n"
        f"Write the module {problem.top}. Answer with one Verilog code block that holds the complete design."
    )
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked}]


def design_in(text: str, top: str) -> str | None:
    """The design in an answer: its fenced blocks that declare modules, else the text from ``module`` to ``endmodule``.

    Of two blocks that declare the same module the later one counts: models think aloud and then correct themselves.
    An answer that is a ``write_file`` call, as models trained on tools write it, holds its design as that call's text.
    """
    call = read_answer({"content": text}).call
    if call is not None and call.tool == "write_file" and isinstance(call.arguments.get("content"), str):
        return str(call.arguments["content"])
    blocks = [match[2] for match in _FENCED.finditer(text)]
    kept: list[str] = []
    declared: set[str] = set()
    for block in reversed(blocks):
        modules = declared_modules(block)
        if modules and not modules & declared:
            kept.insert(0, block)
            declared |= modules
    if kept:
        return "\n".join(kept)
    begin, ends = _BEGIN.search(text), [match.end() for match in _END.finditer(text)]
    if begin is not None and ends and ends[-1] > begin.end():
        return "".join((*_directives_before(text[: begin.start()]), text[begin.start() : ends[-1]], "\n"))
    return next((block for block in reversed(blocks) if top in block), None)


def _directives_before(text: str) -> list[str]:
    """The compiler directives on the last lines of `text`."""
    lines = text.splitlines(keepends=True)
    first = len(lines)
    while first and _DIRECTIVE.match(lines[first - 1]):
        first -= 1
    return lines[first:]


async def ask(request: RolloutRequest, problem: Problem, chat: ChatClient, settings: Settings) -> Shot:
    """Ask the model that `request` names. Raises the errors of the inference client."""
    policy = resolve_policy(request, settings)
    try:
        completion = await chat.complete(policy.endpoint, policy.body(messages_for(problem)))
    except ContextLengthExceeded:
        return Shot("", None, "context_length", None, None)
    answer = read_answer(completion.message)
    usage = completion.usage or {}
    return Shot(
        answer.text,
        design_in(answer.text, problem.top),
        "max_tokens" if completion.finish_reason == "length" else None,
        counted(usage.get("prompt_tokens")),
        counted(usage.get("completion_tokens")),
    )


def counted(value: object) -> int | None:
    """A count of tokens, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
