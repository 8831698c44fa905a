"""Designs that cheat, hang or eat memory; honest ones that look suspicious; and text as models write it."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import left_by_jobs
from tests.icarus import made
from tests.icarus.test_verilog_eval import DATASET, benches
from tests.support import simulators_in
from verilog_taskapp.environment.normalize import normalize
from verilog_taskapp.icarus.confinement import SandboxSetting, confinement
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.runner import MIB, Job, Limits, Runner, Step
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.icarus.verdict import Verdict

ATTACKS = Path(__file__).resolve().parents[3] / "shared" / "attacks"
DESIGNS = sorted(path.stem for path in (ATTACKS / "designs").glob("*.sv"))
LEGIT = sorted(path.name for path in (ATTACKS / "legit").glob("*.sv"))

pytestmark = pytest.mark.skipif(
    not (ATTACKS.is_dir() and DATASET.is_dir()), reason="the collection of attacks is not beside this repository"
)

HONEST = {"a4_consume_random_only", "ca_begin_keywords", "cb_unconn_drive"}
"""They only look like attacks: they must pass."""
EITHER = {"d0_many_files_disk_fill"}
"""A right design that fills the disk: whatever the verdict, nothing may be left."""
TELLING = (
    "01_display_pass",
    "05_finish_t0_only",
    "08_final_last",
    "20_read_ref_hier",
    "24_instantiate_ref",
    "26_force_match",
    "41_assign_own_input",
    "52_redefine_tb",
    "62_include_ref_in_module",
    "66_readmemh_ref",
    "6a_missing",
    "77_system",
    "81_zero_delay_loop",
    "88_huge_vector",
    "a0_random_steer",
    "a5_z_output",
    "a8_line_spoof",
    "b0_proc_self_mem_rce",
    "c0_ifdef_bypass_alone",
    *sorted(HONEST | EITHER),
)
"""One or more of each kind, for every run of the tests."""
SECRETS = ("root:x:", "GROQ", "PATH=", "stats1", "tb_match", "RefModule (", "/dev/shm", ".judge")
"""What must not come back from a host file, the environment, the bench or the reference."""
LIMITS = Limits(cpu_s=1.0, wall_s=60.0, address_space_bytes=512 * MIB)


@pytest.fixture
def strict(boxed: Runner, tools: Toolchain, golden_cache: Path) -> Judge:
    """A judge with short limits and without the list of refused calls, which is for clear messages only."""
    return Judge(
        boxed,
        tools,
        compile_limits=LIMITS,
        run_limits=LIMITS,
        wall_factor=60.0,
        cache_dir=golden_cache / "attacks",
        gated=False,
    )


def normalized(path: Path) -> str:
    """A file as ``write_file`` would take it."""
    return normalize("TopModule.sv", path.read_bytes().decode("utf-8", "replace"))[0]


async def attack(name: str, judge: Judge) -> Verdict:
    prepared = await judge.prepare(benches()["Prob034_dff8"])
    files, sources = made.one_file(normalized(ATTACKS / "designs" / f"{name}.sv"), "TopModule.sv")
    compilation = await judge.compile(prepared, files, sources)
    return await judge.final(prepared, compilation)


def check(name: str, verdict: Verdict) -> None:
    if name not in EITHER:
        assert verdict.passed == (name in HONEST), (name, verdict.reason)
    assert verdict.compilation is not None
    returned = verdict.design_output + verdict.compilation.messages(100_000)
    own = (ATTACKS / "designs" / f"{name}.sv").read_text()
    assert not [secret for secret in SECRETS if secret in returned and secret not in own], (name, returned[:300])
    assert len(verdict.design_output) <= 2 * LIMITS.output_bytes


@pytest.mark.parametrize("name", [name for name in TELLING if name in DESIGNS])
async def test_an_attack_fails_and_leaves_nothing(name: str, strict: Judge, boxed: Runner, scratch: Path) -> None:
    check(name, await attack(name, strict))
    assert left_by_jobs(boxed.scratch) == []
    assert simulators_in(scratch) == {}


@pytest.mark.slow
async def test_no_attack_passes(strict: Judge, boxed: Runner, scratch: Path) -> None:
    for name in DESIGNS:
        check(name, await attack(name, strict))
        assert left_by_jobs(boxed.scratch) == [], name
        assert simulators_in(scratch) == {}, name


REACHES_OUT = {"71_dumpfile_outside", "72_fopen_w_outside", "c7_writememh", "b0_proc_self_mem_rce"}
"""They write to the host or take over the simulator: not to be tried where nothing holds them."""


@pytest.mark.slow
@pytest.mark.parametrize("level", ["bubblewrap", "limits"])
async def test_no_attack_passes_in_another_sandbox(
    level: SandboxSetting, tools: Toolchain, golden_cache: Path, scratch: Path
) -> None:
    if level == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    sandbox = confinement(level, str(tools.iverilog))
    async with Runner(children=2, scratch_root=scratch, sandbox=sandbox) as runner:
        if (
            level == "bubblewrap"
            and not (await runner.run(Job((Step((str(tools.vvp), "-V"), LIMITS),)))).last.succeeded
        ):
            pytest.skip("bubblewrap cannot make namespaces here")
        cache = golden_cache / "attacks"
        one = Judge(
            runner, tools, compile_limits=LIMITS, run_limits=LIMITS, wall_factor=60.0, cache_dir=cache, gated=False
        )
        for name in DESIGNS:
            if level == "limits" and name in REACHES_OUT:
                continue
            verdict = await attack(name, one)
            if level == "limits":  # files of the host can be read there, as the setting's name says
                assert name in EITHER or verdict.passed == (name in HONEST), (name, verdict.reason)
            else:
                check(name, verdict)
            assert left_by_jobs(runner.scratch) == [], name
            assert simulators_in(scratch) == {}, name


@pytest.mark.parametrize("name", LEGIT)
async def test_an_honest_design_with_suspicious_looks_passes(name: str, judge: Judge) -> None:
    prepared = await judge.prepare(benches()[name.split("__")[1]])
    design = normalized(ATTACKS / "legit" / name)
    compilation = await judge.compile(prepared, *made.one_file(design, "TopModule.sv"))
    verdict = await judge.final(prepared, compilation)
    assert verdict.passed, compilation.messages(1000)


MODEL_TEXT = {
    "Prob001_zero__always_star_never_fires": False,
    "Prob001_zero__correct_always_comb": True,
    "Prob005_notgate__bom": True,
    "Prob005_notgate__crlf": True,
    "Prob005_notgate__fence": True,
    "Prob005_notgate__nbsp": True,
    "Prob005_notgate__smart_quotes": False,
    "Prob032_vector0__one_output_wrong": False,
}


def test_every_text_is_tried() -> None:
    assert {path.stem for path in (ATTACKS / "model_text").glob("*.sv")} == set(MODEL_TEXT)


@pytest.mark.parametrize("name", MODEL_TEXT)
async def test_text_as_models_write_it(name: str, judge: Judge) -> None:
    prepared = await judge.prepare(benches()[name.split("__")[0]])
    design = normalized(ATTACKS / "model_text" / f"{name}.sv")
    compilation = await judge.compile(prepared, *made.one_file(design, "TopModule.sv"))
    verdict = await judge.final(prepared, compilation)
    assert verdict.passed == MODEL_TEXT[name], compilation.messages(1000)
    if "always_star" in name:
        assert "no sensitivities" in compilation.messages(1000)
    if "one_output" in name:
        assert [output.mismatches == 0 for output in verdict.outputs].count(True) >= 1
