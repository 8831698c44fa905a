"""What a child process can reach, tried by a native program in the simulator's place.

The program is perl, which every Debian has and which can make any system call: whoever takes over the simulator can do
no more than it.
"""

import errno
import os
import platform
import shutil
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.icarus.launchers import WAYS, start_children
from verilog_taskapp.icarus import sandbox
from verilog_taskapp.icarus.confinement import Confinement
from verilog_taskapp.icarus.faults import cause
from verilog_taskapp.icarus.launcher import OUT_PREFIX
from verilog_taskapp.icarus.location import sandbox_paths
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Stage, Step, StepResult
from verilog_taskapp.icarus.sandbox import seccomp_program, unavailable

PERL = shutil.which("perl") or "/usr/bin/perl"
RESULT = f"{OUT_PREFIX}result"

pytestmark = [
    pytest.mark.skipif(bool(unavailable()), reason=f"no sandbox here: {unavailable()}"),
    pytest.mark.skipif(not os.path.exists(PERL), reason="the native program of these tests is perl, which is not here"),
]

STAGES: tuple[Stage, ...] = ("compile", "pass", "run")
OPEN_FOR_READING = 'open(my $f, "<", "{path}") or exit($!+0); exit(0);'
OPEN_FOR_WRITING = 'open(my $f, ">", "{path}") or exit($!+0); exit(0);'


@pytest.fixture(params=WAYS)
async def confined(
    request: pytest.FixtureRequest, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Runner]:
    """A runner whose children are confined to the tool chain, to perl and to their slot."""
    start_children(request.param, monkeypatch)
    paths = (*sandbox_paths("iverilog"), PERL, os.path.realpath(PERL))
    async with Runner(children=1, scratch_root=scratch, sandbox=Confinement(paths)) as runner:
        yield runner


async def perl(runner: Runner, program: str, stage: Stage, **limits: float) -> StepResult:
    step = Step((PERL, "-e", program), Limits(**{"cpu_s": 2.0, "wall_s": 10.0, **limits}), stage=stage)  # type: ignore[arg-type]
    job = Job(steps=(step,), files={"TopModule.v": b"module TopModule; endmodule\n"}, collect={RESULT: 100})
    return (await runner.run(job)).last


async def refusal(runner: Runner, program: str, stage: Stage) -> int | None:
    """The errno that the program exits with; 0 means that it succeeded."""
    return (await perl(runner, program, stage)).exit_code


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/etc/hostname",
        "/proc/self/mem",
        "/proc/self/environ",
        "/proc/self/maps",
        "/proc/1/environ",
        "/proc/cpuinfo",
        "/sys/kernel/uevent_seqnum",
        "/dev/urandom",
        __file__,
    ],
)
async def test_no_file_of_the_host_can_be_read(confined: Runner, stage: Stage, path: str) -> None:
    if not os.path.exists(path):
        pytest.skip(f"{path} is not here")
    assert await refusal(confined, OPEN_FOR_READING.format(path=path), stage) == errno.EACCES


@pytest.mark.parametrize("stage", STAGES)
async def test_the_service_s_own_files_and_other_slots_stay_closed(
    confined: Runner, stage: Stage, tmp_path: Path
) -> None:
    secret = tmp_path / "golden"
    secret.write_text("the expected outputs")
    assert await refusal(confined, OPEN_FOR_READING.format(path=secret), stage) == errno.EACCES
    other = confined.scratch / "slot-other" / "job"
    other.mkdir(parents=True)
    (other / "TopModule.v").write_text("another episode's design")
    assert await refusal(confined, OPEN_FOR_READING.format(path=other / "TopModule.v"), stage) == errno.EACCES
    assert await refusal(confined, f'opendir(my $d, "{confined.scratch}") or exit($!+0); exit(0);', stage) == (
        errno.EACCES
    )


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", "/var/tmp", "/"])
async def test_nothing_can_be_written_outside_of_the_slot(confined: Runner, stage: Stage, folder: str) -> None:
    path = f"{folder}/verilog-taskapp-test-{os.getpid()}"
    assert await refusal(confined, OPEN_FOR_WRITING.format(path=path), stage) == errno.EACCES
    assert not os.path.exists(path)


async def test_the_run_stage_writes_the_result_file_and_nothing_else(confined: Runner) -> None:
    assert await refusal(confined, OPEN_FOR_WRITING.format(path=RESULT), "run") == 0
    for path in ("new", "TopModule.v", f"{OUT_PREFIX}another", "/dev/full"):
        assert await refusal(confined, OPEN_FOR_WRITING.format(path=path), "run") == errno.EACCES
    assert await refusal(confined, f'unlink("{RESULT}") or exit($!+0); exit(0);', "run") == errno.EACCES
    assert await refusal(confined, 'mkdir("folder") or exit($!+0); exit(0);', "run") == errno.EACCES


async def test_the_compile_stage_writes_in_its_own_directory(confined: Runner) -> None:
    assert await refusal(confined, OPEN_FOR_WRITING.format(path="new"), "compile") == 0
    assert await refusal(confined, OPEN_FOR_READING.format(path="TopModule.v"), "compile") == 0


