"""The commands in this process or in one of their own, away from the developer's settings."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.icarus import made
from tests.support import DEADLINE_S, forget_settings
from verilog_taskapp.cli.root import app


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


Cli = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, golden_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory, no settings but the folders, and no colours."""
    forget_settings(monkeypatch)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("VERILOG_CACHE_DIR", str(golden_cache))
    monkeypatch.setenv("VERILOG_SCRATCH_DIR", str(tmp_path / "scratch"))
    monkeypatch.setenv("VERILOG_INFERENCE_RETRIES", "0")
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cli() -> Cli:
    """Run a command in this process."""

    def invoke(*arguments: str) -> Outcome:
        result = CliRunner().invoke(app, list(arguments))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return invoke


@dataclass
class Started:
    """A command in a process of its own."""

    process: subprocess.Popen[str]
    read: list[str] = field(default_factory=list)
    """Lines of stderr that were read so far."""

    def line(self, text: str) -> str:
        """The next line of stderr that holds `text`. Fails when the process ends before."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.read.append(line)
            if text in line:
                return line
        raise AssertionError("".join(self.read))

    def stop(self, number: signal.Signals) -> Outcome:
        """Send a signal and wait for the end."""
        self.process.send_signal(number)
        return self.end()

    def end(self) -> Outcome:
        """Wait for the end."""
        stdout, stderr = self.process.communicate(timeout=DEADLINE_S)
        return Outcome(self.process.returncode, stdout, "".join(self.read) + stderr)


Start = Callable[..., Started]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a command in a process of its own; it is killed when the test ends before it does."""
    processes: list[subprocess.Popen[str]] = []

    def popen(*arguments: str, module: str = "verilog_taskapp", env: Mapping[str, str] | None = None) -> Started:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        processes.append(process)
        return Started(process)

    yield popen
    for process in processes:
        with process:
            process.kill()


@pytest.fixture(scope="session")
def problem_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of five: `gates` and `counter` are golden, `closed_loop` classic, `broken` unusable, `torn` skipped."""
    folder = tmp_path_factory.mktemp("problems")
    texts = {
        "gates": (made.GATES, made.GATES_BENCH.testbench),
        "counter": (made.COUNTER, made.COUNTER_BENCH.testbench),
        "closed_loop": (made.HANDSHAKE, made.CLOSED_LOOP_BENCH.testbench),
        "broken": (made.GATES.replace("both", "all"), made.GATES_BENCH.testbench),
        "torn": (made.GATES, "module tb; endmodule\n"),
    }
    for name, (reference, testbench) in texts.items():
        (folder / f"{name}_prompt.txt").write_text(f"Write TopModule as the problem {name} says.\n")
        (folder / f"{name}_ref.sv").write_text(reference)
        (folder / f"{name}_test.sv").write_text(testbench)
    return folder


@pytest.fixture
def source(problem_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """That folder as the configured problem set."""
    text = f"dir:{problem_folder}"
    monkeypatch.setenv("VERILOG_DATASET", text)
    return text
