"""What an evaluation found, as numbers: ``summary.json`` and ``summary.csv``."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from pydantic import BaseModel, ConfigDict

from verilog_taskapp.evaluation.agreement import Agreement, agreement
from verilog_taskapp.evaluation.directory import Saved
from verilog_taskapp.evaluation.samples import Sample
from verilog_taskapp.evaluation.statistics import Estimate, mean_with_interval, pass_at_k

PER_MILLION = 1_000_000


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Interval(_Part):
    """A mean over problems with its 95 % interval."""

    value: float
    low: float
    high: float
    problems: int
    """How many problems it is the mean of."""


class PassAtK(Interval):
    """One pass@k, over the problems with at least k samples that are no errors."""

    k: int


class ProblemResult(_Part):
    """One problem."""

    problem: str
    difficulty: str | None
    n: int
    """Samples that passed or failed."""
    passed: int
    errors: int
    mean_return: float | None
    outcomes: str
    """One code a sample, separated by blanks; `!` for an error."""

    @property
    def rate(self) -> float | None:
        """Share of samples that passed."""
        return self.passed / self.n if self.n else None


class Group(_Part):
    """Problems of one difficulty."""

    name: str
    problems: int
    pass_at: tuple[PassAtK, ...]


class Tokens(_Part):
    """What was read and written by the model, over the samples that the endpoint counted."""

    samples: int
    prompt: int
    completion: int
    cost: float | None
    """In the unit of the prices; None without prices."""


class ModelSummary(_Part):
    """One model."""

    model: str
    expected: int
    """Samples of the whole evaluation."""
    scored: int
    """Samples that passed or failed; nothing else is in any rate."""
    passed: int
    errors: int
    """Samples without a result through faults of the infrastructure."""
    unusable: int
    """Samples of problems that cannot be judged here."""
    error_codes: dict[str, int]
    pass_at: tuple[PassAtK, ...]
    mean_return: Interval | None
    """Mean over problems of their mean returns."""
    mean_steps_to_solve: float | None
    median_steps_to_solve: float | None
    steps_to_solve: dict[int, int]
    """How many samples passed after so many steps."""
    tokens: Tokens
    categories: dict[str, int]
    """Failures by code, the most frequent first."""
    difficulties: tuple[Group, ...]
    """Empty when all problems are of one difficulty."""
    problems: tuple[ProblemResult, ...]
    agreement: Agreement | None
    """How the judges agree, where both were asked."""


class Summary(_Part):
    """The whole evaluation."""

    complete: bool
    """Whether every sample has a result or is unusable: false also when there are errors."""
    models: tuple[ModelSummary, ...]


@dataclass(frozen=True)
class _Bootstrap:
    resamples: int
    seed: int

    def of(self, values: Sequence[float]) -> Estimate | None:
        return mean_with_interval(values, resamples=self.resamples, seed=self.seed)


def summarize(config: Saved, samples: Sequence[Sample]) -> Summary:
    """The numbers of `samples`, which are in the evaluation's order. Equal samples give equal numbers."""
    options, how = config.what["eval"], config.how
    bootstrap = _Bootstrap(how["bootstrap"], options["seed"])
    expected = len(config.dataset["problems"]) * options["n"]
    models = tuple(
        _model(name, [one for one in samples if one.model == name], config, bootstrap, expected)
        for name in config.models
    )
    complete = all(one.scored + one.unusable == one.expected for one in models)
    return Summary(complete=complete, models=models)


def _model(name: str, samples: Sequence[Sample], config: Saved, bootstrap: _Bootstrap, expected: int) -> ModelSummary:
    scored = [one for one in samples if one.passed is not None]
    errors = [one for one in samples if one.status == "error"]
    problems = _by_problem(samples)
    steps = [one.steps for one in scored if one.passed and one.steps is not None]
    returned = bootstrap.of([one.mean_return for one in problems if one.mean_return is not None])
    ks: tuple[int, ...] = tuple(config.how["k"])
    failures = Counter(one.category or "?" for one in scored if not one.passed)
    both = len(config.judges) == 2
    return ModelSummary(
        model=name,
        expected=expected,
        scored=len(scored),
        passed=sum(one.passed is True for one in scored),
        errors=len(errors),
        unusable=sum(one.status == "unusable" for one in samples),
        error_codes=_ranked(Counter(one.error.code for one in errors if one.error is not None)),
        pass_at=_pass_at(problems, ks, bootstrap),
        mean_return=Interval(**vars(returned)) if returned is not None else None,
        mean_steps_to_solve=fmean(steps) if steps else None,
        median_steps_to_solve=float(median(steps)) if steps else None,
        steps_to_solve=dict(sorted(Counter(steps).items())),
        tokens=_tokens(scored, config.how["prices"].get(name, {})),
        categories=_ranked(failures),
        difficulties=_difficulties(problems, ks, bootstrap),
        problems=tuple(problems),
        agreement=agreement(scored) if both else None,
    )


