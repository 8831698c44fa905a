"""Inside `scripts/test-unprivileged`: nothing of the sandbox may need a privilege that a default container lacks.

Everywhere else these tests are skipped.
"""

import ctypes
import errno
import os
import platform
import re
from pathlib import Path

import pytest

from tests.icarus import made
from tests.unprivileged.container_filter import ARCHES, CLONE, REFUSED, profile
from verilog_taskapp.icarus.confinement import Confinement, confinement
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.runner import Job, Limits, Runner, Step, StepResult
from verilog_taskapp.icarus.sandbox import unavailable
from verilog_taskapp.icarus.toolchain import Toolchain

inside = pytest.mark.skipif(
    os.environ.get("UNPRIVILEGED_TESTS") != "1", reason="runs inside scripts/test-unprivileged only"
)

READS = r"""
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  integer fd, code;
  reg [8*64:1] line;
  initial begin
    fd = $fopen("FILE", "r");
    $display("opened %0d", fd != 0);
    if (fd != 0) begin code = $fgets(line, fd); $display("read %0s", line); end
    $finish;
  end
endmodule
"""
WRITES = r"""
module TopModule(input clk, input [7:0] d, output reg [7:0] q);
  integer fd;
  initial begin fd = $fopen("FILE", "w"); $display("opened %0d", fd != 0); $finish; end
endmodule
"""


def status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def simulated(tools: Toolchain, scratch: Path, design: str, sandbox: Confinement | None) -> StepResult:
    """Compile and run a design by itself."""
    steps = (
        Step(tools.compile_argv(("d.sv",), "d.vvp", roots=("TopModule",)), Limits(), "d.vvp", "compile"),
        Step(tools.run_argv("d.vvp"), Limits()),
    )
    async with Runner(children=1, scratch_root=scratch, sandbox=sandbox) as runner:
        return (await runner.run(Job(steps, {"d.sv": design.encode()}))).last


@inside
def test_the_tests_run_as_an_ordinary_user_under_a_filter() -> None:
    assert os.getuid() != 0
    assert os.getgroups() == []
    found = status()
    assert found["Seccomp"] == "2"
    assert found["NoNewPrivs"] == "1"
    assert int(found["CapEff"], 16) == 0


@inside
@pytest.mark.parametrize("name", ["mount", "umount2", "unshare", "setns", "pivot_root", "bpf", "keyctl", "userfaultfd"])
def test_what_a_container_refuses_is_refused(name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    number = REFUSED[name][list(ARCHES).index(platform.machine())]
    assert libc.syscall(number, 0, 0, 0, 0, 0) == -1
    assert ctypes.get_errno() == errno.EPERM


@inside
def test_no_namespace_can_be_made_and_clone3_does_not_exist() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (0x10000000, 0x20000000, 0x40000000, 0x02000000):
        assert libc.syscall(CLONE[list(ARCHES).index(platform.machine())], flags, 0, 0, 0, 0) == -1
        assert ctypes.get_errno() == errno.EPERM
    assert libc.syscall(435, 0, 0) == -1
    assert ctypes.get_errno() == errno.ENOSYS


@inside
def test_the_default_sandbox_is_there_all_the_same(tools: Toolchain) -> None:
    assert unavailable() == ""
    assert confinement("required", str(tools.iverilog)) is not None


@inside
async def test_a_design_reads_no_file_of_the_host_that_its_user_could_read(tools: Toolchain, scratch: Path) -> None:
    boxed = confinement("required", str(tools.iverilog))
    for path in ("/etc/passwd", "/proc/self/maps", __file__):
        design = READS.replace("FILE", path)
        free = await simulated(tools, scratch, design, None)
        assert "opened 1" in free.stdout, f"{path} proves nothing: it cannot be read without the sandbox either"
        confined = await simulated(tools, scratch, design, boxed)
        assert "opened 0" in confined.stdout
        assert "read" not in confined.stdout


@inside
async def test_a_design_writes_no_file_that_its_user_could_write(
    tools: Toolchain, scratch: Path, tmp_path: Path
) -> None:
    target = tmp_path / "outside"
    design = WRITES.replace("FILE", str(target))
    confined = await simulated(tools, scratch, design, confinement("required", str(tools.iverilog)))
    assert "opened 0" in confined.stdout
    assert not target.exists()
    await simulated(tools, scratch, design, None)
    assert target.exists()


@inside
async def test_the_compiler_includes_no_file_of_the_host(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    design = '`include "/etc/passwd"\n' + made.as_design(made.FLIP_FLOP)
    compilation = await judge.compile(prepared, *made.one_file(design))
    assert "/etc/passwd not found" in compilation.messages(1000)
    honest = await judge.compile(prepared, *made.one_file(made.as_design(made.FLIP_FLOP)))
    assert (await judge.final(prepared, honest)).passed


@inside
async def test_bubblewrap_would_not_work_here(tools: Toolchain, scratch: Path) -> None:
    bwrap = Path("/usr/bin/bwrap")
    if not bwrap.exists():
        pytest.skip("bubblewrap is not installed")
    async with Runner(
        children=1, scratch_root=scratch, sandbox=Confinement(confined_paths(tools), str(bwrap))
    ) as runner:
        tried = (await runner.run(Job((Step((str(tools.vvp), "-V"), Limits()),)))).last
    assert tried.exit_code != 0
    assert re.search(r"namespace|not permitted", tried.stderr)


def confined_paths(tools: Toolchain) -> tuple[str, ...]:
    found = confinement("required", str(tools.iverilog))
    assert found is not None
    return found.paths


@pytest.mark.parametrize("arch", sorted(ARCHES))
def test_the_jumps_of_the_filter_stay_inside_of_it(arch: str) -> None:
    program = profile(arch)
    count = len(program) // 8
    for index in range(count):
        code, yes, no = program[index * 8], program[index * 8 + 2], program[index * 8 + 3]
        if code & 0x07 == 0x05:
            assert index + 1 + max(yes, no) < count
    assert program[-8:] == b"\x06\x00\x00\x00\x00\x00\xff\x7f"
