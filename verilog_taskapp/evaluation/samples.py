"""One sample: a model's attempt at a problem, and what came of it."""

import hashlib
import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from verilog_taskapp.evaluation.config import JudgeName

Status = Literal["done", "unusable", "error"]
SEED_BITS = 31
"""Inference servers take a signed integer; some of them one of 32 bits."""

Key = tuple[str, str, int]
"""Model, problem, sample number from 0."""


class Task(BaseModel):
    """A sample that is to be drawn."""

    model_config = ConfigDict(frozen=True)

    model: str
    """The model's title in the results."""
    problem: str
    sample: int
    seed: int

    @property
    def key(self) -> Key:
        """What a sample is known by."""
        return self.model, self.problem, self.sample


def sample_seed(eval_seed: int, model: str, problem: str, sample: int) -> int:
    """The sampling seed of one sample, below 2**31: the same on every machine, different for every sample.

    The first bytes of the SHA-256 of the four values as a JSON array.
    """
    text = json.dumps([eval_seed, model, problem, sample], ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    seed: int = int.from_bytes(digest[:8], "big") % 2**SEED_BITS
    return seed


class Judgement(BaseModel):
    """What one judge says of a design."""

    model_config = ConfigDict(frozen=True)

    passed: bool | None
    """None: this judge cannot say, for the reason given."""
    reason: str
    """`match`, `mismatch`, `compile_error`, ...; for the classic judge the name of its category."""
    category: str
    """A code of `verilog_taskapp.evaluation.categories`."""
    samples: int | None = None
    mismatches: int | None = None


class Failure(BaseModel):
    """An infrastructure error: neither a pass nor a failure."""

    model_config = ConfigDict(frozen=True)

    code: str
    message: str
    stage: str | None = None


class Sample(BaseModel):
    """One line of ``results.jsonl``."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    model: str
    problem: str
    sample: int
    seed: int
    status: Status
    """`unusable`: the problem's own reference does not pass here, so that nothing was asked."""
    passed: bool | None = None
    """By the judge that decides; None unless `status` is `done`."""
    category: str | None = None
    """Why it failed; None for a pass."""
    submitted: bool = False
    """Whether the design was handed in: always, in single-shot mode."""
    total: float | None = None
    """The episode's return."""
    steps: int | None = None
    """Model turns."""
    stop_reason: str | None = None
    """Why an episode was cut."""
    prompt_tokens: int | None = None
    """Summed over all turns; None when the endpoint did not count."""
    completion_tokens: int | None = None
    judgements: dict[JudgeName, Judgement] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    """The final design, for grading it again."""
    sources: tuple[str, ...] = ()
    """Which of the files are compiled."""
    answer: str | None = None
    """The model's text, in single-shot mode."""
    difficulty: str | None = None
    problem_hash: str = ""
    attempts: int = 1
    """How often it was tried until this line was written."""
    elapsed_s: float = 0.0
    error: Failure | None = None

    @property
    def key(self) -> Key:
        """What it is known by."""
        return self.model, self.problem, self.sample
