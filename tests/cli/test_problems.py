"""``problems list`` and ``problems show``."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


def test_the_list_holds_every_problem_and_names_what_was_skipped(cli: Cli, source: str) -> None:
    outcome = cli("problems", "list")
    assert outcome.status == 0
    for name in ("gates", "counter", "closed_loop", "broken"):
        assert f"\n{name} " in outcome.stdout
    assert "4 problems" in outcome.stdout
    assert outcome.stderr.startswith("note: skipped torn: ")


def test_the_list_as_json(cli: Cli, source: str) -> None:
    found = json.loads(cli("problems", "list", "--json").stdout)
    assert [one["id"] for one in found["problems"]] == ["broken", "closed_loop", "counter", "gates"]
    assert found["dataset"]["instance_count"] == 4
    assert sum(found["dataset"]["splits"].values()) == 4
    assert [one["id"] for one in found["skipped"]] == ["torn"]


def test_the_list_of_one_split(cli: Cli) -> None:
    everything = json.loads(cli("problems", "list", "--json").stdout)
    train = json.loads(cli("problems", "list", "--json", "--split", "train").stdout)
    assert {one["split"] for one in train["problems"]} == {"train"}
    assert len(train["problems"]) == everything["dataset"]["splits"]["train"]


def test_an_empty_split_is_told(cli: Cli, tmp_path: Path, problem_folder: Path) -> None:
    row = {
        "problem_id": "only",
        "prompt": "p",
        "ref": (problem_folder / "gates_ref.sv").read_text(),
        "test": (problem_folder / "gates_test.sv").read_text(),
        "split": "train",
    }
    (tmp_path / "one.jsonl").write_text(json.dumps(row))
    outcome = cli("problems", "list", "--dataset", f"jsonl:{tmp_path}/one.jsonl", "--split", "test")
    assert outcome.status == 2
    assert "has no problems" in outcome.stderr


def test_a_problem_is_shown_without_what_is_hidden(cli: Cli, source: str) -> None:
    told = cli("problems", "show", "gates").stdout
    assert "Write TopModule as the problem gates says." in told
    assert "RefModule" not in told
    assert "stats1" not in told


def test_the_hidden_texts_are_shown_when_asked_for(cli: Cli, source: str) -> None:
    told = cli("problems", "show", "gates", "--with-reference").stdout
    assert "assign both = a & b" in told
    assert "stats1" in told


@pytest.mark.parametrize("hidden", [True, False])
def test_a_problem_as_json(cli: Cli, source: str, hidden: bool) -> None:
    found = json.loads(cli("problems", "show", "gates", "--json", *(["--with-reference"] if hidden else [])).stdout)
    assert found["id"] == "gates"
    assert found["top"] == "TopModule"
    assert found["prompt"].startswith("Write TopModule")
    assert ("reference" in found, "testbench" in found) == (hidden, hidden)


def test_an_unknown_problem_names_close_ones(cli: Cli, source: str) -> None:
    outcome = cli("problems", "show", "gate")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "gates" in outcome.stderr


def test_a_set_that_cannot_be_loaded(cli: Cli) -> None:
    outcome = cli("problems", "list", "--dataset", "dir:nowhere")
    assert (outcome.status, outcome.stdout) == (3, "")
    assert outcome.stderr == "error: dir:nowhere: No such file or directory\n"
