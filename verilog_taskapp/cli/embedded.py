"""The web service on a real socket, inside the running event loop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn

from verilog_taskapp.app import create_app
from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.settings import Settings

GRACE_S = 5
"""How long requests may finish when the block ends."""


class _Server(uvicorn.Server):
    """Leaves signals to the command, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@contextlib.asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """Serve on a free loopback port; yields ``http://127.0.0.1:PORT``.

    Raises `TaskAppError` when the service cannot start, OSError when there is no port.
    """
    app = create_app(settings)
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=GRACE_S
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # The lifespan is entered here, not by uvicorn, so that a failure arrives as the exception that it is.
        async with app.router.lifespan_context(app):
            server = _Server(config)
            running = asyncio.create_task(server.serve([listener]))
            listening = asyncio.create_task(server.listening.wait())
            try:
                await asyncio.wait({running, listening}, return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    raise EnvironmentFailed("the embedded server ended at once") from running.exception()
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                listening.cancel()
                server.should_exit = True
                await asyncio.wait([running])
