"""The one way in which the service starts child processes.

A `Runner` keeps launcher processes (see `verilog_taskapp.icarus.launcher`); each runs one `Job` at a time. The event
loop only writes and reads a socket.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.channel import Answer, Channel
from verilog_taskapp.icarus.confinement import Confinement
from verilog_taskapp.icarus.launcher import EXEC_FAILED
from verilog_taskapp.icarus.scratch import Scratch
from verilog_taskapp.icarus.slots import Slots

MIB = 1024**2
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


Observer = Callable[[Step, StepResult], None]
"""Told of every child process that ended."""


class Runner:
    """Runs jobs, first come first served: `children` at once, and as many again that have run for over a second.

    `sandbox` confines every child to the tool chain and to its own slot; None: resource limits and groups alone.

    Use as an async context manager. `run` raises `EnvironmentFailed` when a child could not be started; when the
    awaiting task is cancelled the job's whole process group is killed and its directory removed before the
    cancellation goes on.
    """

    def __init__(
        self, *, children: int = 0, scratch_root: Path | None = None, sandbox: Confinement | None = None
    ) -> None:
        self.children = children or os.cpu_count() or 1
        self.observe_step: Observer | None = None
        self.observe_wait: Callable[[float], None] | None = None
        """Told how many seconds each job waited for its turn."""
        self._slots = Slots(self.children)
        self._confinement = sandbox
        self._scratch_root = scratch_root
        self._idle: list[Channel] = []
        self._all: set[Channel] = set()
        self._opening: set[asyncio.Future[Channel]] = set()
        self._closing = False
        self._scratch: Scratch | None = None

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
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        await asyncio.gather(*self._opening, return_exceptions=True)
        await asyncio.gather(*(one.close() for one in self._all))
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
        return self._slots.busy

    @property
    def waiting(self) -> int:
        """Jobs that wait for their turn."""
        return self._slots.waiting

    async def run(self, job: Job) -> JobResult:
        """Run one job to its end."""
        asked = time.monotonic()
        place = await self._slots.take()
        if self.observe_wait is not None:
            self.observe_wait(time.monotonic() - asked)
        channel: Channel | None = None
        try:
            channel = await self._channel()
            answer = await channel.call(_header(job), list(job.files.values()))
            if answer.error is not None and answer.error.startswith(EXEC_FAILED):
                # A sandbox is made for files, not for names: tools that were installed anew are strangers to it.
                await asyncio.gather(*(self._discard(one) for one in (channel, *self._take_idle())))
                channel = None
                channel = await self._channel()
                answer = await channel.call(_header(job), list(job.files.values()))
            result = _result(answer)
        except (ConnectionError, OSError) as error:
            raise EnvironmentFailed("the process that starts simulators went away") from error
        finally:
            if channel is not None:
                await self._put_back(channel)
            self._slots.give_back(place)
        if self.observe_step is not None:
            for step, ended in zip(job.steps, result.steps, strict=False):
                self.observe_step(step, ended)
        return result

    async def _channel(self) -> Channel:
        """A launcher that is free, started if there is none."""
        while self._idle and not self._closing:
            channel = self._idle.pop()  # the one that worked last: its pages are warm
            if channel.alive:
                return channel
            await self._discard(channel)
        if self._closing:
            raise EnvironmentFailed("the service is stopping")
        opening = asyncio.ensure_future(Channel.open(self.scratch, self._confinement))
        self._opening.add(opening)
        opening.add_done_callback(self._opened)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            while not opening.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([opening])
            if opening.exception() is None:
                self._idle.append(opening.result())
            raise

    def _take_idle(self) -> list[Channel]:
        taken, self._idle = self._idle, []
        return taken

    def _opened(self, opening: asyncio.Future[Channel]) -> None:
        self._opening.discard(opening)
        if not opening.cancelled() and opening.exception() is None:
            self._all.add(opening.result())

    async def _put_back(self, channel: Channel) -> None:
        if channel.alive:
            self._idle.append(channel)
        elif not self._closing:
            await asyncio.shield(self._discard(channel))

    async def _discard(self, channel: Channel) -> None:
        """Forget a launcher that does not answer any more, and remove what it left."""
        self._all.discard(channel)
        await channel.close()
        await asyncio.to_thread(shutil.rmtree, self.scratch / channel.directory, ignore_errors=True)


_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": ".", "HOME": "/nonexistent"}
"""Of every child: no keys, nothing of the server's."""


def _header(job: Job) -> dict[str, Any]:
    """A job as its launcher is told."""
    return {
        "names": list(job.files),
        "blob_sizes": [len(blob) for blob in job.files.values()],
        "links": {name: str(path) for name, path in job.links.items()},
        "collect": dict(job.collect),
        "steps": [
            {
                "argv": step.argv,
                "env": _ENVIRONMENT,
                "required": step.required,
                "stage": step.stage,
                "stdin": step.stdin,
                **vars(step.limits),
            }
            for step in job.steps
        ],
    }


def _result(answer: Answer) -> JobResult:
    if answer.error is not None:
        raise EnvironmentFailed(f"a simulator process could not be run ({answer.error})")
    return JobResult(tuple(StepResult(**step) for step in answer.steps), answer.files)
