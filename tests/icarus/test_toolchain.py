"""Finding the tools, asking for their version, and how they are called."""

from pathlib import Path

import pytest

from tests.icarus.fakes import fake_tools, script
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.location import locate, sandbox_paths
from verilog_taskapp.icarus.runner import Runner
from verilog_taskapp.icarus.toolchain import Toolchain, find, self_test

TOOLS = Toolchain(Path("/x/iverilog"), Path("/x/vvp"), 12, 0)


async def test_the_installed_tools_are_found_with_their_version(runner: Runner, tools: Toolchain) -> None:
    found = await find(str(tools.iverilog), runner)
    assert found == tools
    assert found.supported
    assert found.iverilog.is_absolute()
    assert (found.vvp.name, found.vvp.parent) == ("vvp", found.iverilog.parent)


async def test_no_iverilog_is_an_error_that_says_what_to_install(runner: Runner) -> None:
    with pytest.raises(EnvironmentFailed, match="apt-get install iverilog") as caught:
        await find("no-such-iverilog", runner)
    assert (caught.value.stage, caught.value.retryable) == ("initialize", False)


async def test_an_error_about_a_path_does_not_name_it(runner: Runner, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailed) as caught:
        await find(str(tmp_path / "iverilog"), runner)
    assert str(tmp_path) not in caught.value.message


def test_an_iverilog_without_its_vvp_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailed, match="vvp was not found beside iverilog"):
        locate(str(script(tmp_path / "iverilog", ":")))


async def test_a_program_that_is_not_icarus_is_an_error(runner: Runner, tmp_path: Path) -> None:
    script(tmp_path / "vvp", ":")
    with pytest.raises(EnvironmentFailed, match="did not print a version"):
        await find(str(script(tmp_path / "iverilog", "echo hello")), runner)


@pytest.mark.parametrize(("line", "version", "supported"), [
    ("Icarus Verilog version 11.0 (stable) ()", "11.0", True),
    ("Icarus Verilog version 12.0 (stable) ()", "12.0", True),
    ("Icarus Verilog version 10.3 (stable) ()", "10.3", False),
    ("Icarus Verilog version 14.1 (devel) (s20260101-1)", "14.1", False),
])  # fmt: skip
async def test_the_version_is_read(line: str, version: str, supported: bool, runner: Runner, tmp_path: Path) -> None:
    script(tmp_path / "vvp", ":")
    found = await find(str(script(tmp_path / "iverilog", f"echo '{line}'")), runner)
    assert (found.version, found.supported) == (version, supported)


def test_the_command_line_of_the_compiler_holds_only_what_the_server_chose() -> None:
    argv = TOOLS.compile_argv(("a.sv", "b.v"), "out", roots=("tb", "monitor"))
    assert argv[0] == "/x/iverilog"
    assert argv[1:5] == ("-g2012", "-Wall", "-Winfloop", "-Wno-timescale")
    assert argv[5:] == ("-s", "tb", "-s", "monitor", "-I", ".", "-o", "out", "a.sv", "b.v")


@pytest.mark.parametrize(
    ("accepts", "legacy", "expected"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_the_flag_for_old_benches_is_used_where_it_is_known(accepts: bool, legacy: bool, expected: bool) -> None:
    tools = Toolchain(Path("/x/iverilog"), Path("/x/vvp"), 13, 0, accepts)
    argv = tools.compile_argv(("a.sv",), "out", legacy_bench=legacy)
    assert ("-gno-strict-declaration" in argv) == expected


def test_the_simulator_is_never_interactive_and_dumps_nothing() -> None:
    assert TOOLS.run_argv("program") == ("/x/vvp", "-n", "program", "-none")


def test_the_sandbox_lets_the_tools_and_nothing_of_the_home_be_read(tools: Toolchain) -> None:
    paths = sandbox_paths(str(tools.iverilog))
    assert {str(tools.iverilog), str(tools.vvp), "/bin/sh"} <= set(paths)
    assert not {"/", "/etc", "/usr", "/home", "/root", "/tmp", "/proc", "/dev"} & set(paths)


async def test_the_self_test_passes_with_working_tools_only(runner: Runner, tools: Toolchain, tmp_path: Path) -> None:
    await self_test(tools, runner)
    for body in ("exit 0", "exit 1", "kill -SEGV $$"):
        with pytest.raises(EnvironmentFailed):
            await self_test(fake_tools(tmp_path / "fake", tools, vvp=body), runner)
        with pytest.raises(EnvironmentFailed):
            await self_test(fake_tools(tmp_path / "fake", tools, iverilog=body), runner)
