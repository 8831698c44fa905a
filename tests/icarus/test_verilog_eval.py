"""The judge on VerilogEval v2: references pass on every stimulus, stubs fail, and which problems cannot be used."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.icarus import made
from verilog_taskapp.environment.world import bench_of
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.judge import Judge, Prepared
from verilog_taskapp.icarus.stimuli import PUBLIC
from verilog_taskapp.problems import load_problem_set
from verilog_taskapp.settings import Settings

DATASET = Path(__file__).resolve().parents[3] / "shared" / "verilog-eval" / "dataset_spec-to-rtl"

pytestmark = pytest.mark.skipif(not DATASET.is_dir(), reason=f"VerilogEval's data set is not in {DATASET.parent.name}")

SAMPLE = (
    "Prob001_zero",
    "Prob007_wire",
    "Prob030_popcount255",
    "Prob034_dff8",
    "Prob047_dff8ar",
    "Prob071_always_casez",
    "Prob092_gatesv100",
    "Prob105_rotate100",
    "Prob109_fsm1",
    "Prob124_rule110",
    "Prob140_fsm_hdlc",
    "Prob155_lemmings4",
)
"""Combinational and sequential ones, with and without resets, narrow and wide."""
UNUSABLE = {
    11: {"Prob099_m2014_q6c", "Prob151_review2015_fsm", "Prob156_review2015_fancytimer"},
    12: {"Prob099_m2014_q6c"},
    13: {"Prob099_m2014_q6c"},
}
"""By major version of Icarus: 099's bench names ports that its reference lacks, 11 cannot cast to an enumeration."""
ONE_STIMULUS = {"Prob001_zero", "Prob002_m2014_q4i", "Prob003_step_one"}
"""Interfaces without inputs: there is nothing to vary."""


@cache
def benches() -> dict[str, Bench]:
    problems = load_problem_set(Settings(dataset=f"dir:{DATASET}", errata=False))
    return {problem.id: bench_of(problem) for problem in problems}


def renamed(bench: Bench) -> str:
    return re.sub(r"\bRefModule\b", "TopModule", bench.reference)


def stub(prepared: Prepared) -> str:
    ports = ", ".join(f"{port.direction} [{port.width - 1}:0] {port.name}" for port in prepared.ports)
    return f"module TopModule({ports});\nendmodule\n"


async def examine(name: str, judge: Judge) -> None:
    """The reference passes in public and on a secret stimulus; a design without contents fails."""
    prepared = await judge.prepare(benches()[name])
    assert (prepared.status, prepared.reason) == ("golden", "")
    compilation = await judge.compile(prepared, *made.one_file(renamed(prepared.bench), "TopModule.sv"))
    assert compilation.succeeded, compilation.messages(1000)
    hidden = judge.secrets.draws(prepared.bench.key, 0)
    for draws in (PUBLIC, hidden):
        verdict = await judge.run(prepared, compilation, draws)
        assert (verdict.passed, verdict.reason, verdict.mismatches) == (True, "match", 0)
        assert verdict.samples > 0
    public, secret = await judge.trace(prepared), await judge.trace(prepared, hidden)
    assert (public.stimulus == secret.stimulus) == (name in ONE_STIMULUS)
    empty = await judge.judge(prepared, *made.one_file(stub(prepared)))
    assert (empty.passed, empty.reason) == (False, "mismatch")


def test_the_set_is_whole() -> None:
    assert len(benches()) == 156


@pytest.mark.parametrize("name", SAMPLE)
async def test_a_sample_of_the_references_passes_and_stubs_fail(name: str, judge: Judge) -> None:
    await examine(name, judge)


@pytest.mark.slow
async def test_every_usable_reference_passes_and_stubs_fail(judge: Judge) -> None:
    for name in sorted(benches().keys() - UNUSABLE[judge.tools.major]):
        await examine(name, judge)


@pytest.mark.parametrize("name", sorted(UNUSABLE[11]))
async def test_the_problems_that_cannot_be_used_are_known(name: str, judge: Judge) -> None:
    if name not in UNUSABLE[judge.tools.major]:
        pytest.skip(f"usable with Icarus {judge.tools.version}")
    prepared = await judge.prepare(benches()[name])
    assert prepared.status == "unusable"
    reason = "is not a port of" if "099" in name else "cast operation"
    assert reason in prepared.reason
