"""The scripts: what the server answers at each turn of a named episode. Pure functions, no state.

A turn is the number of assistant messages that the conversation already holds, so any number of conversations can
run at once and a repeated request gets the same answer.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from verilog_taskapp.environment.actions import ToolName
from verilog_taskapp.scripted.designs import Designs

EpisodeName = Literal[
    "solve",
    "syntax_error_repaired",
    "missing_port_repaired",
    "wrong_submitted",
    "malformed_json",
    "compile_loop",
    "think",
    "fenced",
]
EPISODE_NAMES: tuple[EpisodeName, ...] = get_args(EpisodeName)
Mode = Literal["correct", "wrong", "mixed", "malformed", "empty", "http500", "hang", "demo"]
MODES: tuple[Mode, ...] = get_args(Mode)

BLOCKED_COMPILES = 2
"""Compiles that `compile_loop` repeats after the first failure, without a change in between."""


@dataclass(frozen=True)
class Answer:
    """One assistant message before it is put into JSON text or native tool calls."""

    tool: ToolName | None = None
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    before: str = ""
    """Text in front of the call: a think block, or prose."""
    fenced: bool = False
    broken: bool = False
    """Whether the JSON is cut off in the middle."""

    @property
    def text(self) -> str:
        """The message as text, with the call as one JSON object."""
        if self.tool is None:
            return self.before
        call = self._cut(json.dumps({"tool": self.tool, "args": dict(self.arguments)}))
        return self.before + (f"```json\n{call}\n```" if self.fenced else call)

    @property
    def native_arguments(self) -> str:
        """The arguments of the native tool call."""
        return self._cut(json.dumps(dict(self.arguments)))

    def _cut(self, call: str) -> str:
        return call[: len(call) * 2 // 3] if self.broken else call


Episode = Callable[[Designs, int], Answer]


def _write(designs: Designs, text: str) -> Answer:
    return Answer("write_file", {"path": designs.path, "content": text})


def _write_and_submit(designs: Designs, text: str, turn: int) -> Answer:
    if turn <= 0:
        return _write(designs, text)
    return (Answer("compile"), Answer("simulate"), Answer("submit"))[min(turn, 3) - 1]


def solve(designs: Designs, turn: int) -> Answer:
    """Write the right design, compile, simulate, submit."""
    return _write_and_submit(designs, designs.right, turn)


def syntax_error_repaired(designs: Designs, turn: int) -> Answer:
    """Write a syntax error, see the compile fail, then `solve`."""
    if turn < 2:
        return _write(designs, designs.syntax_error) if turn == 0 else Answer("compile")
    return solve(designs, turn - 2)


def missing_port_repaired(designs: Designs, turn: int) -> Answer:
    """Write a design that lacks an output port, see the compile fail, then `solve`."""
    if turn < 2:
        return _write(designs, designs.missing_port) if turn == 0 else Answer("compile")
    return solve(designs, turn - 2)


def wrong_submitted(designs: Designs, turn: int) -> Answer:
    """Write a design with the right ports and complemented outputs, compile, simulate, submit all the same."""
    return _write_and_submit(designs, designs.wrong, turn)


def malformed(designs: Designs, turn: int) -> Answer:
    """Never anything usable: prose at even turns, broken JSON at odd ones."""
    if turn % 2 == 0:
        return Answer(before="First I would like to think about which states this design needs.")
    return replace(_write(designs, designs.right), before="Here is my call: ", broken=True)


def malformed_json(designs: Designs, turn: int) -> Answer:
    """Prose, then broken JSON, then `solve`."""
    return malformed(designs, turn) if turn < 2 else solve(designs, turn - 2)


def compile_loop(designs: Designs, turn: int) -> Answer:
    """Write a syntax error, compile, compile again twice without a change (blocked), then `solve`."""
    if turn == 0:
        return _write(designs, designs.syntax_error)
    if turn <= 1 + BLOCKED_COMPILES:
        return Answer("compile")
    return solve(designs, turn - 2 - BLOCKED_COMPILES)


def think(designs: Designs, turn: int) -> Answer:
    """`solve` with a think block, which itself holds a brace and a tool's name, before every call."""
    thought = f"Turn {turn}. Should I submit? A concatenation looks like {{a, b}}. No: one step at a time."
    return replace(solve(designs, turn), before=f"<think>\n{thought}\n</think>\n\n")


def fenced(designs: Designs, turn: int) -> Answer:
    """`solve` with every call in a json fence."""
    return replace(solve(designs, turn), fenced=True)


EPISODES: Mapping[EpisodeName, Episode] = MappingProxyType(
    {
        "solve": solve,
        "syntax_error_repaired": syntax_error_repaired,
        "missing_port_repaired": missing_port_repaired,
        "wrong_submitted": wrong_submitted,
        "malformed_json": malformed_json,
        "compile_loop": compile_loop,
        "think": think,
        "fenced": fenced,
    }
)


def mixed_is_correct(problem_id: str, seed: int | None = None) -> bool:
    """Whether mode `mixed` solves: an even `seed` does, an odd one does not; without one, CRC-32 of the id decides."""
    return (zlib.crc32(problem_id.encode()) if seed is None else seed) % 2 == 0


def choose_episode(mode: Mode, problem_id: str, position: int = 0, seed: int | None = None) -> EpisodeName | None:
    """The episode that `mode` plays for the problem at `position` of the set; None for modes that play none."""
    if mode == "correct":
        return "solve"
    if mode == "wrong":
        return "wrong_submitted"
    if mode == "mixed":
        return "solve" if mixed_is_correct(problem_id, seed) else "wrong_submitted"
    if mode == "demo":
        return EPISODE_NAMES[position % len(EPISODE_NAMES)]
    return None
