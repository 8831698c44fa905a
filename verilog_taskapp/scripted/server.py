"""The scripted server on a real socket, inside the running event loop."""

import asyncio
import contextlib
import socket
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

import uvicorn

from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted.app import ScriptedApp, Stats, scripted_app
from verilog_taskapp.scripted.options import ScriptedOptions


class _Uvicorn(uvicorn.Server):
    """Leaves signals alone, says when it listens, and releases hanging requests when it stops."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._closing = closing

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)


class ScriptedServer:
    """``async with ScriptedServer(options, problems) as server``: listens on ``server.url`` until the block ends.

    Port 0 takes a free one. Raises OSError when the address cannot be bound.
    """

    def __init__(
        self, options: ScriptedOptions, problems: Iterable[Problem], *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.app: ScriptedApp = scripted_app(options, problems)
        self._address = (host, port)
        self._url: str | None = None
        self._server: _Uvicorn | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """``http://HOST:PORT``, without a path. Raises RuntimeError before it listens."""
        if self._url is None:
            raise RuntimeError("the scripted server is not listening yet")
        return self._url

    @property
    def stats(self) -> Stats:
        """What was asked so far."""
        return self.app.stats

    async def __aenter__(self) -> Self:
        """Bind, start and wait until connections are accepted."""
        config = uvicorn.Config(
            self.app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=5,
        )
        self._server = _Uvicorn(config, self.app.closing)
        host, port = self._address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
        except OSError:
            listener.close()
            raise
        shown = f"[{host}]" if family == socket.AF_INET6 else host
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        listening = asyncio.create_task(self._server.listening.wait())
        await asyncio.wait({self._serving, listening}, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            listening.cancel()
            listener.close()
            await self._serving
        self._url = f"http://{shown}:{listener.getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish what is being answered and close every connection."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving
