"""Designs that hang and tools that break: the first is the policy's fault and an ordinary step, the second is ours."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import Serve
from tests.support import (
    DEADLINE_S,
    HANGS,
    MIN_MAX,
    MIN_MAX_PORTS,
    Service,
    call,
    files_in,
    processes_in,
    simulators_in,
    traces_in,
)
from verilog_taskapp.scripted.designs import designs_of

BURNS = f"""{MIN_MAX_PORTS}
  function integer count(input integer n);
    integer i;
    begin
      count = 0;
      for (i = 0; i < n; i = i + 1) count = count + 1;
    end
  endfunction
  localparam N = count(2000000000);
  assign min = N;
endmodule
"""


def script(design: str, *tools: str) -> list[dict[str, Any]]:
    return [call("write_file", path="TopModule.v", content=design), *(call(tool) for tool in tools)]


async def until(condition: Callable[[], Any]) -> None:
    """Wait for what nobody signals: the state of other processes."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_compile_that_runs_out_of_time_is_no_success(serve: Serve) -> None:
    async with serve(compile_cpu_s=1) as service:
        answer = await service.rollout(ops=script(BURNS, "compile", "submit"), env=MIN_MAX)
        _, compiled, submitted = answer["trajectories"][0]["steps"]
        assert (compiled["info"]["outcome"], compiled["reward"]) == ("failed", pytest.approx(-0.01))
        assert compiled["info"]["facts"]["failure"] == "time_limit"
        assert "time limit" in compiled["info"]["tool_result"]
        assert (submitted["done"], submitted["reward"]) == (True, pytest.approx(-0.01))
        assert answer["metrics"]["details"]["task_completed"] is False
        assert simulators_in(service.services.world.runner.scratch) == {}


async def test_the_service_answers_while_a_simulation_hangs_and_nothing_of_it_stays(serve: Serve) -> None:
    async with serve(run_cpu_s=1, max_children=2) as service:
        scratch = service.services.world.runner.scratch
        await service.rollout(ops=[call("submit")], env=MIN_MAX)  # recorded: what runs from now on is the design
        rollout = asyncio.create_task(service.rollout(ops=script(HANGS, "simulate"), env=MIN_MAX))
        await until(lambda: any("vvp -n" in command for command in simulators_in(scratch).values()))
        for path in ("/health", "/ready", "/task_info?seed=0"):
            assert (await service.client.get(path)).status_code == 200
        other = await service.rollout(env=MIN_MAX)
        assert other["metrics"]["details"]["task_completed"] is True
        assert not rollout.done()
        assert any("vvp -n" in command for command in simulators_in(scratch).values()), "all of it took no second"
        answer = await rollout
        step = answer["trajectories"][0]["steps"][-1]
        assert (step["info"]["outcome"], step["reward"]) == ("failed", pytest.approx(-0.01))
        assert step["info"]["facts"]["reason"] == "time_limit"
        assert simulators_in(scratch) == {}
        assert files_in(scratch) == []


async def test_max_time_s_stops_a_hanging_simulation_at_once(serve: Serve) -> None:
    async with serve(run_cpu_s=60) as service:
        await service.rollout(ops=[call("submit")], env=MIN_MAX)
        answer = await service.rollout(ops=script(HANGS, "compile", "simulate"), env=MIN_MAX, safety={"max_time_s": 1})
        details = answer["metrics"]["details"]
        assert (details["status"], details["stop_reason"]) == ("truncated", "max_time_s")
        assert details["total_reward"] == pytest.approx(0.1 - 0.02)
        assert simulators_in(service.services.world.runner.scratch) == {}
        assert files_in(service.services.world.runner.scratch) == []


