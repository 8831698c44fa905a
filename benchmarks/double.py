"""A model double that costs as little as it can: chat completions from a prepared table.

    python -m benchmarks.double TABLE [--think-s S]

The model's name in a request, ``bench:KEY:TAG``, says what to answer: ``write_file`` with the design of KEY, then
compile, simulate and submit, one a turn. ``@TAG@`` in a design becomes TAG. The table is a JSON object from KEY to
``{"path", "design"}``. Prints ``port N`` once it listens, on the loopback address.
"""

import argparse
import asyncio
import json
import re
import sys
from pathlib import Path
from typing import cast

import uvloop

TAG = "@TAG@"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
_MODEL = re.compile(rb'"model": ?"bench:([^:"]+):([^"]*)"')
_ASSISTANT = re.compile(rb'"role": ?"assistant"')
"""Quotes inside of a message's text are escaped, so this only matches a message's own role."""


def completion(text: str) -> bytes:
    """The body of an answer that says `text`."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
    body = {"id": "chatcmpl-0", "object": "chat.completion", "created": 0, "model": "bench", "usage": usage}
    return json.dumps({**body, "choices": [choice]}).encode()


def script(path: str, design: str) -> tuple[bytes, ...]:
    """The bodies of one episode, turn by turn."""
    calls = [("write_file", {"path": path, "content": design}), ("compile", {}), ("simulate", {}), ("submit", {})]
    return tuple(completion(json.dumps({"tool": tool, "args": arguments})) for tool, arguments in calls)


class Conversation(asyncio.Protocol):
    """One keep-alive connection."""

    def __init__(self, scripts: dict[bytes, tuple[bytes, ...]], think_s: float) -> None:
        self._scripts = scripts
        self._think_s = think_s
        self._received = bytearray()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._received, 0, end)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._received) < size:
                return
            request = bytes(self._received[end + 4 : size])
            del self._received[:size]
            if self._think_s:
                asyncio.get_running_loop().call_later(self._think_s, self._answer, request)
            else:
                self._answer(request)

    def _answer(self, request: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        named = _MODEL.search(request)
        episode = self._scripts.get(named[1]) if named else None
        status, body = b"404 Not Found", b'{"error": {"message": "no such design"}}'
        if named and episode is not None:
            turn = len(_ASSISTANT.findall(request))
            status, body = b"200 OK", episode[min(turn, len(episode) - 1)].replace(TAG.encode(), named[2])
        head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
        self._transport.write(head + body)


async def serve(table: Path, think_s: float) -> None:
    """Answer until the process is told to end."""
    entries = json.loads(await asyncio.to_thread(table.read_text))
    scripts = {key.encode(): script(one["path"], one["design"]) for key, one in entries.items()}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Conversation(scripts, think_s), "127.0.0.1", 0, backlog=2048)
    print(f"port {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--think-s", type=float, default=0.0)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(serve(options.table, options.think_s))
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
