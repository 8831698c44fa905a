"""Errata are data: applied to exactly the text they are for, visible, and switchable."""

from dataclasses import replace
from pathlib import Path

import pytest

from verilog_taskapp.problems import ProblemSet, load_problem_set
from verilog_taskapp.problems.corrections import corrected, known_corrections
from verilog_taskapp.settings import Settings

VERILOG_EVAL = Path(__file__).parents[3] / "shared" / "verilog-eval" / "dataset_spec-to-rtl"
needs_verilog_eval = pytest.mark.skipif(not VERILOG_EVAL.is_dir(), reason="no VerilogEval checkout beside the project")


def loaded(*, errata: bool) -> ProblemSet:
    return load_problem_set(Settings(dataset=f"dir:{VERILOG_EVAL}", errata=errata))


def test_every_erratum_says_what_why_and_how_it_was_found() -> None:
    corrections = known_corrections()
    assert len(corrections) == 10
    for correction in corrections.values():
        assert correction.what
        assert correction.why
        assert correction.source
        assert len(correction.content_hash) == 64


@needs_verilog_eval
def test_every_erratum_applies_to_the_published_text() -> None:
    problems = {problem.id: problem for problem in loaded(errata=True) if problem.errata}
    assert problems.keys() == known_corrections().keys()
    assert not [one.id for one in problems.values() if one.errata[0].what.startswith("not applied")]


@needs_verilog_eval
def test_the_bench_of_problem_99_connects_the_ports_of_the_specification() -> None:
    testbench = loaded(errata=True).get("Prob099_m2014_q6c").testbench
    assert ".Y1(Y1_dut)" in testbench
    assert ".Y3(Y3_dut)" in testbench
    assert "Y2" not in testbench
    assert "Y4" not in testbench


@needs_verilog_eval
def test_switched_off_nothing_is_changed() -> None:
    published = loaded(errata=False)
    assert not [problem.id for problem in published if problem.errata or problem.ignored_samples]
    assert published.version != loaded(errata=True).version
    assert [problem.id for problem in published] == [problem.id for problem in loaded(errata=True)]


@needs_verilog_eval
def test_another_text_under_the_same_id_is_left_alone_and_reported() -> None:
    published = loaded(errata=False).get("Prob034_dff8")
    other = replace(published, testbench=published.testbench + "\n// changed\n")
    result = corrected(other)
    assert result.testbench == other.testbench
    assert result.ignored_samples == 0
    assert result.errata[0].what.startswith("not applied")
