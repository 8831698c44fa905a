"""The one way in which the service starts child processes.

A `Runner` keeps a fixed number of launcher processes (see `verilog_taskapp.icarus.launcher`); each runs one `Job` at a
time, so their number is also the limit on concurrent simulators. The event loop only writes and reads a socket.
"""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import verilog_taskapp
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus import launcher
from verilog_taskapp.icarus.confinement import Confinement
from verilog_taskapp.icarus.scratch import Scratch

MIB = 1024**2
LAUNCHER = (
    f"import sys; sys.path.append({str(Path(verilog_taskapp.__file__).parents[1])!r}); "
    f"from {launcher.__name__} import main; main()"
)
"""What a launcher's Python runs: without site-packages, but with this package."""
Stage = Literal["compile", "pass", "run"]
End = Literal["exited", "wall_limit", "output_limit", "cancelled"]


@dataclass(frozen=True)
class Limits:
    """What one child process may use."""

    cpu_s: float = 10.0
    """CPU seconds, rounded up to whole seconds by the kernel's limit."""
    wall_s: float = 30.0
    """Wall-clock backstop, far above the CPU limit: a busy machine must not fail a design."""
    address_space_bytes: int = 512 * MIB
    file_size_bytes: int = 64 * MIB
    open_files: int = 64
    output_bytes: int = 64 * 1024
    """Kept of stdout and of stderr each; the rest is read and dropped."""


@dataclass(frozen=True)
class Step:
    """One child process of a job; ``argv[0]`` is an absolute path, everything else is chosen by the server."""

    argv: tuple[str, ...]
    limits: Limits
    required: str | None = None
    """A file that must exist afterwards for the step to count as successful."""
    stage: Stage = "run"
    """What the sandbox allows: see `verilog_taskapp.icarus.sandbox`."""
    stdin: str | None = None
    """A file of the job that is its standard input; None: nothing."""


@dataclass(frozen=True)
class Job:
    """Files in, child processes one after the other while they succeed, files out."""

    steps: tuple[Step, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Relative path to content, written into the job's fresh directory."""
    links: Mapping[str, Path] = field(default_factory=dict)
    """Relative path to a shared read-only file that appears in the directory."""
    collect: Mapping[str, int] = field(default_factory=dict)
    """File to hand back and its size limit in bytes; a longer file comes back one byte over the limit.

    Names that start with `launcher.OUT_PREFIX` are made empty beforehand: the only files that a sandboxed child of
    stage ``run`` can write.
    """


@dataclass(frozen=True)
class StepResult:
    """How a child process ended."""

    end: End
    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None
    cpu_s: float
    """User and system time of the child and its reaped children."""
    wall_s: float
    max_rss_bytes: int
    stdout: str
    stderr: str
    output_cut: bool

    @property
    def succeeded(self) -> bool:
        """Exit status 0 within the limits."""
        return self.end == "exited" and self.exit_code == 0


@dataclass(frozen=True)
class JobResult:
    """The steps that ran (fewer than asked when one did not succeed) and the collected files that exist."""

    steps: tuple[StepResult, ...]
    files: Mapping[str, bytes]

    @property
    def last(self) -> StepResult:
        """The step at which the job ended."""
        return self.steps[-1]


class _Launcher:
    """The server's end of one launcher process."""

    def __init__(self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.process = process
        self.reader = reader
        self.writer = writer

    @classmethod
    async def start(cls, scratch: Path, confinement: Confinement | None) -> "_Launcher":
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                theirs.set_inheritable(True)
                argv = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(theirs.fileno()), str(scratch)]
                argv.append(json.dumps(asdict(confinement) if confinement is not None else None))
                process = await asyncio.to_thread(_popen, argv, theirs.fileno())
        except OSError:
            ours.close()
            raise
        ours.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=ours, limit=2**20)
        return cls(process, reader, writer)

    async def call(self, job: Job, environment: Mapping[str, str]) -> JobResult:
        blobs = list(job.files.values())
        header = {
            "names": list(job.files),
            "blob_sizes": [len(blob) for blob in blobs],
            "links": {name: str(path) for name, path in job.links.items()},
            "collect": dict(job.collect),
            "steps": [
                {
                    "argv": step.argv,
                    "env": environment,
                    "required": step.required,
                    "stage": step.stage,
                    "stdin": step.stdin,
                    **asdict(step.limits),
                }
                for step in job.steps
            ],
        }
        encoded = json.dumps(header).encode()
        self.writer.writelines(
            [launcher.FRAME.pack(len(encoded), sum(map(len, blobs))), encoded, *blobs],
        )
        await self.writer.drain()
        return await self._answer()

    async def _answer(self) -> JobResult:
        header_size, blobs_size = launcher.FRAME.unpack(await self.reader.readexactly(launcher.FRAME.size))
        header = json.loads(await self.reader.readexactly(header_size))
        data = await self.reader.readexactly(blobs_size)
        files: dict[str, bytes] = {}
        start = 0
        for name, size in zip(header["names"], header["blob_sizes"], strict=True):
            files[name] = data[start : start + size]
            start += size
        if header["error"] is not None:
            raise EnvironmentFailed(f"a simulator process could not be run ({header['error']})")
        return JobResult(tuple(StepResult(**step) for step in header["steps"]), files)

    def cancel(self) -> None:
        """Ask for the running job's end; its answer still comes."""
        self.writer.write(launcher.CANCEL)

    @property
    def directory(self) -> str:
        """Where its job runs, below the scratch directory."""
        return launcher.SLOT_DIRECTORY.format(pid=self.process.pid)

    async def stop(self) -> None:
        self.writer.close()
        try:
            await asyncio.to_thread(self.process.wait, 5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)


