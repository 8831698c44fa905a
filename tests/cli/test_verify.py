"""``verify``: a verdict on files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Outcome
from tests.icarus import made

RIGHT = made.as_design(made.GATES)
WRONG = RIGHT.replace("a & b", "a ^ b")
SYNTAX = RIGHT.replace(");", ")", 1)

pytestmark = pytest.mark.usefixtures("source")


def judged(cli: Cli, text: str, *options: str, problem: str = "gates", name: str = "TopModule.v") -> Outcome:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return cli("verify", "--problem", problem, *options, name)


def report(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


@pytest.mark.parametrize("judge", ["golden", "classic"])
@pytest.mark.parametrize(("text", "status", "verdict"), [(RIGHT, 0, "pass"), (WRONG, 1, "fail"), (SYNTAX, 1, "fail")])
def test_the_verdict_is_the_exit_status(cli: Cli, judge: str, text: str, status: int, verdict: str) -> None:
    outcome = judged(cli, text, "--judge", judge, "--json")
    assert (outcome.status, outcome.stderr) == (status, "")
    found = report(outcome)
    assert (found["verdict"], found["judge"], found["problem"]) == (verdict, judge, "gates")
    assert found["ms"] > 0


def test_a_mismatch_says_where(cli: Cli) -> None:
    found = report(judged(cli, WRONG, "--json"))
    assert found["reason"] == "mismatch"
    assert found["outputs"]["either"] == {"width": 1, "mismatches": 0, "first_sample": None}
    assert found["outputs"]["both"]["mismatches"] == found["mismatches"] > 0
    assert found["first_mismatch"] == found["outputs"]["both"]["first_sample"]
    assert found["waveform"]["rows"]


def test_expected_values_are_only_in_the_waveform(cli: Cli) -> None:
    assert "waveform" not in report(judged(cli, WRONG, "--json", "--feedback", "hints"))
    assert "both exp" in judged(cli, WRONG).stdout
    assert "both exp" not in judged(cli, WRONG, "--feedback", "hints").stdout


def test_the_report_for_people(cli: Cli) -> None:
    assert judged(cli, RIGHT).stdout.startswith("gates: passed: 60 samples match")
    failed = judged(cli, WRONG).stdout
    assert failed.startswith("gates: failed: ")
    assert "output both (1 bit)" in failed
    broken = judged(cli, SYNTAX).stdout
    assert "does not compile" in broken
    assert "TopModule.v:" in broken


def test_the_classic_report_gives_the_category(cli: Cli) -> None:
    assert report(judged(cli, SYNTAX, "--judge", "classic", "--json"))["category"] == "S"
    assert "R (run-time mismatch)" in judged(cli, WRONG, "--judge", "classic").stdout


def test_several_files_keep_their_places(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "design"
    (folder / "parts").mkdir(parents=True)
    (folder / "top.sv").write_text('`include "parts/defs.vh"\n' + RIGHT.replace("a & b", "a `AND b"))
    (folder / "parts" / "defs.vh").write_text("`define AND &\n")
    files = [str(folder / "top.sv"), str(folder / "parts" / "defs.vh")]
    assert cli("verify", "--problem", "gates", *files).status == 0


def test_what_the_workspace_changes_is_told(cli: Cli) -> None:
    outcome = judged(cli, f"```verilog\n{RIGHT}\n```\n")
    assert outcome.status == 0
    assert outcome.stderr.startswith("note: TopModule.v: ")


@pytest.mark.parametrize("name", ["TopModule.vhd", "-x.v", "a b.v", "a/b/c/d/e/f.v"])
def test_a_name_that_the_workspace_refuses(cli: Cli, name: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RIGHT)
    Path("z.v").write_text("module z; endmodule\n")
    outcome = cli("verify", "--problem", "gates", "--", name, "z.v")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert path.name in outcome.stderr


def test_files_that_cannot_be_read(cli: Cli) -> None:
    Path("binary.v").write_bytes(b"\xff\xfe\x00")
    Path("folder.v").mkdir()
    for name, told in (("binary.v", "UTF-8"), ("folder.v", "directory"), ("missing.v", "No such file")):
        outcome = cli("verify", "--problem", "gates", name)
        assert (outcome.status, outcome.stdout) == (2, "")
        assert told in outcome.stderr


def test_a_file_that_is_too_large(cli: Cli) -> None:
    outcome = judged(cli, RIGHT + "// x\n" * 60_000)
    assert outcome.status == 2
    assert "262144" in outcome.stderr


def test_no_source_among_the_files(cli: Cli) -> None:
    outcome = judged(cli, "1\n", name="rom.mem")
    assert outcome.status == 2
    assert "no .v or .sv file" in outcome.stderr


def test_an_unknown_problem(cli: Cli) -> None:
    outcome = judged(cli, RIGHT, "--json", problem="gate")
    assert (outcome.status, outcome.stdout) == (2, "")


def test_an_unusable_problem_has_no_verdict(cli: Cli) -> None:
    outcome = judged(cli, RIGHT, "--json", problem="broken")
    assert outcome.status == 3
    found = report(outcome)
    assert (found["verdict"], found["reason"]) == ("none", "problem_unusable")
    assert found["messages"][0] in outcome.stderr


def test_no_simulator_no_verdict(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_IVERILOG", "/nowhere/iverilog")
    outcome = judged(cli, RIGHT, "--json")
    assert outcome.status == 3
    assert (report(outcome)["verdict"], report(outcome)["reason"]) == ("none", "environment_failed")
    assert judged(cli, RIGHT).stdout == ""


def test_a_problem_that_is_judged_the_weaker_way_says_so(cli: Cli) -> None:
    found = report(judged(cli, made.as_design(made.HANDSHAKE), "--json", problem="closed_loop"))
    assert (found["verdict"], found["judge"]) == ("pass", "classic")


def test_the_bundled_set_is_the_default(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERILOG_DATASET")
    shown = json.loads(cli("problems", "show", "vt001_min_max", "--with-reference", "--json").stdout)
    text = shown["reference"].replace("RefModule", "TopModule")
    assert judged(cli, text, problem="vt001_min_max").status == 0