async def test_a_cancelled_rollout_takes_its_processes_along_and_is_stored_as_aborted(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve(run_cpu_s=60, cache_dir=tmp_path / "own") as service:
        scratch = service.services.world.runner.scratch
        await service.rollout(ops=[call("submit")], env=MIN_MAX)
        rollout = asyncio.create_task(service.rollout(ops=script(HANGS, "simulate"), env=MIN_MAX))
        await until(lambda: any("vvp -n" in command for command in simulators_in(scratch).values()))
        rollout.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rollout
        assert simulators_in(scratch) == {}
        assert files_in(scratch) == []
        assert service.services.rollouts.in_flight == 0
        _, stored = traces_in(service.settings.cache_dir)
        assert stored["metadata"]["status"] == "aborted"
        assert len(stored["session_time_steps"]) == 1


async def test_nothing_is_left_when_the_service_closes(serve: Serve, tmp_path: Path) -> None:
    async with serve(run_cpu_s=60) as service:
        scratch = service.services.world.runner.scratch
        await service.rollout(env=MIN_MAX)
        assert processes_in(scratch), "launchers"
        await service.post("/env/verilog/initialize", {})
    assert processes_in(tmp_path) == {}
    assert not scratch.exists()


async def test_closing_in_the_middle_of_the_first_preparation_leaves_nothing(serve: Serve, tmp_path: Path) -> None:
    async with serve(cache_dir=tmp_path / "own", max_children=1) as service:
        scratch = service.services.world.runner.scratch
        rollouts = [asyncio.create_task(service.rollout(seed=seed)) for seed in range(3)]
        await until(lambda: service.services.world.runner.busy)
        for rollout in rollouts:
            rollout.cancel()
        await asyncio.wait(rollouts)
    assert processes_in(tmp_path) == {}
    assert not scratch.exists()


# --- tools that break


class Tools:
    """An `iverilog` and a `vvp` of our own, which pass everything on to the real ones until they are broken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("iverilog", "vvp"):
            self.mend(name)

    def mend(self, name: str) -> None:
        real = shutil.which(name)
        self.replace(name, f'exec {real} "$@"')

    def replace(self, name: str, body: str) -> None:
        fresh = self.folder / f"{name}.new"
        fresh.write_text(f"#!/bin/sh\n{body}\n")
        fresh.chmod(0o755)
        fresh.rename(self.folder / name)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()


@asynccontextmanager
async def with_tools(serve: Serve, tmp_path: Path, **settings: Any) -> AsyncIterator[tuple[Service, Tools]]:
    """A service on breakable tools that has already recorded the problem's golden trace with them."""
    tools = Tools(tmp_path / "tools")
    given = {"iverilog": str(tools.folder / "iverilog"), "cache_dir": tmp_path / "own", "sandbox": "limits"}
    async with serve(**given, **settings) as service:  # a sandbox would keep these tools from the real ones
        answer = await service.rollout(env=MIN_MAX)
        assert answer["metrics"]["details"]["task_completed"] is True
        yield service, tools


BREAKS = {
    "killed by somebody": "kill -KILL $$",
    "crashes": "kill -SEGV $$",
    "aborts": "kill -ABRT $$",
    "library missing": 'echo "error while loading shared libraries: libx.so: cannot open" >&2; exit 127',
    "not its own program": "exec /nonexistent/vvp",
    "stalls": "sleep 60",
}


@pytest.mark.parametrize("tool", ["iverilog", "vvp"])
@pytest.mark.parametrize("how", BREAKS)
async def test_a_tool_that_breaks_is_our_fault_and_no_verdict(
    serve: Serve, tmp_path: Path, tool: str, how: str
) -> None:
    limits = {"run_cpu_s": 0.8, "compile_cpu_s": 0.8, "wall_factor": 1.01}
    async with with_tools(serve, tmp_path, **limits) as (service, tools):
        right = designs_of(service.problems.get(MIN_MAX["problem"])).right
        tools.replace(tool, BREAKS[how])
        error = await service.error(500, ops=script(right, "simulate"), env=MIN_MAX)
        assert (error["code"], error["retryable"]) == ("environment_failed", True)
        assert error["stage"] in ("tool", "verdict")
        assert error["partial_trajectory"]["final"]["reward"] == pytest.approx(-0.01), "the write, and nothing else"
        assert error["partial_trajectory"]["length"] == 1
        assert await service.services.traces.load(error["trace_id"]) is not None
        assert simulators_in(service.services.world.runner.scratch) == {}
        tools.mend(tool)
        answer = await service.rollout(ops=script(right, "simulate", "submit"), env=MIN_MAX)
        assert answer["metrics"]["details"]["task_completed"] is True


@pytest.mark.parametrize("tool", ["iverilog", "vvp"])
async def test_tools_that_vanish_are_our_fault_and_the_service_is_not_ready(
    serve: Serve, tmp_path: Path, tool: str
) -> None:
    async with with_tools(serve, tmp_path) as (service, tools):
        right = designs_of(service.problems.get(MIN_MAX["problem"])).right
        tools.remove(tool)
        error = await service.error(500, ops=script(right, "submit"), env=MIN_MAX)
        assert (error["code"], error["retryable"]) == ("environment_failed", True)
        ready = await service.client.get("/ready")
        assert (ready.status_code, ready.json()) == (503, {"ready": False, "reasons": ["the simulator is gone"]})
        health = (await service.client.get("/health/rollout")).json()
        assert (health["ok"], health["reason"]) == (False, "the simulator is gone")
        assert (await service.client.get("/health")).status_code == 200, "alive, though not ready"
        tools.mend(tool)
        assert (await service.client.get("/ready")).status_code == 200
        answer = await service.rollout(ops=script(right, "submit"), env=MIN_MAX)
        assert answer["metrics"]["details"]["task_completed"] is True


async def test_a_model_that_waits_for_a_broken_tool_is_not_asked_again(serve: Serve, tmp_path: Path) -> None:
    async with with_tools(serve, tmp_path) as (service, tools):
        asked = len(service.model.requests)
        tools.remove("vvp")
        error = await service.error(500, env=MIN_MAX)
        assert error["partial_trajectory"]["length"] == 2
        assert len(service.model.requests) == asked + 3


async def test_a_lost_scratch_directory_is_our_fault(serve: Serve) -> None:
    async with serve() as service:
        await service.rollout(env=MIN_MAX)
        shutil.rmtree(service.services.world.runner.scratch)
        error = await service.error(500, env=MIN_MAX)
        assert error["code"] == "environment_failed"
        assert str(service.settings.scratch_dir) not in str(error)


async def test_a_launcher_that_dies_is_replaced(serve: Serve) -> None:
    async with serve(max_children=1, run_cpu_s=60) as service:
        scratch = service.services.world.runner.scratch
        await service.rollout(env=MIN_MAX)
        (launcher,) = processes_in(scratch)
        rollout = asyncio.create_task(service.rollout(ops=script(HANGS, "simulate"), env=MIN_MAX, status=500))
        await until(lambda: any("vvp -n" in command for command in simulators_in(scratch).values()))
        os.kill(launcher, signal.SIGKILL)
        assert (await rollout)["error"]["code"] == "environment_failed"
        await until(lambda: simulators_in(scratch) == {})
        answer = await service.rollout(env=MIN_MAX)
        assert answer["metrics"]["details"]["task_completed"] is True
