"""Which problem a conversation is about: the one whose specification stands in its first user message."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted.designs import Designs, designs_of

PREFIX_CHARS = 24
"""Characters of a specification by which its beginning is looked for."""
CACHED_MESSAGES = 4096


@dataclass(frozen=True)
class KnownProblem:
    """A problem and its place in the set."""

    problem: Problem
    position: int

    @cached_property
    def designs(self) -> Designs:
        """What the scripts write for it."""
        return designs_of(self.problem)


class ProblemIndex:
    """Finds specifications inside other text; white space counts as one blank, the longest match wins.

    The beginnings of all specifications are searched for; from each place found, one slice per length that occurs is
    looked up. A message seen before is answered from memory.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._by_prompt: dict[str, KnownProblem] = {}
        self._count = 0
        lengths: dict[str, set[int]] = {}
        for position, problem in enumerate(problems):
            self._count += 1
            prompt = normalised(problem.prompt)
            if prompt and prompt not in self._by_prompt:
                self._by_prompt[prompt] = KnownProblem(problem, position)
                lengths.setdefault(prompt[:PREFIX_CHARS], set()).add(len(prompt))
        self._lengths = {prefix: sorted(found, reverse=True) for prefix, found in lengths.items()}
        self._seen: dict[str, KnownProblem | None] = {}

    def __len__(self) -> int:
        """The number of problems given."""
        return self._count

    def find(self, message: str) -> KnownProblem | None:
        """The problem whose specification `message` contains."""
        if message in self._seen:
            return self._seen[message]
        if len(self._seen) >= CACHED_MESSAGES:
            self._seen.clear()
        found = self._seen[message] = self._search(normalised(message))
        return found

    def _search(self, text: str) -> KnownProblem | None:
        best: KnownProblem | None = None
        best_length = 0
        for prefix, lengths in self._lengths.items():
            at = text.find(prefix)
            while at >= 0:
                for length in lengths:
                    if length <= best_length:
                        break
                    if at + length <= len(text) and (known := self._by_prompt.get(text[at : at + length])):
                        best, best_length = known, length
                        break
                at = text.find(prefix, at + 1)
        return best


def normalised(text: str) -> str:
    """`text` with every run of white space made one blank."""
    return " ".join(text.split())


def content_text(message: Mapping[str, Any]) -> str:
    """The text of a chat message, whose content is a string, a list of parts, or nothing."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return ""


def first_user_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of the first user message, or nothing."""
    return next((content_text(message) for message in messages if message.get("role") == "user"), "")


def turn_of(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many answers the conversation already holds."""
    return sum(message.get("role") == "assistant" for message in messages)
