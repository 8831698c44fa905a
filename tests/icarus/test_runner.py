"""The one way to start a child: limits, the end of a whole process group, cancellation, and what comes back."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, left_by_jobs, left_in, until
from tests.support import processes_in, simulators_in
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.runner import MIB, Job, JobResult, Limits, Runner, Step, StepResult

QUICK = Limits(cpu_s=5.0, wall_s=60.0)
FOR_EVER = "while :; do :; done"


def shell(script: str, limits: Limits = QUICK, required: str | None = None) -> Step:
    return Step(("/bin/sh", "-c", script), limits, required)


def python(script: str, limits: Limits = QUICK) -> Step:
    return Step((sys.executable, "-I", "-S", "-c", script), limits)


async def run(runner: Runner, *steps: Step, files: Mapping[str, bytes] | None = None, **collect: int) -> JobResult:
    return await runner.run(Job(steps, files or {}, collect=collect))


async def said(runner: Runner, script: str) -> StepResult:
    return (await run(runner, shell(script))).last


async def started(scratch: Path, count: int = 1) -> dict[int, str]:
    """The children below `scratch`, as soon as there are `count`."""
    await until(lambda: len(simulators_in(scratch)) >= count)
    return simulators_in(scratch)


async def gone(scratch: Path) -> None:
    """Return when no child is left below `scratch`."""
    await until(lambda: not simulators_in(scratch))


# --- what a child gets and what comes back


async def test_the_output_and_exit_status_of_a_child_come_back(runner: Runner) -> None:
    result = (await run(runner, shell("echo out; echo err >&2; exit 3"))).last
    assert (result.end, result.exit_code, result.signal) == ("exited", 3, None)
    assert (result.stdout, result.stderr, result.output_cut) == ("out\n", "err\n", False)
    assert not result.succeeded


async def test_a_signal_is_told_apart_from_an_exit_status(runner: Runner) -> None:
    result = (await run(runner, shell("kill -SEGV $$"))).last
    assert (result.end, result.exit_code, result.signal) == ("exited", None, signal.SIGSEGV)


async def test_output_that_is_not_utf_8_is_replaced_not_refused(runner: Runner) -> None:
    assert (await said(runner, r"printf '\377\376ok'")).stdout == "��ok"


async def test_stdin_is_null(runner: Runner) -> None:
    assert (await said(runner, "readlink /proc/self/fd/0; cat; echo read")).stdout == "/dev/null\nread\n"


async def test_nothing_of_the_servers_environment_reaches_a_child(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-secret")
    found = dict(line.split("=", 1) for line in (await said(runner, "/usr/bin/env")).stdout.splitlines())
    for of_the_shell in ("PWD", "OLDPWD", "SHLVL", "_"):
        found.pop(of_the_shell, None)
    assert found == {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": ".", "HOME": "/nonexistent"}


async def test_no_descriptor_of_the_server_reaches_a_child(runner: Runner) -> None:
    script = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])"  # the last is listdir's own
    assert (await run(runner, python(script))).last.stdout == "[0, 1, 2]\n"  # and so no way to answer for the launcher


async def test_a_child_leads_its_own_process_group(runner: Runner) -> None:
    script = "import os; print(os.getpgid(0) == os.getpid())"
    assert (await run(runner, python(script))).last.stdout == "True\n"


async def test_files_are_written_with_their_folders_and_changed_ones_come_back(runner: Runner) -> None:
    files = {"a.txt": b"one", "sub/dir/b.bin": bytes(range(256))}
    job = Job(
        (shell("cat a.txt sub/dir/b.bin > both; rm a.txt"),),
        files,
        collect={"both": 1000, "a.txt": 1000, "sub/dir/b.bin": 1000},
    )
    result = await runner.run(job)
    assert dict(result.files) == {"both": b"one" + bytes(range(256)), "sub/dir/b.bin": bytes(range(256))}


async def test_each_job_has_a_fresh_directory(runner: Runner) -> None:
    await said(runner, "echo secret > left")
    assert (await said(runner, "ls -A")).stdout == ""


async def test_a_shared_file_appears_in_the_directory(runner: Runner) -> None:
    shared = runner.scratch / "shared"
    shared.write_bytes(b"many bytes")
    job = Job((shell("cat linked"),), links={"linked": shared})
    assert (await runner.run(job)).last.stdout == "many bytes"
    shared.unlink()


async def test_large_files_go_in_and_out_unchanged(runner: Runner) -> None:
    content = os.urandom(5 * MIB)
    result = await run(runner, shell("cat given > out"), files={"given": content}, out=6 * MIB)
    assert result.files["out"] == content


# --- steps


async def test_the_next_step_runs_only_if_the_one_before_succeeded(runner: Runner) -> None:
    result = await run(runner, shell("echo 1; exit 1"), shell("echo 2"))
    assert [step.stdout for step in result.steps] == ["1\n"]
    result = await run(runner, shell("echo 1"), shell("echo 2"))
    assert [step.stdout for step in result.steps] == ["1\n", "2\n"]


async def test_a_step_without_its_required_file_did_not_succeed(runner: Runner) -> None:
    result = await run(runner, shell(":", required="program"), shell("echo 2"))
    assert len(result.steps) == 1
    result = await run(runner, shell("touch program", required="program"), shell("echo 2"))
    assert result.last.stdout == "2\n"


async def test_a_program_that_cannot_be_started_is_our_fault(runner: Runner) -> None:
    with pytest.raises(EnvironmentFailed, match="exec nonesuch: No such file"):
        await run(runner, Step(("/bin/nonesuch",), QUICK))
    with pytest.raises(EnvironmentFailed, match="exec passwd: Permission denied"):
        await run(runner, Step(("/etc/passwd",), QUICK))
    assert (await said(runner, "echo fine")).stdout == "fine\n"


# --- limits


async def test_the_cpu_limit_ends_a_loop(runner: Runner) -> None:
    result = (await run(runner, shell(FOR_EVER, Limits(cpu_s=1.0, wall_s=60.0)))).last
    assert result.signal == signal.SIGXCPU
    assert 0.5 <= result.cpu_s < 3.0  # the kernel's limit and its accounts differ a little


async def test_a_child_that_ignores_the_cpu_limits_signal_is_killed(runner: Runner) -> None:
    script = f"trap '' XCPU; {FOR_EVER}"
    result = (await run(runner, shell(script, Limits(cpu_s=1.0, wall_s=60.0)))).last
    assert result.signal == signal.SIGKILL
    assert result.cpu_s >= 1.2


async def test_the_wall_limit_ends_a_sleep_with_all_its_children(runner: Runner, scratch: Path) -> None:
    script = "trap '' TERM; sleep 600 & (trap '' TERM; sleep 600) & wait"
    result = (await run(runner, shell(script, Limits(wall_s=0.2)))).last
    assert (result.end, result.signal) == ("wall_limit", signal.SIGKILL)
    assert result.cpu_s < 0.5
    assert simulators_in(scratch) == {}


async def test_memory_is_limited(runner: Runner) -> None:
    script = "b = bytearray(300 << 20)"
    limits = Limits(address_space_bytes=200 * MIB, cpu_s=5.0, wall_s=60.0)
    assert "MemoryError" in (await run(runner, python(script, limits))).last.stderr
    assert (await run(runner, python(script, QUICK))).last.succeeded


async def test_the_size_of_a_file_is_limited(runner: Runner) -> None:
    limits = Limits(file_size_bytes=1000, cpu_s=5.0, wall_s=60.0)
    result = await run(runner, shell("exec head -c 5000 /dev/zero > big", limits), big=10_000)
    assert result.last.signal == signal.SIGXFSZ
    assert len(result.files["big"]) == 1000


async def test_open_files_are_limited(runner: Runner) -> None:
    script = "import os\ntry:\n while True: n = os.open('/', 0)\nexcept OSError: print(n)"
    assert (await run(runner, python(script, Limits(open_files=16)))).last.stdout == "15\n"


async def test_output_beyond_the_cap_is_dropped_and_said_so(runner: Runner) -> None:
    limits = Limits(output_bytes=100, cpu_s=5.0, wall_s=60.0)
    result = (await run(runner, shell("head -c 5000 /dev/zero | tr '\\0' x; echo end >&2", limits))).last
    assert (result.end, result.exit_code) == ("exited", 0)
    assert result.stdout == "x" * 100
    assert result.stderr == "end\n"
    assert result.output_cut


async def test_a_flood_of_output_is_stopped(runner: Runner) -> None:
    limits = Limits(output_bytes=1000, cpu_s=20.0, wall_s=60.0)
    result = (await run(runner, shell("exec cat /dev/zero", limits))).last
    assert (result.end, result.signal) == ("output_limit", signal.SIGKILL)
    assert len(result.stdout) == 1000


# --- nothing outlives its step


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("sleep 600 &", id="in the background"),
        pytest.param("(trap '' TERM HUP INT; sleep 600) &", id="ignoring signals"),
        pytest.param("sleep 600 > /dev/null 2>&1 < /dev/null &", id="with its output closed"),
        pytest.param("(sleep 600 & sleep 600 &) &", id="as an orphan"),
        pytest.param("setsid sleep 600 > /dev/null 2>&1 &", id="in a session of its own"),
    ],
)
async def test_a_grandchild_does_not_outlive_the_child(script: str, runner: Runner, scratch: Path) -> None:
    result = await said(runner, f"{script} echo done")
    assert (result.end, result.stdout) == ("exited", "done\n")
    assert simulators_in(scratch) == {}
    assert left_by_jobs(runner.scratch) == []


async def test_a_child_that_closed_its_output_is_still_waited_for(runner: Runner) -> None:
    result = await run(runner, shell("exec > /dev/null 2>&1; sleep 0.1; echo late > file"), file=100)
    assert result.files == {"file": b"late\n"}


async def test_the_cpu_time_of_killed_grandchildren_is_counted(runner: Runner) -> None:
    script = f"({FOR_EVER}) & ({FOR_EVER}) & wait"
    result = (await run(runner, shell(script, Limits(cpu_s=60.0, wall_s=1.0)))).last
    assert result.end == "wall_limit"
    assert result.cpu_s > 0.05  # two of them for a second, on a machine that may be busy


# --- what a child leaves for us to collect


async def test_only_regular_files_are_collected(runner: Runner) -> None:
    script = "ln -s /etc/passwd link; mkfifo pipe; mkdir folder; touch empty; ln -s nowhere dangling; chmod 0 empty"
    names = ("link", "pipe", "folder", "dangling", "absent")
    result = await runner.run(Job((shell(script),), collect=dict.fromkeys((*names, "empty"), 1000)))
    assert dict(result.files) in ({"empty": b""}, {})  # only root may read a file of mode 0


async def test_a_file_below_a_link_to_a_folder_does_not_break_the_job(runner: Runner) -> None:
    job = Job((shell("rm -r sub; echo file > sub"),), {"sub/a": b"1"}, collect={"sub/a": 10})
    assert dict((await runner.run(job)).files) == {}


async def test_a_collected_file_is_cut_one_byte_over_its_limit(runner: Runner) -> None:
    result = await run(runner, shell("head -c 1000 /dev/zero > long; head -c 10 /dev/zero > fits"), long=10, fits=10)
    assert {name: len(content) for name, content in result.files.items()} == {"long": 11, "fits": 10}


async def test_a_directory_of_a_job_goes_whatever_is_in_it(runner: Runner, scratch: Path) -> None:
    await said(runner, "mkdir -p a/b/c; ln -s /etc a/link; mkfifo a/pipe; touch 'a/-rf *'; chmod 0500 a/b")
    assert left_by_jobs(runner.scratch) == []
    assert (await said(runner, "ls /etc/passwd")).succeeded


# --- cancellation


async def cancelled_job(runner: Runner, scratch: Path, script: str, *, times: int = 1) -> None:
    """Start a job, cancel it once it runs, and come back when its task has ended."""
    task = asyncio.create_task(run(runner, shell(script, Limits(cpu_s=600.0, wall_s=600.0))))
    await started(scratch)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_cancelled_job_is_killed_and_removed_before_the_cancellation_goes_on(
    times: int, runner: Runner, scratch: Path
) -> None:
    await cancelled_job(runner, scratch, "trap '' TERM; sleep 600 & wait", times=times)
    assert simulators_in(scratch) == {}
    assert left_by_jobs(runner.scratch) == []
    assert runner.busy == 0
    assert (await said(runner, "echo usable")).stdout == "usable\n"


async def test_no_further_step_of_a_cancelled_job_runs(runner: Runner, scratch: Path, tmp_path: Path) -> None:
    mark = tmp_path / "second"
    steps = (shell("exec sleep 600", Limits(cpu_s=600.0, wall_s=600.0)), shell(f"touch {mark}"))
    task = asyncio.create_task(run(runner, *steps))
    await started(scratch)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not mark.exists()


async def test_a_job_can_be_cancelled_while_its_launcher_starts(runner: Runner, scratch: Path) -> None:
    task = asyncio.create_task(run(runner, shell("exec sleep 600", Limits(cpu_s=600.0, wall_s=600.0))))
    await asyncio.sleep(0)  # the slot is taken and has no launcher yet
    await asyncio.sleep(0)
    assert runner.busy == 1
    task.cancel()
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert simulators_in(scratch) == {}
    assert runner.busy == 0
    assert (await said(runner, "echo usable")).stdout == "usable\n"


async def test_a_job_can_be_cancelled_while_it_waits_for_its_turn(scratch: Path) -> None:
    async with Runner(children=1, scratch_root=scratch) as runner:
        first = asyncio.create_task(run(runner, shell("exec sleep 600", Limits(cpu_s=600.0, wall_s=600.0))))
        await started(scratch)
        second = asyncio.create_task(said(runner, "echo second"))
        third = asyncio.create_task(said(runner, "echo third"))
        await until(lambda: runner.waiting == 2)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert runner.waiting == 1
        first.cancel()
        assert (await third).stdout == "third\n"
        assert runner.waiting == 0
        assert runner.busy == 0


async def test_a_timeout_around_a_job_is_a_cancellation(runner: Runner, scratch: Path) -> None:
    await said(runner, ":")  # the launcher is there
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run(runner, shell("exec sleep 600", Limits(cpu_s=600.0, wall_s=600.0)))
    assert simulators_in(scratch) == {}


# --- how many at once


async def test_no_more_children_run_at_once_than_configured(runner: Runner, scratch: Path) -> None:
    long = Limits(cpu_s=600.0, wall_s=600.0)
    tasks = [asyncio.create_task(run(runner, shell("exec sleep 600", long))) for _ in range(5)]
    await started(scratch, 2)
    await until(lambda: runner.waiting == 3)
    assert runner.busy == 2
    assert len(simulators_in(scratch)) == 2
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert all(task.cancelled() for task in tasks)
    assert (runner.busy, runner.waiting) == (0, 0)


async def test_many_jobs_share_few_children(runner: Runner) -> None:
    results = await asyncio.gather(*(said(runner, f"echo {number}") for number in range(40)))
    assert [result.stdout for result in results] == [f"{number}\n" for number in range(40)]


async def test_designs_that_never_end_do_not_hold_up_the_others(runner: Runner, scratch: Path) -> None:
    endless = [asyncio.create_task(run(runner, shell(FOR_EVER, Limits(cpu_s=600.0, wall_s=600.0)))) for _ in range(3)]
    await until(lambda: runner.busy == 3)  # two have been there for a second, the third got a place of theirs
    results = await asyncio.gather(*(said(runner, f"echo {number}") for number in range(10)))
    assert [result.stdout for result in results] == [f"{number}\n" for number in range(10)]
    assert len(simulators_in(scratch)) == 3
    for task in endless:
        task.cancel()
    await asyncio.wait(endless)
    assert (runner.busy, runner.waiting) == (0, 0)


# --- launchers and servers that die


def state_of(pid: int) -> str:
    """The letter of a process's state: Z for one that is dead and not yet waited for."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def launchers_in(scratch: Path) -> list[int]:
    return [pid for pid, command in processes_in(scratch).items() if "launcher" in command]


