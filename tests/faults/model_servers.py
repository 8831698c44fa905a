"""Inference servers that misbehave on the wire: real sockets, one kind of misbehaviour each."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = Callable[["BadServer", bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What is done with one request (head and body as they came) on its connection."""

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@dataclass
class BadServer:
    """Answers each request with `answer` and closes the connection after it."""

    answer: Answer
    upstream_port: int
    """Where a good server listens, for those that are bad only sometimes."""
    port: int = 0
    requests: int = 0
    cut: int = 0
    """Connections that were broken off instead of answered."""
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Its chat-completions endpoint."""
        return f"http://127.0.0.1:{self.port}/v1/chat/completions"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one request."""
        self.open.add(writer)
        try:
            request = await read_message(reader)
            self.requests += 1
            await self.answer(self, request, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the caller gave up
        finally:
            self.open.discard(writer)
            writer.close()


async def read_message(reader: asyncio.StreamReader) -> bytes:
    """A request or an answer whose length its head says."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))


async def is_limited(_: BadServer, __: bytes, ___: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """429, and when to come again."""
    writer.write(
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    )
    await writer.drain()


async def flaps(server: BadServer, request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Every second connection is cut; the others get what the good server answers."""
    if server.requests % 2:
        server.cut += 1
        writer.transport.abort()
        return
    answers, upstream = await asyncio.open_connection("127.0.0.1", server.upstream_port)
    try:
        upstream.write(request)
        answer = await read_message(answers)
    finally:
        upstream.close()
    writer.write(answer.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
    await writer.drain()


async def truncates(_: BadServer, __: bytes, ___: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The end of the connection long before that of the body."""
    writer.write(OK + b'Content-Length: 1000\r\n\r\n{"choices": [')
    await writer.drain()


async def never_ends(_: BadServer, __: bytes, ___: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A body that goes on and on."""
    writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


async def is_slow(_: BadServer, __: bytes, reader: asyncio.StreamReader, ___: asyncio.StreamWriter) -> None:
    """Nothing, until the caller has given up."""
    await reader.read()


@asynccontextmanager
async def bad_server(answer: Answer | None, upstream_url: str) -> AsyncIterator[BadServer]:
    """A server that listens until the block ends; without an answer nobody listens at its port."""
    server = BadServer(answer or is_slow, int(upstream_url.rpartition(":")[2]))
    if answer is None:
        with socket.create_server(("127.0.0.1", 0)) as reserved:
            server.port = reserved.getsockname()[1]
        yield server
        return
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for writer in tuple(server.open):
            writer.transport.abort()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(listening.wait_closed(), 5)
