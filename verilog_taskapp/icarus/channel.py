"""The server's end of one launcher process (`verilog_taskapp.icarus.launcher`)."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

import verilog_taskapp
from verilog_taskapp.icarus import launcher
from verilog_taskapp.icarus.confinement import Confinement

LAUNCHER = (
    f"import sys; sys.path.append({str(Path(verilog_taskapp.__file__).parents[1])!r}); "
    f"from {launcher.__name__} import main; main()"
)
"""What a launcher's Python runs: without site-packages, but with this package."""


class Answer:
    """What a launcher says about a job."""

    __slots__ = ("error", "files", "steps")

    def __init__(self, header: dict[str, Any], data: memoryview) -> None:
        self.steps: list[dict[str, Any]] = header["steps"]
        self.error: str | None = header["error"]
        self.files: dict[str, bytes] = {}
        start = 0
        for name, size in zip(header["names"], header["blob_sizes"], strict=True):
            self.files[name] = bytes(data[start : start + size])
            start += size


class Channel(asyncio.Protocol):
    """One launcher and the socket to it. One call at a time."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes]
        self._transport: asyncio.WriteTransport
        self._received = bytearray()
        self._answer: asyncio.Future[Answer] | None = None
        self._lost = False

    @classmethod
    async def open(cls, scratch: Path, confinement: Confinement | None) -> "Channel":
        """Start a launcher that works below `scratch`. Raises OSError."""
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
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_connection(cls, sock=ours)
        channel.process = process
        return channel

    @property
    def alive(self) -> bool:
        """Whether it can be given a job."""
        return not self._lost and self.process.poll() is None

    @property
    def directory(self) -> str:
        """Where its job runs, below the scratch directory."""
        return launcher.SLOT_DIRECTORY.format(pid=self.process.pid)

    async def call(self, header: Mapping[str, Any], blobs: Sequence[bytes]) -> Answer:
        """Have a job done. Raises ConnectionError when the launcher goes away.

        A cancelled caller has the job's processes killed, and goes on when the launcher has said so.
        """
        if self._lost:
            raise ConnectionResetError("the launcher is gone")
        encoded = orjson.dumps(header)
        answer = self._answer = asyncio.get_running_loop().create_future()
        frame = launcher.FRAME.pack(len(encoded), sum(map(len, blobs)))
        self._transport.write(b"".join((frame, encoded, *blobs)))
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            self._transport.write(launcher.CANCEL)
            while not answer.done():
                with suppress(asyncio.CancelledError):  # cancelled again: the job still has to end first
                    await asyncio.wait([answer])
            answer.exception()  # seen
            raise

    async def close(self) -> None:
        """Let the launcher end: it kills what it runs and removes its directory."""
        self._transport.close()
        try:
            await asyncio.to_thread(self.process.wait, 5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is ready."""
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """A part of an answer."""
        received = self._received
        received += data
        frame = launcher.FRAME.size
        if len(received) < frame:
            return
        header_size, blobs_size = launcher.FRAME.unpack_from(received)
        end = frame + header_size + blobs_size
        if len(received) < end:
            return
        with memoryview(received) as view:
            answer = Answer(orjson.loads(view[frame : frame + header_size]), view[frame + header_size : end])
        del received[:end]
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def connection_lost(self, _: Exception | None) -> None:
        """The launcher is gone, or `close` was called."""
        self._lost = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the launcher went away"))


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
