"""Starting a child without copying the launcher, and with a copy where that is not possible."""

import ctypes
import errno
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.icarus.launchers import WAYS, start_children
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step
from verilog_taskapp.icarus.spawn import SYS_CHDIR, SYS_DUP2, SYS_EXECVE, Call, Spawner, SpawnFailed, available

needs_spawner = pytest.mark.skipif(not available(), reason="made for x86-64 Linux")
SHOW = """
import json, os, resource, signal
print(json.dumps({
    "cwd": os.path.basename(os.getcwd()),
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
    "group": os.getpgid(0) == os.getpid(),
    "ignored": [n for n in signal.valid_signals() if signal.getsignal(n) == signal.SIG_IGN],
    "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "limits": [resource.getrlimit(w) for w in (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_AS)],
    "environment": sorted(os.environ),
}))
"""


@pytest.fixture(params=WAYS)
async def way(request: pytest.FixtureRequest, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runner]:
    """A runner whose launcher starts children in one of the two ways."""
    start_children(request.param, monkeypatch)
    async with Runner(children=1, scratch_root=scratch) as runner:
        yield runner


async def test_a_child_starts_in_its_directory_with_its_limits_and_nothing_of_the_launchers(way: Runner) -> None:
    limits = Limits(cpu_s=3.0, wall_s=60.0, file_size_bytes=4096, address_space_bytes=2**30)
    step = Step((sys.executable, "-I", "-S", "-c", SHOW), limits)
    result = (await way.run(Job((step,)))).last
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == {
        "cwd": "job",
        "descriptors": [0, 1, 2],
        "group": True,
        "ignored": [signal.SIGPIPE, signal.SIGXFSZ],  # by this Python itself
        "blocked": 0,
        "limits": [[3, 4], [4096, 4096], [2**30, 2**30]],
        "environment": ["HOME", "LC_ALL", "PATH", "TMPDIR"],
    }


async def test_a_file_of_the_job_can_be_the_standard_input(way: Runner) -> None:
    step = Step(("/bin/cat",), Limits(), stdin="given/text")
    assert (await way.run(Job((step,), {"given/text": b"read me\n"}))).last.stdout == "read me\n"


async def test_a_program_that_is_not_there_is_named_with_the_reason(way: Runner) -> None:
    with pytest.raises(EnvironmentFailed, match=r"exec no-such-program: No such file or directory"):
        await way.run(Job((Step(("/nowhere/no-such-program",), Limits()),)))
    assert (await way.run(Job((Step(("/bin/true",), Limits()),)))).last.succeeded


@needs_spawner
def test_the_call_that_fails_is_told_and_the_parent_lives(tmp_path: Path) -> None:
    spawner = Spawner()
    null = os.open(os.devnull, os.O_RDWR)
    usual: tuple[Any, ...] = (["/bin/true"], ["A=b"], str(tmp_path), (null, null, null), [(0, 10, 10)], [])
    try:
        for number, code, given in (
            (SYS_EXECVE, errno.ENOENT, (["/nowhere"], *usual[1:])),
            (SYS_EXECVE, errno.EACCES, ([str(tmp_path)], *usual[1:])),
            (SYS_CHDIR, errno.ENOENT, (*usual[:2], str(tmp_path / "gone"), *usual[3:])),
            (SYS_DUP2, errno.EBADF, (*usual[:3], (null, 9999, null), *usual[4:])),
            (SYS_CHDIR, errno.EFAULT, (*usual[:5], [Call(SYS_CHDIR, 8)])),
        ):
            with pytest.raises(SpawnFailed) as caught:
                spawner.spawn(*given)
            assert (caught.value.number, caught.value.code) == (number, code)
        pid = spawner.spawn(*usual)
        assert os.waitpid(pid, 0) == (pid, 0)
    finally:
        os.close(null)


@needs_spawner
def test_a_thousand_children_leave_no_descriptor_and_no_zombie(tmp_path: Path) -> None:
    spawner = Spawner()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(1000):
            pid = spawner.spawn(["/bin/true"], [], str(tmp_path), (null, null, null), [], [])
            assert os.waitpid(pid, 0)[1] == 0
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        os.close(null)


@needs_spawner
def test_what_a_call_returns_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    spawner = Spawner()
    null = os.open(os.devnull, os.O_RDWR)
    wanted = ctypes.c_uint64(0)
    try:
        getpid = Call(39, result=ctypes.addressof(wanted))
        pid = spawner.spawn(["/bin/true"], [], str(tmp_path), (null, null, null), [], [getpid])
        os.waitpid(pid, 0)
    finally:
        os.close(null)
    assert wanted.value == pid
