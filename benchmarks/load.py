"""The load generator: any number of rollouts, so many at once, each answer kept for later inspection."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

KEY = "benchmark-key-0123456789"
"""The server's key: it is reachable from this machine alone and lives as long as a benchmark."""


@dataclass(frozen=True)
class Answer:
    """What came back for one request; status 0: no complete answer."""

    status: int
    body: bytes
    latency_s: float

    @property
    def passed(self) -> bool:
        """Whether the rollout ended with a passing submission."""
        return self.status == 200 and bool(json.loads(self.body)["metrics"]["details"]["task_completed"])

    @property
    def said(self) -> str:
        """The beginning of the answer, for people."""
        return f"{self.status}: {self.body[:300].decode('utf-8', 'replace')}"


@dataclass(frozen=True)
class Played:
    """A finished load."""

    wall_s: float
    answers: tuple[Answer, ...]

    @property
    def failed(self) -> tuple[Answer, ...]:
        """Answers other than 200."""
        return tuple(one for one in self.answers if one.status != 200)


class Connection:
    """One keep-alive connection to the service."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """Connect. Raises OSError."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**24))

    async def ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        """Send a request and read the whole answer; a broken connection is an answer of status 0."""
        started = time.perf_counter()
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nX-API-Key: {KEY}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        try:
            await self._writer.drain()
            received = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            length = int(received.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
            content = await self._reader.readexactly(length)
        except (OSError, EOFError, ValueError) as error:
            return Answer(0, str(error).encode(), time.perf_counter() - started)
        return Answer(int(received.split(b" ", 2)[1]), content, time.perf_counter() - started)

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return


def rollout_request(problem_id: str, model: str, inference_url: str) -> bytes:
    """The body of a rollout of one problem, at most four turns."""
    policy = {"model": model, "inference_url": inference_url, "max_steps": 4}
    request = {
        "run_id": "benchmark",
        "env": {"config": {"split": "all", "problem": problem_id}},
        "policy": {"config": policy},
        "ops": ["agent"],
    }
    return json.dumps(request).encode()


async def play(port: int, requests: Sequence[bytes], concurrency: int) -> Played:
    """Send all `requests` in order, `concurrency` at once, each sender on a connection of its own."""
    waiting = iter(requests)
    answers: list[Answer] = []

    async def send() -> None:
        connection: Connection | None = None
        try:
            for request in waiting:
                try:
                    connection = connection or await Connection.open(port)
                except OSError as error:
                    answers.append(Answer(0, str(error).encode(), 0.0))
                    continue
                answers.append(await connection.ask("POST", "/rollout", request))
                if answers[-1].status == 0:
                    await connection.close()
                    connection = None
        finally:
            if connection is not None:
                await connection.close()

    started = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(min(concurrency, len(requests)))))
    return Played(time.perf_counter() - started, tuple(answers))
