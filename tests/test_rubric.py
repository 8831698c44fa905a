"""The rubric files, how they are replaced, and the two scores."""

import json
from pathlib import Path
from typing import Any

import pytest

from verilog_taskapp import rubric as rubric_module
from verilog_taskapp.rubric import (
    Criterion,
    EpisodeEvents,
    Rubric,
    RubricInvalid,
    efficiency,
    events_score,
    load_events_rubric,
    load_outcome_rubric,
    load_rubrics,
    outcome_score,
)
from verilog_taskapp.settings import Settings


def rubric_with(*criteria: Criterion, **fields: Any) -> Rubric:
    return Rubric(version="1", goal_text="Be good.", criteria=criteria, **fields)


def criterion(name: str, weight: float = 1.0, required: bool = False) -> Criterion:
    return Criterion(id=name, description=f"Judges {name}.", weight=weight, required=required)


def outcome(**changes: Any) -> dict[str, Any]:
    tests_pass = {"id": "tests_pass", "description": "Passes.", "weight": 1.0}
    return {"version": "1", "goal_text": "Pass.", "aggregation": "weighted_sum", "criteria": [tests_pass], **changes}


def test_the_built_in_rubrics_hold_one_criterion_each() -> None:
    rubrics = load_rubrics(Settings())
    for loaded, name in ((rubrics.outcome, "tests_pass"), (rubrics.events, "efficient_iterations")):
        assert (loaded.version, loaded.aggregation) == ("1", "weighted_sum")
        assert [(item.id, item.weight) for item in loaded.criteria] == [(name, 1.0)]
    assert "testbench" in rubrics.outcome.goal_text
    assert "iterations" in rubrics.events.goal_text
    assert (rubrics.outcome_source, rubrics.events_source) == ("built-in", "built-in")


def test_an_installed_package_uses_the_rubrics_inside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics/outcome.json").write_text(json.dumps(outcome(goal_text="Installed.")))
    monkeypatch.setattr(rubric_module, "files", lambda package: tmp_path)
    assert load_outcome_rubric().goal_text == "Installed."


def test_a_json_file_in_settings_replaces_a_rubric(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(outcome(goal_text="Mine.", aggregation="custom")))
    rubrics = load_rubrics(Settings(outcome_rubric=path))
    assert (rubrics.outcome.goal_text, rubrics.outcome.aggregation) == ("Mine.", "custom")
    assert (rubrics.outcome_source, rubrics.events_source) == ("mine.json", "built-in")


def test_a_yaml_file_in_settings_replaces_a_rubric_and_defaults_are_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "events.yaml"
    path.write_text(
        "version: 1\ngoal_text: Be quick.\ncriteria:\n  - {id: efficient_iterations, description: Quick.}\n"
    )
    rubrics = load_rubrics(Settings(events_rubric=path))
    expected = Criterion(id="efficient_iterations", description="Quick.", weight=1.0, required=False)
    assert rubrics.events == Rubric(version="1", goal_text="Be quick.", criteria=(expected,))
    assert rubrics.events_source == "events.yaml"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"aggregation": "mean"}, "aggregation: Input should be 'sum', 'weighted_sum', 'custom' or 'inherit'"),
        ({"criteria": []}, "criteria: Tuple should have at least 1 item"),
        ({"goal_text": ""}, "goal_text: String should have at least 1 character"),
        ({"goal_txt": "x"}, "goal_txt: Extra inputs are not permitted"),
        (
            {"criteria": [{"id": "tests_pass", "description": "x", "weight": 0}]},
            r"criteria\[0\].weight: .*greater than 0",
        ),
        ({"criteria": [{"id": "tests_pass", "description": "x", "weight": -1}]}, r"criteria\[0\].weight"),
        (
            {"criteria": [{"id": "tests_pass", "description": "x", "weight": float("inf")}]},
            r"criteria\[0\].weight: .*finite",
        ),
        ({"criteria": [{"id": "tests_pass", "description": "x", "weight": float("nan")}]}, r"criteria\[0\].weight"),
        ({"criteria": [{"id": "tests_pass"}]}, r"criteria\[0\].description: Field required"),
        ({"criteria": [{"id": "", "description": "x"}]}, r"criteria\[0\].id"),
        (
            {"criteria": [{"id": "tests_pass", "description": "x"}] * 2},
            "criteria: .*more than one criterion has the id tests_pass",
        ),
        (
            {"criteria": [{"id": "tests_pass", "description": "x"}, {"id": "style", "description": "x"}]},
            r"criteria\[1\].id: unknown criterion 'style'; this rubric can be scored by 'tests_pass'",
        ),
    ],
)
def test_a_bad_rubric_names_its_file_and_field(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(outcome(**changes)))
    with pytest.raises(RubricInvalid, match=f"bad.json: .*{message}"):
        load_outcome_rubric(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.json", b"{", "not valid JSON"),
        ("x.yml", b"a: [", "not valid JSON or YAML"),
        ("x.yml", b"!!python/object/apply:os.getcwd []", "not valid JSON or YAML"),
        ("x.json", b"[]", "the whole file: Input should be"),
        ("x.yaml", b"", "the whole file: Input should be"),
        ("x.json", b"\xff", "cannot be read: not UTF-8 text"),
        ("x.json", None, "cannot be read: No such file"),
    ],
)
def test_an_unreadable_rubric_names_its_file(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RubricInvalid, match=f"{name}: {message}"):
        load_events_rubric(tmp_path / name)


