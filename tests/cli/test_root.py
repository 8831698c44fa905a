"""The command as a whole: what it says of itself, and how little it imports for that."""

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import Cli, Start
from verilog_taskapp import __version__
from verilog_taskapp.cli.root import app

COMMANDS = (
    "serve", "demo", "rollout", "eval", "regrade", "compare", "export", "verify", "check", "doctor", "problems",
)  # fmt: skip
HEAVY = ("fastapi", "datasets", "uvicorn", "httpx", "pydantic", "verilog_taskapp.app", "verilog_taskapp.icarus.judge")


def test_version(cli: Cli) -> None:
    assert cli("--version").stdout == f"verilog-taskapp {__version__}\n"


def test_help_lists_every_command_and_the_exit_statuses(cli: Cli) -> None:
    told = cli("--help").stdout
    assert all(command in told for command in COMMANDS)
    assert "Exit status" in told
    named = {one.name for one in app.registered_commands} | {one.name for one in app.registered_groups}
    assert named == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(cli: Cli, command: str) -> None:
    outcome = cli(command, "-h")
    assert outcome.status == 0
    assert "Usage:" in outcome.stdout


@pytest.mark.parametrize(
    "arguments", [["nosuchcommand"], ["serve", "--port", "x"], ["verify", "a.v"], ["rollout", "x"]]
)
def test_wrong_usage_is_status_2(cli: Cli, arguments: list[str]) -> None:
    outcome = cli(*arguments)
    assert outcome.status == 2
    assert outcome.stdout == ""


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import contextlib, io, json, sys\n"
        "sys.argv = ['verilog-taskapp', '--help']\n"
        "from verilog_taskapp.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert "typer" in loaded
    assert not set(HEAVY) & set(loaded)


def test_the_package_runs_as_a_module(start: Start) -> None:
    outcome = start("--version").end()
    assert (outcome.status, outcome.stdout) == (0, f"verilog-taskapp {__version__}\n")
