"""An installation of the simulator that is taken away and put back while rollouts run."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.app.running import Server, server_in, until
from tests.faults.outcomes import Batch, check_environment_failed, check_solved, get, run
from tests.support import MIN_MAX, rollout_body, simulators_in
from verilog_taskapp.icarus.passes import find_passes
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.scripted import ScriptedOptions, ScriptedServer
from verilog_taskapp.settings import Settings

ROLLOUTS = 8


def installed_in(prefix: Path) -> Path:
    """A copy of the installation on PATH: its tools and its passes; returns the compiler."""
    found = shutil.which("iverilog")
    assert found is not None
    real = Path(found).resolve()
    passes = find_passes(real, 11)
    if passes is None:
        pytest.skip("the iverilog on PATH is no binary with its passes beside it")
    shutil.copytree(passes.library, prefix / "lib" / "ivl")
    (prefix / "bin").mkdir()
    for name in ("iverilog", "vvp"):
        shutil.copy2(real.with_name(name), prefix / "bin" / name)
    return prefix / "bin" / "iverilog"


async def readiness(server: Server) -> tuple[int, list[str]]:
    """Status and reasons of ``/ready``."""
    answer = await get(server, "/ready")
    return answer.status_code, answer.json()["reasons"]


@pytest.mark.parametrize("back", ["moved back", "installed anew"])
@pytest.mark.parametrize("lost", ["iverilog", "vvp", "both"])
async def test_rollouts_whose_tools_are_lost_fail_as_ours_and_tools_that_are_back_are_used(
    tmp_path: Path, lost: str, back: str
) -> None:
    compiler = installed_in(tmp_path / "icarus")
    tools = [compiler.with_name(name) for name in ("iverilog", "vvp") if lost in (name, "both")]
    problems = load_problem_set(Settings()).problems
    async with (
        ScriptedServer(ScriptedOptions(latency_ms=200), problems) as model,
        server_in(tmp_path, VERILOG_IVERILOG=str(compiler), VERILOG_VERDICT_CACHE="off") as server,
    ):
        policy = {"inference_url": model.url}
        bodies = [rollout_body(policy=policy, env=MIN_MAX, run_id=f"lost-{number}") for number in range(ROLLOUTS)]
        check_solved(await run(server, bodies))
        assert await readiness(server) == (200, [])

        running = asyncio.create_task(run(server, bodies))
        await until(lambda: model.stats.in_flight == ROLLOUTS, "all rollouts ask the model")
        for tool in tools:
            tool.rename(tool.with_suffix(".away"))
        assert await readiness(server) == (503, ["the simulator is gone"])
        without = await running
        if lost == "iverilog":  # its passes are called without it
            check_solved(Batch(tuple(without.answered), without.elapsed_s))
        else:
            assert len(without.failed) == ROLLOUTS, "nothing can be judged without the simulator"
        for outcome in without.failed:
            check_environment_failed(outcome)
        assert (await get(server, "/health")).status_code == 200, "alive, though not ready"

        for tool in tools:
            if back == "moved back":
                tool.with_suffix(".away").rename(tool)
            else:
                shutil.copy2(tool.with_suffix(".away"), tool)
                tool.with_suffix(".away").unlink()
        assert await readiness(server) == (200, [])
        again = await run(server, bodies)
        check_solved(again)
        await until(lambda: not simulators_in(server.scratch), "no simulator is left")
    print(f"\n{lost} lost, {back}: {without}; back: {again}")