async def test_a_launcher_killed_in_the_middle_of_a_job_is_our_fault_and_is_replaced(scratch: Path) -> None:
    async with Runner(children=1, scratch_root=scratch) as runner:
        task = asyncio.create_task(run(runner, shell("exec sleep 600", Limits(cpu_s=600.0, wall_s=600.0))))
        await started(scratch)
        (launcher,) = launchers_in(scratch)
        os.kill(launcher, signal.SIGKILL)
        with pytest.raises(EnvironmentFailed, match="went away"):
            await task
        await gone(scratch)
        assert left_by_jobs(runner.scratch) == []
        assert (await said(runner, "echo next")).stdout == "next\n"


async def test_a_launcher_killed_between_jobs_is_replaced_without_a_word(scratch: Path) -> None:
    async with Runner(children=1, scratch_root=scratch) as runner:
        await said(runner, ":")
        (launcher,) = launchers_in(scratch)
        os.kill(launcher, signal.SIGKILL)
        await until(lambda: state_of(launcher) == "Z")
        assert (await said(runner, "echo next")).stdout == "next\n"


async def test_a_launcher_that_cannot_be_started_is_our_fault_and_the_slot_stays(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/nonexistent/python")
        with pytest.raises(EnvironmentFailed):
            await said(runner, ":")
    assert runner.busy == 0
    assert (await said(runner, "echo next")).stdout == "next\n"


async def test_signals_at_the_terminal_do_not_end_a_launcher(scratch: Path) -> None:
    async with Runner(children=1, scratch_root=scratch) as runner:
        await said(runner, ":")
        (launcher,) = launchers_in(scratch)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(launcher, number)
        assert (await said(runner, "echo alive")).stdout == "alive\n"
        assert launchers_in(scratch) == [launcher]


async def test_a_child_does_not_inherit_ignored_signals(runner: Runner) -> None:
    (ignored,) = [
        int(line.split()[1], 16)
        for line in (await said(runner, "exec cat /proc/self/status")).stdout.splitlines()
        if line.startswith("SigIgn")
    ]
    assert ignored == 0


SERVER = """
import asyncio, sys
from pathlib import Path
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step

async def main():
    async with Runner(children=2, scratch_root=Path(sys.argv[1])) as runner:
        script = "trap '' TERM HUP; sleep 600 & wait"
        step = Step(("/bin/sh", "-c", script), Limits(cpu_s=600.0, wall_s=600.0))
        await asyncio.gather(*(runner.run(Job((step,), {"file": b"content"})) for _ in range(2)))

asyncio.run(main())
"""


async def test_when_the_server_is_killed_its_children_and_their_directories_go(scratch: Path) -> None:
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, str(scratch))
    await started(scratch, 4)
    server.kill()
    await server.wait()
    await until(lambda: not processes_in(scratch))
    assert {path.name for path in left_in(scratch) if path.is_file()} == {"lock"}
    async with Runner(children=1, scratch_root=scratch) as runner:
        assert [path.name for path in left_in(scratch)] == [runner.scratch.name, "lock"]