def _ranked(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _by_problem(samples: Iterable[Sample]) -> list[ProblemResult]:
    groups: dict[str, list[Sample]] = {}
    for one in samples:
        groups.setdefault(one.problem, []).append(one)
    return [_problem(name, group) for name, group in groups.items()]


def _problem(name: str, samples: list[Sample]) -> ProblemResult:
    scored = [one for one in samples if one.passed is not None]
    returns = [one.total for one in scored if one.total is not None]
    return ProblemResult(
        problem=name,
        difficulty=next((one.difficulty for one in samples if one.difficulty), None),
        n=len(scored),
        passed=sum(one.passed is True for one in scored),
        errors=sum(one.status == "error" for one in samples),
        mean_return=fmean(returns) if returns else None,
        outcomes=" ".join(_code(one) for one in samples),
    )


def _code(sample: Sample) -> str:
    if sample.status != "done":
        return "!" if sample.status == "error" else "unusable"
    return "." if sample.passed else sample.category or "?"


def _pass_at(problems: Sequence[ProblemResult], ks: Sequence[int], bootstrap: _Bootstrap) -> tuple[PassAtK, ...]:
    found = {k: bootstrap.of([pass_at_k(one.n, one.passed, k) for one in problems if one.n >= k]) for k in ks}
    return tuple(PassAtK(k=k, **vars(one)) for k, one in found.items() if one is not None)


def _difficulties(problems: Sequence[ProblemResult], ks: Sequence[int], bootstrap: _Bootstrap) -> tuple[Group, ...]:
    order = {"easy": 0, "medium": 1, "hard": 2}
    names = sorted({one.difficulty for one in problems if one.difficulty}, key=lambda name: (order.get(name, 3), name))
    if len(names) < 2:  # one difficulty for everything says that none is known
        return ()
    groups = [(name, [one for one in problems if one.difficulty == name]) for name in names]
    return tuple(
        Group(name=name, problems=len(group), pass_at=_pass_at(group, ks, bootstrap)) for name, group in groups
    )


def _tokens(samples: Iterable[Sample], prices: dict[str, float | None]) -> Tokens:
    counted = [
        (one.prompt_tokens, one.completion_tokens)
        for one in samples
        if one.prompt_tokens is not None and one.completion_tokens is not None
    ]
    prompt, completion = sum(one for one, _ in counted), sum(one for _, one in counted)
    price_in, price_out = prices.get("price_in"), prices.get("price_out")
    cost = None
    if price_in is not None or price_out is not None:
        cost = (prompt * (price_in or 0.0) + completion * (price_out or 0.0)) / PER_MILLION
    return Tokens(samples=len(counted), prompt=prompt, completion=completion, cost=cost)


COLUMNS: dict[str, Callable[[ModelSummary, ProblemResult], Any]] = {
    "model": lambda model, _: model.model,
    "problem": lambda _, one: one.problem,
    "difficulty": lambda _, one: one.difficulty,
    "samples": lambda _, one: one.n,
    "passed": lambda _, one: one.passed,
    "errors": lambda _, one: one.errors,
    "pass_rate": lambda _, one: one.rate,
    "mean_return": lambda _, one: one.mean_return,
    "outcomes": lambda _, one: one.outcomes,
}
"""Of ``summary.csv``."""


def as_csv(summary: Summary) -> str:
    """One line per model and problem. Text that a spreadsheet would take for a formula is quoted with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for model in summary.models:
        for one in model.problems:
            writer.writerow([_cell(column(model, one)) for column in COLUMNS.values()])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return "" if value is None else value
