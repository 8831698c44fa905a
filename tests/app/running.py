"""The service as a process of its own, and callers that can hang up."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import DEADLINE_S, KEY, simulators_in, traces_in

SERVE = (
    "import functools, uvicorn; from verilog_taskapp.app import create_app; "
    "uvicorn.run(functools.partial(create_app, drain_on_signals=True), factory=True, host='127.0.0.1', port=0,"
    " timeout_graceful_shutdown=1, timeout_keep_alive=60)"
)


async def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for what nobody signals: the state of other processes."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"it never happened: {what}")


@dataclass
class Server:
    """A running server process."""

    process: asyncio.subprocess.Process
    url: str
    folder: Path
    log: list[dict[str, Any]]

    @property
    def scratch(self) -> Path:
        """Where its jobs run."""
        return self.folder / "scratch"

    @property
    def directories(self) -> list[Path]:
        """Those that server processes made for their jobs."""
        return [path for path in self.scratch.glob("*/*") if path.is_dir()]

    @property
    def traces(self) -> list[dict[str, Any]]:
        """The stored session traces, the oldest first."""
        return traces_in(self.folder / "cache")

    def simulating(self) -> bool:
        """Whether a design is being simulated now."""
        return any("vvp -n" in command for command in simulators_in(self.scratch).values())


@contextlib.asynccontextmanager
async def server_in(folder: Path, **variables: str) -> AsyncIterator[Server]:
    """Start a server below `folder`, wait until it listens, and make sure that it is gone afterwards."""
    environment = {
        name: value for name, value in os.environ.items() if not name.upper().startswith(("VERILOG_", "TASKAPP_"))
    }
    environment |= {
        "ENVIRONMENT_API_KEY": KEY,
        "VERILOG_SCRATCH_DIR": str(folder / "scratch"),
        "VERILOG_CACHE_DIR": str(folder / "cache"),
        "VERILOG_RUN_CPU_S": "100",
        "VERILOG_DRAIN_S": "1",
        **variables,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, env=environment, cwd=folder, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    log: list[dict[str, Any]] = []
    url = ""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while "running on" not in url:
                line = (await process.stderr.readline()).decode()
                assert line, "the server stopped:\n" + "\n".join(one["message"] for one in log)
                log.append(_parsed(line))
                url = log[-1]["message"]
        reading = asyncio.create_task(_read_on(process.stderr, log))
        yield Server(process, url.split()[3], folder, log)
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(DEADLINE_S):
            await process.wait()
            await reading
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _read_on(stream: asyncio.StreamReader, log: list[dict[str, Any]]) -> None:
    async for line in stream:
        log.append(_parsed(line.decode()))


def _parsed(line: str) -> dict[str, Any]:
    """A log line; what a process says before its logging is set up is no JSON."""
    parsed: dict[str, Any] = json.loads(line) if line.startswith("{") else {"message": line.rstrip(), "level": "error"}
    return parsed


class Caller:
    """A POST on a socket of its own, which can hang up."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def post(cls, url: str, path: str, body: dict[str, Any]) -> "Caller":
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        await writer.drain()
        return cls(reader, writer)

    async def received(self, text: bytes) -> bytes:
        """Everything up to `text`."""
        return await asyncio.wait_for(self._reader.readuntil(text), DEADLINE_S)

    async def hang_up(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
