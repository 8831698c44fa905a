"""The two rubrics: what a good outcome and a good episode are, and their scores in [0, 1].

The files are in the format of the synth-ai task apps: ``version``, ``goal_text``, ``aggregation`` and ``criteria`` with
``id``, ``description``, ``weight`` and ``required``. The service measures two criteria: ``tests_pass`` for the outcome
and ``efficient_iterations`` for the events. A replaced file may reword, re-weight or leave fields at their defaults;
it cannot name a criterion that is not measured.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from verilog_taskapp.settings import Settings

Aggregation = Literal["sum", "weighted_sum", "custom", "inherit"]

TESTS_PASS: Final = "tests_pass"  # noqa: S105 - a criterion, no password
EFFICIENT_ITERATIONS: Final = "efficient_iterations"
BUILT_IN: Final = "built-in"

FAILED_COMPILE_COST: Final = 0.5
OVERRIDE_COST: Final = 0.5
UNSUBMITTED_FACTOR: Final = 0.5

NonEmpty = Annotated[str, Field(min_length=1)]


class RubricInvalid(ValueError):
    """A rubric file that cannot be used; the text names the file and the field. Raised at start-up only."""


class Criterion(BaseModel):
    """One thing that is judged."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    id: NonEmpty
    """Which measurement it is."""
    description: NonEmpty
    """What it asks for, for people and for judges."""
    weight: float = Field(1.0, gt=0, allow_inf_nan=False)
    """Its share in the score, relative to the other criteria."""
    required: bool = False
    """A score of 0 here makes the rubric's score 0."""


class Rubric(BaseModel):
    """Criteria and how their scores become one."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, coerce_numbers_to_str=True
    )  # YAML's `version: 1`

    version: NonEmpty
    """The file's own version."""
    goal_text: NonEmpty
    """What is wanted, in a sentence."""
    aggregation: Aggregation = "weighted_sum"
    """See `Rubric.score`."""
    criteria: tuple[Criterion, ...] = Field(min_length=1)
    """At least one, ids unique."""

    @field_validator("criteria")
    @classmethod
    def _ids_are_unique(cls, criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        ids = [criterion.id for criterion in criteria]
        if repeated := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"more than one criterion has the id {', '.join(repeated)}")
        return criteria

    def score(self, scores: Mapping[str, float]) -> float:
        """One number in [0, 1] from a score in [0, 1] per criterion id; raises KeyError if one is missing.

        ``weighted_sum``: the mean weighted by ``weight``. ``sum``: the sum of weight times score, cut at 1.
        ``custom`` and ``inherit`` leave the aggregation to whoever judges with the rubric; our own number is then the
        weighted mean too.
        """
        if any(criterion.required and scores[criterion.id] <= 0 for criterion in self.criteria):
            return 0.0
        total = sum(criterion.weight * scores[criterion.id] for criterion in self.criteria)
        if self.aggregation != "sum":
            total /= sum(criterion.weight for criterion in self.criteria)
        return min(1.0, max(0.0, total))


@dataclass(frozen=True)
class EpisodeEvents:
    """What happened in one episode, counted; all counts are from 0."""

    steps: int
    """Calls that were executed, blocked or refused."""
    compiles: int = 0
    """Compiles that ran."""
    failed_compiles: int = 0
    """Of these: the design did not compile."""
    compiles_without_change: int = 0
    """Of these: no file had changed since the last compile."""
    simulations: int = 0
    """Simulations that ran."""
    simulations_without_change: int = 0
    """Of these: no file had changed since the last simulation."""
    overrides: int = 0
    """Calls that were replaced by another."""
    blocks: int = 0
    """Compiles that were blocked because the design had to change first."""
    refused_calls: int = 0
    """Calls that were no usable tool call: malformed, unknown tool, bad path, wrong argument type."""
    submitted: bool = False
    """Whether the episode ended by ``submit``."""


def outcome_score(rubric: Rubric, passed: bool) -> float:
    """The outcome rubric's score: ``tests_pass`` is 1 if the submission passed, else 0."""
    return rubric.score({TESTS_PASS: 1.0 if passed else 0.0})


def events_score(rubric: Rubric, events: EpisodeEvents) -> float:
    """The events rubric's score: ``efficient_iterations`` is `efficiency` of the episode."""
    return rubric.score({EFFICIENT_ITERATIONS: efficiency(events)})


def efficiency(events: EpisodeEvents) -> float:
    """``efficient_iterations``: the share of the steps that were not wasted, in [0, 1].

        wasted     = blocks + refused_calls + compiles_without_change + simulations_without_change
                     + 0.5 * failed_compiles + 0.5 * overrides
        efficiency = max(0, 1 - wasted / steps), halved if nothing was submitted; 0 without a step

    A failed compile or an overridden call still taught something, so it is half a step. What fits two headings (a
    compile that failed again without a change) counts under both.
    """
    if events.steps <= 0:
        return 0.0
    repeated = events.compiles_without_change + events.simulations_without_change
    wasted = float(events.blocks + events.refused_calls + repeated)
    wasted += FAILED_COMPILE_COST * events.failed_compiles + OVERRIDE_COST * events.overrides
    share = min(1.0, max(0.0, 1.0 - wasted / events.steps))
    return share if events.submitted else UNSUBMITTED_FACTOR * share


@dataclass(frozen=True)
class Rubrics:
    """Both rubrics and where they come from: ``built-in``, or the name of the file that replaced one."""

    outcome: Rubric
    events: Rubric
    outcome_source: str = BUILT_IN
    events_source: str = BUILT_IN


def load_rubrics(settings: Settings) -> Rubrics:
    """The rubrics in force. Reads two small files; raises RubricInvalid."""
    outcome, events = settings.outcome_rubric, settings.events_rubric
    return Rubrics(
        load_outcome_rubric(outcome),
        load_events_rubric(events),
        outcome.name if outcome else BUILT_IN,
        events.name if events else BUILT_IN,
    )


def load_outcome_rubric(path: Path | None = None) -> Rubric:
    """The outcome rubric from `path` (JSON or YAML), by default the built-in one. Raises RubricInvalid."""
    return _load(path or built_in_folder().joinpath("outcome.json"), TESTS_PASS)


def load_events_rubric(path: Path | None = None) -> Rubric:
    """The events rubric from `path` (JSON or YAML), by default the built-in one. Raises RubricInvalid."""
    return _load(path or built_in_folder().joinpath("events.json"), EFFICIENT_ITERATIONS)


def built_in_folder() -> Traversable:
    """``rubrics/``: inside the installed package, or next to the package in a source checkout."""
    installed = files("verilog_taskapp").joinpath("rubrics")
    return installed if installed.is_dir() else Path(__file__).resolve().parent.parent / "rubrics"


def _load(file: Traversable, measured: str) -> Rubric:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise RubricInvalid(f"rubric {file}: cannot be read: {reason}") from error
    try:
        content = json.loads(text) if file.name.lower().endswith(".json") else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise RubricInvalid(f"rubric {file}: not valid JSON or YAML: {error}") from error
    try:
        rubric = Rubric.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(f"{_field_name(fault['loc'])}: {fault['msg']}" for fault in error.errors())
        raise RubricInvalid(f"rubric {file}: {faults}") from error
    for index, criterion in enumerate(rubric.criteria):
        if criterion.id != measured:
            raise RubricInvalid(
                f"rubric {file}: criteria[{index}].id: unknown criterion {criterion.id!r}; "
                f"this rubric can be scored by {measured!r}"
            )
    return rubric


def _field_name(location: tuple[int | str, ...]) -> str:
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return name.removeprefix(".") or "the whole file"
