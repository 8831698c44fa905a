"""Which split a problem is in: a stable hash of its id, 60/20/20, unless its source says."""

import hashlib
from typing import Final, Literal, get_args

from verilog_taskapp.problems.model import Problem, Split

SPLITS: Final[tuple[Split, ...]] = get_args(Split)
DEFAULT_SPLIT: Final[Split] = "val"
ALL_PROBLEMS: Final[Literal["all"]] = "all"
"""The name of the whole set, where a split is asked for."""


def split_of(problem_id: str) -> Split:
    """The split of an id: ``train`` for 60 %, ``val`` for 20 % and ``test`` for 20 % of all ids.

    The first eight bytes of the SHA-256 of the id's UTF-8 text, big-endian, modulo 100: below 60, below 80, the rest.
    Never change it: trained models and published seeds depend on it.
    """
    bucket = int.from_bytes(hashlib.sha256(problem_id.encode()).digest()[:8], "big") % 100
    if bucket < 60:
        return "train"
    return "val" if bucket < 80 else "test"


def effective_split(problem: Problem) -> Split:
    """The split that the problem's source assigned, else `split_of` its id."""
    return problem.split or split_of(problem.id)