def test_the_outcome_is_1_for_a_pass_and_0_otherwise() -> None:
    rubric = load_outcome_rubric()
    assert (outcome_score(rubric, True), outcome_score(rubric, False)) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("aggregation", "score"), [("weighted_sum", 0.625), ("inherit", 0.625), ("custom", 0.625), ("sum", 1.0)]
)
def test_scores_are_aggregated(aggregation: Any, score: float) -> None:
    rubric = rubric_with(criterion("a", 3.0), criterion("b", 1.0), aggregation=aggregation)
    assert rubric.score({"a": 0.5, "b": 1.0}) == score


def test_a_plain_sum_weighs_its_scores_and_is_cut_at_1() -> None:
    assert rubric_with(criterion("a", 0.5), aggregation="sum").score({"a": 0.5}) == 0.25
    assert rubric_with(criterion("a", 5.0), aggregation="sum").score({"a": 0.5}) == 1.0


def test_a_required_criterion_at_0_makes_the_score_0() -> None:
    assert rubric_with(criterion("a", required=True), criterion("b")).score({"a": 0.0, "b": 1.0}) == 0.0
    assert rubric_with(criterion("a", required=True), criterion("b")).score({"a": 0.5, "b": 1.0}) == 0.75


def test_a_missing_score_is_an_error() -> None:
    with pytest.raises(KeyError):
        rubric_with(criterion("a"), criterion("b")).score({"a": 1.0})


@pytest.mark.parametrize(
    ("events", "score"),
    [
        (EpisodeEvents(steps=4, compiles=1, simulations=1, submitted=True), 1.0),
        (EpisodeEvents(steps=4, compiles=1, failed_compiles=1, submitted=True), 0.875),
        (EpisodeEvents(steps=4, compiles=2, compiles_without_change=1, submitted=True), 0.75),
        (EpisodeEvents(steps=4, simulations=2, simulations_without_change=1, submitted=True), 0.75),
        (EpisodeEvents(steps=4, overrides=1, submitted=True), 0.875),
        (EpisodeEvents(steps=4, blocks=1, submitted=True), 0.75),
        (EpisodeEvents(steps=4, refused_calls=1, submitted=True), 0.75),
        (EpisodeEvents(steps=4, compiles=1, simulations=1), 0.5),
        (EpisodeEvents(steps=4, blocks=1), 0.375),
        (
            EpisodeEvents(
                steps=10, compiles=4, failed_compiles=2, overrides=1, blocks=2, refused_calls=1, submitted=True
            ),
            0.55,
        ),
        (EpisodeEvents(steps=3, blocks=3, refused_calls=3, submitted=True), 0.0),
        (EpisodeEvents(steps=0), 0.0),
        (EpisodeEvents(steps=0, submitted=True), 0.0),
    ],
)
def test_what_was_wasted_lowers_the_efficiency(events: EpisodeEvents, score: float) -> None:
    assert efficiency(events) == pytest.approx(score, abs=1e-12)
    assert events_score(load_events_rubric(), events) == pytest.approx(score, abs=1e-12)
