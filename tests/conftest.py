"""What all tests share: the simulators to test with, a runner and a judge."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from verilog_taskapp.icarus.confinement import confinement
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.runner import Limits, Runner
from verilog_taskapp.icarus.sandbox import unavailable
from verilog_taskapp.icarus.toolchain import Toolchain, find

IVERILOGS = [path for path in os.environ.get("VERILOG_TEST_IVERILOGS", "iverilog").split(":") if path]
"""Compilers that the judge is tested with, colon-separated in that variable."""


DEADLINE_S = 60.0
"""For whatever has to happen but cannot be awaited; never reached by a test that passes."""


async def until(condition: Callable[[], object]) -> None:
    """Return as soon as `condition` holds; it is asked in a thread."""
    async with asyncio.timeout(DEADLINE_S):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - other processes set no event of ours
            await asyncio.sleep(0.002)


def left_by_jobs(scratch: Path) -> list[str]:
    """What jobs left below a runner's own directory, beside its lock and the empty slots of its launchers."""
    found = [path.relative_to(scratch) for path in scratch.rglob("*")]
    return sorted(
        str(path)
        for path in found
        if path.name != "lock" and not (path.parts[0].startswith("slot-") and path.parts[1:] in ((), ("out",)))
    )


def left_in(scratch: Path) -> list[Path]:
    """Everything below a scratch folder except the folder of the user itself."""
    return [path for path in scratch.rglob("*") if path.parent != scratch]


@pytest.fixture(scope="session")
def golden_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory for golden traces, shared by the tests of one run."""
    return tmp_path_factory.mktemp("golden")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Where the runners of this test work."""
    return tmp_path / "scratch"


@pytest.fixture
async def runner(scratch: Path) -> AsyncIterator[Runner]:
    """A runner of two children, with limits but without a sandbox, that must leave nothing behind."""
    async with Runner(children=2, scratch_root=scratch) as running:
        yield running
        assert left_by_jobs(running.scratch) == []
    assert left_in(scratch) == []


@pytest.fixture(
    scope="session",
    params=IVERILOGS,
    ids=[path.removesuffix("/bin/iverilog").rpartition("/")[2] for path in IVERILOGS],
)
def tools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    """Each simulator to test with."""

    async def found() -> Toolchain:
        async with Runner(children=1, scratch_root=tmp_path_factory.mktemp("tools")) as running:
            return await find(request.param, running)

    return asyncio.run(found())


@pytest.fixture
async def boxed(scratch: Path, tools: Toolchain) -> AsyncIterator[Runner]:
    """A runner of two children as the service has it: in the sandbox, where this machine can give one."""
    sandbox = None if unavailable() else confinement("required", str(tools.iverilog))
    async with Runner(children=2, scratch_root=scratch, sandbox=sandbox) as running:
        yield running
        assert left_by_jobs(running.scratch) == []
    assert left_in(scratch) == []


@pytest.fixture
def judge(boxed: Runner, tools: Toolchain, golden_cache: Path) -> Judge:
    """A judge with short limits."""
    short = Limits(cpu_s=1.0, wall_s=60.0)
    return Judge(boxed, tools, compile_limits=short, run_limits=short, wall_factor=60.0, cache_dir=golden_cache)


@pytest.fixture
def ungated(boxed: Runner, tools: Toolchain, golden_cache: Path) -> Judge:
    """The same judge without the gate on system calls: what the verdict itself withstands."""
    short = Limits(cpu_s=1.0, wall_s=60.0)
    return Judge(
        boxed, tools, compile_limits=short, run_limits=short, wall_factor=60.0, cache_dir=golden_cache, gated=False
    )
