"""What is counted, and what is not."""

import csv
import io

import pytest

from tests.evaluation.builders import sample, saved
from verilog_taskapp.evaluation.samples import Failure
from verilog_taskapp.evaluation.summary import as_csv, summarize

ERROR = Failure(code="environment_failed", message="no space")


def test_errors_and_unusable_problems_are_in_no_rate() -> None:
    samples = [
        sample("p1", 0),
        sample("p1", 1, passed=None, error=ERROR),
        sample("p2", 0, passed=False),
        sample("p2", 1),
        sample("p3", 0, passed=None, status="unusable"),
        sample("p3", 1, passed=None, status="unusable"),
    ]
    summary = summarize(saved(("p1", "p2", "p3"), n=2, k=(1, 2)), samples)
    [found] = summary.models
    assert (found.scored, found.passed, found.errors, found.unusable) == (3, 2, 1, 2)
    assert found.error_codes == {"environment_failed": 1}
    one, two = found.pass_at
    assert (one.value, one.problems) == (0.75, 2)  # p1: 1 of 1, p2: 1 of 2
    assert (two.value, two.problems) == (1.0, 1)  # p1 has one sample only
    assert [problem.outcomes for problem in found.problems] == [". !", "R .", "unusable unusable"]
    assert summary.complete is False


def test_an_evaluation_is_complete_without_errors_only() -> None:
    assert summarize(saved(), [sample()]).complete
    assert not summarize(saved(), []).complete
    assert not summarize(saved(), [sample(passed=None, error=ERROR)]).complete


def test_returns_steps_tokens_and_cost() -> None:
    samples = [
        sample("p1", 0, total=11.0, steps=4, prompt_tokens=1000, completion_tokens=100),
        sample("p1", 1, total=1.0, steps=10, passed=False, prompt_tokens=2000, completion_tokens=300),
        sample("p2", 0, total=10.0, steps=6),
        sample("p2", 1, total=10.0, steps=6, prompt_tokens=500),
    ]
    prices = {"m": {"price_in": 2.0, "price_out": 10.0}}
    [found] = summarize(saved(("p1", "p2"), n=2, prices=prices), samples).models
    assert found.mean_return is not None
    assert found.mean_return.value == pytest.approx(8.0)
    assert found.mean_steps_to_solve == pytest.approx(16 / 3)
    assert found.median_steps_to_solve == 6.0
    assert found.steps_to_solve == {4: 1, 6: 2}
    assert (found.tokens.samples, found.tokens.prompt, found.tokens.completion) == (2, 3000, 400)
    assert found.tokens.cost == pytest.approx((3000 * 2 + 400 * 10) / 1e6)


def test_difficulties_are_told_apart_where_there_are_several() -> None:
    easy, hard = sample("p1", difficulty="easy"), sample("p2", passed=False, difficulty="hard")
    [found] = summarize(saved(("p1", "p2")), [easy, hard]).models
    assert [(group.name, group.problems, group.pass_at[0].value) for group in found.difficulties] == [
        ("easy", 1, 1.0),
        ("hard", 1, 0.0),
    ]
    [found] = summarize(saved(("p1",)), [sample(difficulty="medium")]).models
    assert found.difficulties == ()


def test_the_table_has_a_line_per_problem_and_no_formula() -> None:
    problem = '=HYPERLINK("http://x")'
    text = as_csv(summarize(saved((problem, "p,2")), [sample(problem, passed=False), sample("p,2", total=1.5)]))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["problem"] for row in rows] == [f"'{problem}", "p,2"]
    assert [(row["passed"], row["pass_rate"], row["mean_return"]) for row in rows] == [
        ("0", "0.0", ""),
        ("1", "1.0", "1.5"),
    ]
