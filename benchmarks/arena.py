"""Where benchmarks run: a temporary directory in memory, and the processes that are started in it.

Everything ends with the `arena` block, however it is left: processes are told to stop, then killed with what they
started, and the directory is removed.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.accounting import descendants
from benchmarks.load import KEY
from verilog_taskapp.icarus.scratch import default_root
from verilog_taskapp.settings import Settings, load_settings

READY_S = 60.0
"""A process that is not ready by then has failed."""
STOP_S = 10.0
POLL_S = 0.002
SAID_LAST_CHARS = 1000


class ProcessFailed(Exception):
    """A process of the benchmark did not start, or ended too early; the message ends with what it said last."""


@dataclass(frozen=True)
class Server:
    """A running service."""

    pid: int
    port: int
    ready_s: float
    """From the start of the process to the first answer that it is ready."""


@dataclass(frozen=True)
class Double:
    """A running model double."""

    pid: int
    url: str


@dataclass
class Arena:
    """The directory, and what runs in it."""

    folder: Path
    cache_dir: Path
    dataset: str
    _count: int = field(default=0, repr=False)

    def fresh(self, name: str) -> Path:
        """A new directory."""
        self._count += 1
        path = self.folder / f"{name}-{self._count}"
        path.mkdir()
        return path

    def settings(self, **changes: object) -> Settings:
        """Settings for work in this process, away from the user's own."""
        given: dict[str, object] = {
            "dataset": self.dataset,
            "cache_dir": self.cache_dir,
            "scratch_dir": self.folder / "scratch",
            "verdict_cache": "off",
        }
        return load_settings(self.folder / "empty.env", **given | changes)

    @contextmanager
    def server(self, **variables: str) -> Iterator[Server]:
        """``verilog-taskapp serve`` in a process of its own, with `variables` in its environment."""
        folder = self.fresh("server")
        given = {
            "ENVIRONMENT_API_KEY": KEY,
            "VERILOG_DATASET": self.dataset,
            "VERILOG_CACHE_DIR": str(self.cache_dir),
            "VERILOG_SCRATCH_DIR": str(self.folder / "scratch"),
            "VERILOG_DRAIN_S": "1",
            **variables,
        }
        started = time.perf_counter()
        with process([sys.executable, "-m", "verilog_taskapp", "serve", "--port", "0"], folder, given) as running:
            url = running.said("starting on http://").rstrip()
            port = int(url.rpartition(":")[2])
            running.until(lambda: _is_ready(port), "the service is ready")
            yield Server(running.pid, port, time.perf_counter() - started)

    @contextmanager
    def double(self, table: Mapping[str, Mapping[str, str]], think_s: float = 0.0) -> Iterator[Double]:
        """The model double in a process of its own; `table` is what it answers from."""
        folder = self.fresh("double")
        (folder / "table.json").write_text(json.dumps(table))
        argv = [sys.executable, "-m", "benchmarks.double", str(folder / "table.json"), "--think-s", str(think_s)]
        with process(argv, folder, {}) as running:
            port = int(running.said("port ").split()[-1])
            yield Double(running.pid, f"http://127.0.0.1:{port}/v1/chat/completions")


@contextmanager
def arena(dataset: str, kept_cache: Path | None = None, root: Path | None = None) -> Iterator[Arena]:
    """Open an arena below `root` (default: in memory); golden traces stay in `kept_cache` if there is one."""
    with tempfile.TemporaryDirectory(prefix="verilog-benchmark-", dir=root or default_root()) as name:
        folder = Path(name)
        (folder / "empty.env").touch()
        yield Arena(folder, kept_cache.resolve() if kept_cache else folder / "cache", _absolute(dataset))


class Running:
    """A process while it runs; what it says goes to a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.pid = process.pid
        self._process = process
        self._log = log

    def said(self, text: str, within_s: float = READY_S) -> str:
        """The rest of the first line that holds `text`, as soon as there is one. Raises `ProcessFailed`."""

        def rest() -> str:
            _, found, after = self._log.read_text(errors="replace").partition(text)
            return after.partition("\n")[0] if found and "\n" in after else ""

        self.until(lambda: bool(rest()), f"it says {text!r}", within_s)
        return rest()

    def until(self, condition: Callable[[], bool], what: str, within_s: float = READY_S) -> None:
        """Return once `condition` holds. Raises `ProcessFailed`."""
        deadline = time.monotonic() + within_s
        while True:
            ended = self._process.poll() is not None
            if condition():
                return
            if ended or time.monotonic() > deadline:
                why = "the process ended" if ended else f"not within {within_s:.0f} s"
                raise ProcessFailed(f"{what}: {why}\n{self._log.read_text(errors='replace')[-SAID_LAST_CHARS:]}")
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Ask the process to stop, then kill it and whatever it started; returns when all of them are gone."""
        below = descendants(self.pid)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        deadline = time.monotonic() + STOP_S
        while any(_exists(pid) for pid in below):
            for pid in below if time.monotonic() > deadline else ():
                _kill(pid)
            time.sleep(POLL_S)


@contextmanager
def process(argv: list[str], folder: Path, variables: Mapping[str, str]) -> Iterator[Running]:
    """Run a program in `folder`, with an environment that holds nothing of the user's settings."""
    environment = {name: value for name, value in os.environ.items() if not _is_setting(name)}
    root = str(Path(__file__).parents[1])
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))), **variables}
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C is ours: this block then ends the process
        )
    running = Running(started, folder / "log")
    try:
        yield running
    finally:
        running.stop()


def _is_setting(name: str) -> bool:
    return name.upper().startswith(("VERILOG_", "TASKAPP_")) or name.upper().endswith(("_API_KEY", "_KEY_ALIASES"))


def fetched(port: int, path: str) -> dict[str, Any]:
    """The JSON object that a GET of the service answers with. Raises OSError."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"X-API-Key": KEY})
    with urllib.request.urlopen(asked, timeout=READY_S) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
        return found


def _is_ready(port: int) -> bool:
    try:
        return "ready" in fetched(port, "/ready")
    except OSError:  # nobody listens yet, or it answers 503
        return False


def _exists(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be reaped by whoever inherited it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _absolute(dataset: str) -> str:
    """The data set's name as it means the same in every folder."""
    kind, colon, path = dataset.partition(":")
    return f"{kind}:{Path(path).resolve()}" if colon and kind in ("dir", "jsonl", "parquet") else dataset