async def test_leaving_the_runner_ends_its_launchers_and_removes_its_directory(scratch: Path) -> None:
    async with Runner(children=2, scratch_root=scratch) as runner:
        await asyncio.gather(said(runner, ":"), said(runner, ":"))
        assert len(launchers_in(scratch)) == 2
        assert runner.scratch.is_dir()
    assert processes_in(scratch) == {}
    assert left_in(scratch) == []


async def test_leaving_the_runner_in_the_middle_of_a_job_ends_the_job(scratch: Path) -> None:
    async with Runner(children=1, scratch_root=scratch) as runner:
        task = asyncio.create_task(run(runner, shell("exec sleep 600", Limits(cpu_s=600.0, wall_s=600.0))))
        await started(scratch)
    with pytest.raises(EnvironmentFailed):
        await task
    assert processes_in(scratch) == {}
    assert left_in(scratch) == []


async def test_a_runner_is_used_only_after_it_was_entered(scratch: Path) -> None:
    with pytest.raises(RuntimeError, match="entered"):
        _ = Runner(children=1, scratch_root=scratch).scratch


async def test_a_scratch_folder_that_cannot_be_used_is_our_fault(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    with pytest.raises(EnvironmentFailed, match="scratch directory") as caught:
        async with Runner(children=1, scratch_root=in_the_way):
            pass
    assert caught.value.stage == "initialize"


async def test_a_scratch_directory_that_vanishes_is_our_fault(runner: Runner) -> None:
    moved = runner.scratch.with_name("elsewhere")
    runner.scratch.rename(moved)
    try:
        with pytest.raises(EnvironmentFailed, match=r"job directory|went away"):
            await said(runner, ":")
    finally:
        moved.rename(runner.scratch)
    assert (await said(runner, "echo back")).stdout == "back\n"


async def test_a_launcher_is_started_only_when_all_others_are_busy(runner: Runner, scratch: Path) -> None:
    for _ in range(4):
        await said(runner, ":")
    assert len(launchers_in(scratch)) == 1
    await asyncio.gather(*(said(runner, ":") for _ in range(4)))
    assert len(launchers_in(scratch)) == 2
