"""The loaded problems: which one a seed or an id means, and what is told about the whole."""

import difflib
import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from verilog_taskapp.errors import InvalidRequest, ProblemNotFound, ProblemUnusable
from verilog_taskapp.problems.model import Difficulty, Problem, Split
from verilog_taskapp.problems.splits import ALL_PROBLEMS, DEFAULT_SPLIT, SPLITS, effective_split

CLOSE_MATCHES = 5
VERSION_CHARS = 12


@dataclass(frozen=True)
class SkippedRow:
    """A row that did not become a problem."""

    id: str
    """Its problem id, or its place (``row 3``, ``line 3``, counted from 1) when it has no usable one."""
    reason: str
    """What is wrong with it, in a phrase."""


@dataclass(frozen=True)
class SetFacts:
    """What ``/task_info``, ``/info`` and ``/health`` tell about the set."""

    id: str
    name: str
    source: str
    version: str
    fingerprint: str
    description: str
    instance_count: int
    instance_ids: tuple[str, ...]
    """All of them, in the source's order."""
    split_counts: dict[Split, int]
    """Problems per split; every split is a key."""
    difficulty_counts: dict[Difficulty, int]
    """Problems per difficulty; every difficulty is a key."""
    skipped: tuple[SkippedRow, ...]


@dataclass(frozen=True)
class ProblemSet:
    """Problems in their source's order, at least one, ids unique; raises ValueError otherwise."""

    id: str
    """Short and stable: ``bundled``, ``verilog-eval``, a hub repository, a folder's or file's name."""
    name: str
    """The same for people."""
    source: str
    """The configured source, without a server path."""
    problems: tuple[Problem, ...]
    skipped: tuple[SkippedRow, ...] = ()

    def __post_init__(self) -> None:
        if not self.problems:
            raise ValueError("a problem set holds at least one problem")
        if len(self._by_id) != len(self.problems):
            raise ValueError("a problem set holds each id once")

    def __len__(self) -> int:
        return len(self.problems)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems)

    @cached_property
    def _by_id(self) -> dict[str, Problem]:
        return {problem.id: problem for problem in self.problems}

    @cached_property
    def _by_split(self) -> dict[str, tuple[Problem, ...]]:
        parts: dict[str, tuple[Problem, ...]] = {
            split: tuple(problem for problem in self.problems if effective_split(problem) == split) for split in SPLITS
        }
        return {**parts, ALL_PROBLEMS: self.problems}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over every problem's id, content and split, in order: equal means the same set and seeds."""
        content = [[problem.id, problem.content_hash, effective_split(problem)] for problem in self.problems]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    @property
    def version(self) -> str:
        """The first 12 characters of the fingerprint."""
        return self.fingerprint[:VERSION_CHARS]

    def split(self, name: str) -> tuple[Problem, ...]:
        """The problems of ``train``, ``val``, ``test`` or ``all``, in the source's order.

        Raises InvalidRequest for another name, and for a split without problems, with the sizes of the others.
        """
        problems = self._by_split.get(name)
        if problems is None:
            known = ", ".join(self._by_split)
            raise _invalid("split", f"unknown split {name[:40]!r}; the splits are {known}")
        if not problems:
            sizes = ", ".join(f"{split}: {len(part)}" for split, part in self._by_split.items())
            raise _invalid("split", f"the split {name!r} of {self.source} has no problems; choose another ({sizes})")
        return problems

    def select(
        self, split: str = DEFAULT_SPLIT, seed: int | None = None, *, unusable: Collection[str] = frozenset()
    ) -> Problem:
        """The problem that `seed` means in `split`: number ``seed mod size``; no seed is seed 0.

        An id in `unusable` is stepped over to the next usable problem of the split, cyclically, so that what one
        machine cannot run does not change what the other seeds mean. Raises InvalidRequest for a seed that is not a
        whole number from 0, or a split that is unknown or empty, and ProblemUnusable if nothing is left.
        """
        number = 0 if seed is None else seed
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise _invalid("seed", f"seed must be a whole number from 0, got {str(number)[:40]}")
        problems = self.split(split)
        start = number % len(problems)
        for problem in problems[start:] + problems[:start]:
            if problem.id not in unusable:
                return problem
        raise ProblemUnusable(f"no problem of the split {split!r} is usable with the installed simulator")

    def get(self, problem_id: str) -> Problem:
        """The problem of that id. Raises ProblemNotFound, naming up to five close ids."""
        problem = self._by_id.get(problem_id)
        if problem is not None:
            return problem
        close = self._close_matches(problem_id[:200])
        hint = f"; close: {', '.join(close)}" if close else ""
        message = f"no problem {problem_id[:80]!r} in {self.source}{hint}"
        raise ProblemNotFound(message, extras={"close_matches": close})

    def _close_matches(self, problem_id: str) -> list[str]:
        wanted = problem_id.casefold()
        by_folded = {known.casefold(): known for known in self._by_id}
        parts = [known for folded, known in by_folded.items() if wanted and wanted in folded]
        alike = difflib.get_close_matches(wanted, list(by_folded), n=CLOSE_MATCHES)
        return list(dict.fromkeys([*parts[:CLOSE_MATCHES], *(by_folded[folded] for folded in alike)]))[:CLOSE_MATCHES]

    @cached_property
    def facts(self) -> SetFacts:
        """The set in numbers and names."""
        difficulties = Counter(problem.difficulty for problem in self.problems)
        count = len(self.problems)
        return SetFacts(
            id=self.id,
            name=self.name,
            source=self.source,
            version=self.version,
            fingerprint=self.fingerprint,
            description=f"{self.name}: {count} {'problem' if count == 1 else 'problems'} from {self.source}",
            instance_count=count,
            instance_ids=tuple(self._by_id),
            split_counts={split: len(self._by_split[split]) for split in SPLITS},
            difficulty_counts={level: difficulties[level] for level in get_args(Difficulty)},
            skipped=self.skipped,
        )


def _invalid(field: str, message: str) -> InvalidRequest:
    return InvalidRequest(message, stage="dataset", extras={"errors": [{"field": field, "message": message}]})