@pytest.mark.parametrize("stage", STAGES)
async def test_no_link_leads_out(confined: Runner, stage: Stage) -> None:
    assert await refusal(confined, 'symlink("/etc/passwd", "link") or exit($!+0); exit(0);', stage) == errno.EACCES
    assert await refusal(confined, 'link("/etc/passwd", "link") or exit($!+0); exit(0);', stage) in (
        errno.EACCES,
        errno.EXDEV,
        errno.EPERM,  # the kernel's own rule for files of others (fs.protected_hardlinks)
    )


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16])
async def test_there_is_no_network_and_no_socket_of_any_kind(confined: Runner, stage: Stage, family: int) -> None:
    program = f"use Socket; socket(my $s, {int(family)}, SOCK_STREAM, 0) or exit($!+0); exit(0);"
    assert await refusal(confined, program, stage) == errno.EPERM


CALLS = {
    "ptrace": {"x86_64": 101, "aarch64": 117},
    "setsid": {"x86_64": 112, "aarch64": 157},
    "setpgid": {"x86_64": 109, "aarch64": 154},
    "mount": {"x86_64": 165, "aarch64": 40},
    "unshare": {"x86_64": 272, "aarch64": 97},
    "bpf": {"x86_64": 321, "aarch64": 280},
    "io_uring_setup": {"x86_64": 425, "aarch64": 425},
    "keyctl": {"x86_64": 250, "aarch64": 219},
    "process_vm_readv": {"x86_64": 310, "aarch64": 270},
    "memfd_create": {"x86_64": 319, "aarch64": 279},
    "pidfd_open": {"x86_64": 434, "aarch64": 434},
    "setxattr": {"x86_64": 188, "aarch64": 5},
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", sorted(CALLS))
async def test_system_calls_that_no_simulator_needs_are_refused(confined: Runner, stage: Stage, name: str) -> None:
    number = CALLS[name][platform.machine()]
    program = f"my $r = syscall({number}, 0, 0, 0, 0, 0); exit($r < 0 ? $!+0 : 0);"
    assert await refusal(confined, program, stage) == errno.EPERM


@pytest.mark.parametrize("stage", STAGES)
async def test_nobody_else_can_be_signalled(confined: Runner, stage: Stage) -> None:
    assert await refusal(confined, "kill(0, getppid()) or exit($!+0); exit(0);", stage) == errno.EPERM
    assert await refusal(confined, f"kill(9, {os.getpid()}) or exit($!+0); exit(0);", stage) == errno.EPERM


@pytest.mark.parametrize("stage", STAGES)
async def test_attributes_of_files_cannot_be_changed(confined: Runner, stage: Stage, tmp_path: Path) -> None:
    target = tmp_path / "private"
    target.write_text("")
    target.chmod(0o600)
    assert await refusal(confined, f'chmod(0777, "{target}") or exit($!+0); exit(0);', stage) == errno.EPERM
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("stage", ["pass", "run"])
async def test_neither_a_pass_nor_a_run_starts_a_process(confined: Runner, stage: Stage) -> None:
    assert await refusal(confined, "defined(fork()) or exit($!+0); exit(0);", stage) == errno.EPERM
    assert await refusal(confined, 'exec("/bin/true") or exit($!+0);', stage) == errno.EACCES


async def test_limits_cannot_be_raised(confined: Runner) -> None:
    number = {"x86_64": 160, "aarch64": 164}[platform.machine()]
    program = f'my $l = pack("QQ", 1000, 1000); exit(syscall({number}, 0, $l) < 0 ? $!+0 : 0);'
    assert await refusal(confined, program, "run") == errno.EPERM


async def test_a_child_that_aborts_still_dies_by_that_signal(confined: Runner) -> None:
    result = await perl(confined, "use POSIX; POSIX::abort();", "run")
    assert result.signal == 6


async def test_limits_hold_inside_the_sandbox(confined: Runner) -> None:
    spinning = await perl(confined, "1 while 1", "run", cpu_s=1.0)
    assert spinning.signal == 24
    hungry = await perl(confined, 'my $x = "x" x (400 * 1024 * 1024); exit(0);', "run", address_space_bytes=2**27)
    assert hungry.exit_code != 0


async def test_the_environment_holds_no_key(confined: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk_not_for_children")
    shown = await perl(confined, 'print join("\\n", map { "$_=$ENV{$_}" } sort keys %ENV);', "run")
    assert "gsk" not in shown.stdout
    assert {line.partition("=")[0] for line in shown.stdout.splitlines()} <= {"HOME", "LC_ALL", "PATH", "TMPDIR", "PWD"}


BWRAP = shutil.which("bwrap")


@pytest.fixture
async def wrapped(scratch: Path) -> AsyncIterator[Runner]:
    """A runner whose children live in namespaces of their own."""
    paths = (*sandbox_paths("iverilog"), PERL, os.path.realpath(PERL))
    async with Runner(children=1, scratch_root=scratch, sandbox=Confinement(paths, BWRAP)) as runner:
        if (await perl(runner, "exit(0)", "run")).exit_code != 0:
            pytest.skip("bubblewrap cannot make namespaces here")
        yield runner


@pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")
async def test_in_bubblewrap_nothing_of_the_host_exists(wrapped: Runner) -> None:
    for stage in STAGES:
        for path in ("/etc/passwd", "/proc/self/mem", "/sys", __file__):
            assert await refusal(wrapped, OPEN_FOR_READING.format(path=path), stage) == errno.ENOENT
        assert await refusal(wrapped, f"kill(0, {os.getpid()}) or exit($!+0); exit(0);", stage) == errno.EPERM
        program = f"use Socket; socket(my $s, {int(socket.AF_INET)}, SOCK_STREAM, 0) or exit($!+0); exit(0);"
        assert await refusal(wrapped, program, stage) == errno.EPERM


@pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")
async def test_in_bubblewrap_the_run_stage_writes_the_result_file_and_nothing_that_lasts(wrapped: Runner) -> None:
    assert await refusal(wrapped, OPEN_FOR_WRITING.format(path=RESULT), "run") == 0
    for path in ("new", "TopModule.v", f"{OUT_PREFIX}another"):
        assert await refusal(wrapped, OPEN_FOR_WRITING.format(path=path), "run") == errno.EROFS
    assert await refusal(wrapped, OPEN_FOR_WRITING.format(path="new"), "compile") == 0


@pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")
async def test_in_bubblewrap_a_child_that_spins_is_stopped_with_all_its_processes(wrapped: Runner) -> None:
    result = await perl(wrapped, "1 while 1", "run", cpu_s=1.0)
    assert cause(result, Limits(cpu_s=1.0)) == "time_limit"
    stalled = await perl(wrapped, "fork(); sleep(100)", "compile", wall_s=1.0)
    assert stalled.end == "wall_limit"


def answered(program: bytes, arch: str, number: int, arguments: Sequence[int] = ()) -> tuple[int, int]:
    """What a filter says to a system call, and after how many instructions: the kernel's rules for BPF, by hand."""
    words = [*arguments, *(0,) * (6 - len(arguments))]
    data = struct.pack(
        "IIQ6Q", number, {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "i386": 0x40000003}[arch], 0, *words
    )
    place = accumulator = carried_out = 0
    while True:
        code, yes, no, value = struct.unpack_from("HBBI", program, 8 * place)
        place, carried_out = place + 1, carried_out + 1
        if code == 0x06:
            return value, carried_out
        if code == 0x20:
            (accumulator,) = struct.unpack_from("I", data, value)
        elif code == 0x05:
            place += value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            place += yes if holds else no


ADMITTED, REFUSED, UNKNOWN_CALL, KILLED = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_filter_refuses_what_is_named_and_admits_every_other_call(arch: str, stage: Stage) -> None:
    program = seccomp_program(arch, stage, 1234)
    numbers = {**sandbox._NUMBERS[arch], **sandbox._SAME_EVERYWHERE}
    refused = {numbers[name] for name in sandbox._REFUSED if name in numbers}
    if stage != "compile":
        refused |= {numbers[name] for name in ("fork", "vfork") if name in numbers}
    by_arguments = {numbers["clone"], numbers["tgkill"], numbers["prlimit64"]}
    assert len(program) // 8 < 4096
    for number in range(600):
        if number in by_arguments:
            continue
        expected = UNKNOWN_CALL if number == numbers["clone3"] else REFUSED if number in refused else ADMITTED
        assert answered(program, arch, number)[0] == expected, number
    assert {answered(program, arch, 0x40000000 + number)[0] for number in (0, 41, 600, 0x3FFFFFFF)} == {REFUSED}
    assert answered(program, "i386", 1)[0] == KILLED


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_filter_looks_at_the_arguments_of_three_calls(arch: str, stage: Stage) -> None:
    program = seccomp_program(arch, stage, 1234)
    numbers = sandbox._NUMBERS[arch]

    def says(name: str, *arguments: int) -> int:
        return answered(program, arch, numbers[name], arguments)[0]

    assert (says("tgkill", 1234), says("tgkill", 1235)) == (ADMITTED, REFUSED)
    assert says("prlimit64", 0, 7, 0) == ADMITTED
    assert {says("prlimit64", 0, 7, 0x7F00), says("prlimit64", 0, 7, 1 << 32)} == {REFUSED}
    assert says("clone", 0x3D0F00) == ADMITTED, "a thread"
    assert says("clone", 17) == (ADMITTED if stage == "compile" else REFUSED), "a process"
    assert {says("clone", 17 | flag) for flag in (0x20000, 0x10000000, 0x40000000)} == {REFUSED}, "a namespace"
    assert says("clone", 0x3D0F00 | 0x20000) == REFUSED


@pytest.mark.parametrize("stage", STAGES)
def test_the_filter_answers_in_a_few_instructions_because_each_child_has_it_run_for_every_call(stage: Stage) -> None:
    program = seccomp_program("x86_64", stage, 1234)
    assert max(answered(program, "x86_64", number)[1] for number in range(600)) <= 16