def _popen(argv: list[str], descriptor: int) -> subprocess.Popen[bytes]:
    # A session of its own: a Ctrl-C at the terminal reaches the server alone, which then closes the socket.
    return subprocess.Popen(
        argv,
        pass_fds=(descriptor,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={"PATH": os.defpath, "LC_ALL": "C"},
        start_new_session=True,
    )


class Runner:
    """Runs jobs, at most `children` at once, first come first served.

    `sandbox` confines every child to the tool chain and to its own slot; None: resource limits and groups alone.

    Use as an async context manager. `run` raises `EnvironmentFailed` when a child could not be started; when the
    awaiting task is cancelled the job's whole process group is killed and its directory removed before the
    cancellation goes on.
    """

    def __init__(
        self, *, children: int = 0, scratch_root: Path | None = None, sandbox: Confinement | None = None
    ) -> None:
        self.children = children or os.cpu_count() or 1
        self._confinement = sandbox
        self._scratch_root = scratch_root
        self._idle: asyncio.Queue[_Launcher | None] = asyncio.LifoQueue()  # one that is running before one to start
        self._all: set[_Launcher] = set()
        self._running: dict[asyncio.Task[Any] | None, _Launcher] = {}
        self._cancelled: set[asyncio.Task[Any] | None] = set()
        self._closing = False
        self._jobs: set[asyncio.Task[JobResult]] = set()
        self._scratch: Scratch | None = None
        self.waiting = 0

    async def __aenter__(self) -> "Runner":
        opening = asyncio.ensure_future(asyncio.to_thread(Scratch.open, self._scratch_root))
        try:
            self._scratch = await asyncio.shield(opening)
        except asyncio.CancelledError:  # the thread goes on: what it makes must not stay
            with suppress(OSError):
                await asyncio.to_thread((await opening).close)
            raise
        except OSError as error:
            raise EnvironmentFailed(f"the scratch directory cannot be used: {error}", stage="initialize") from error
        for _ in range(self.children):
            self._idle.put_nowait(None)  # started when first needed
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        await asyncio.gather(*(one.stop() for one in self._all))
        await asyncio.gather(*self._jobs, return_exceptions=True)  # one may still have been starting its launcher
        await asyncio.gather(*(one.stop() for one in self._all))
        self._all.clear()
        if self._scratch is not None:
            await asyncio.to_thread(self._scratch.close)

    @property
    def scratch(self) -> Path:
        """The private directory of this process; shared read-only files for `Job.links` belong here."""
        if self._scratch is None:
            raise RuntimeError("the runner has not been entered")
        return self._scratch.path

    @property
    def busy(self) -> int:
        """Jobs running now."""
        return self.children - self._idle.qsize()

    async def run(self, job: Job) -> JobResult:
        """Run one job to its end."""
        self.waiting += 1
        try:
            slot = await self._idle.get()
        finally:
            self.waiting -= 1
        running = asyncio.create_task(self._run_in(slot, job))
        self._jobs.add(running)
        running.add_done_callback(self._jobs.discard)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._cancelled.add(running)
            if (busy := self._running.get(running)) is not None:
                busy.cancel()
            while not running.done():
                with suppress(asyncio.CancelledError):  # cancelled again: the job still has to end first
                    await asyncio.wait([running])
            self._cancelled.discard(running)
            if not running.cancelled():
                running.exception()  # seen
            raise

    async def _run_in(self, slot: "_Launcher | None", job: Job) -> JobResult:
        """Run `job` in the slot, starting its launcher if there is none, and give the slot back whatever happens."""
        task = asyncio.current_task()
        try:
            if slot is not None and slot.process.poll() is not None:  # died while idle
                await self._discard(slot)
                slot = None
            if slot is None:
                slot = await _Launcher.start(self.scratch, self._confinement)
                self._all.add(slot)
            if task in self._cancelled:  # while the launcher was starting
                raise asyncio.CancelledError
            if self._closing:
                raise EnvironmentFailed("the service is stopping")
            self._running[task] = slot
            return await slot.call(job, self._environment())
        except (asyncio.IncompleteReadError, OSError) as error:
            if slot is not None:
                await self._discard(slot)
                slot = None
            raise EnvironmentFailed("the process that starts simulators went away") from error
        finally:
            self._running.pop(task, None)
            self._idle.put_nowait(slot)

    async def _discard(self, slot: _Launcher) -> None:
        """Forget a launcher that does not answer any more, and remove what it left."""
        self._all.discard(slot)
        await slot.stop()
        await asyncio.to_thread(shutil.rmtree, self.scratch / slot.directory, ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        """A clean environment: no keys, nothing of the server's."""
        return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": ".", "HOME": "/nonexistent"}
