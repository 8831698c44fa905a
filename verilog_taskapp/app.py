"""The web application: `create_app` is the factory that servers call."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from verilog_taskapp import __version__
from verilog_taskapp.description import APP_NAME
from verilog_taskapp.environment.world import World
from verilog_taskapp.http import error_bodies
from verilog_taskapp.http.auth import Keyring
from verilog_taskapp.http.drain import DrainOnSignal
from verilog_taskapp.http.logs import configure_logging
from verilog_taskapp.http.metrics import Metrics
from verilog_taskapp.http.middleware import BodyLimit, RequestLog
from verilog_taskapp.routes import batch, health, info, proxy, rollout, sessions
from verilog_taskapp.services import Services, open_services
from verilog_taskapp.sessions.backend import SessionBackend
from verilog_taskapp.settings import Settings, load_settings

__all__ = ["Services", "create_app", "open_services"]


def create_app(
    settings: Settings | None = None,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    session_backend: Callable[[World], SessionBackend] | None = None,
    drain_on_signals: bool = False,
) -> FastAPI:
    """Build the application; the simulator, the problems and the processes are opened when it starts.

    `settings` None reads the environment and ``.env``; logging is then configured too. `transport` and
    `session_backend` are those of `open_services`. `drain_on_signals` is for a process of its own: see
    `verilog_taskapp.http.drain`. Raises ValueError for ``no_auth`` on a host that is not loopback.
    """
    if settings is None:
        settings = load_settings()
        configure_logging(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_services(settings, transport=transport, session_backend=session_backend) as services:
            app.state.services = services
            metrics = app.state.metrics = Metrics(services)
            together = asyncio.create_task(metrics.keep_fresh()) if metrics.multiprocess else None
            drain = DrainOnSignal(services)
            if drain_on_signals:
                drain.install()
            try:
                yield
            finally:
                drain.remove()
                if together is not None:
                    together.cancel()

    app = FastAPI(
        title=APP_NAME,
        version=__version__,
        description="A spec-to-RTL reinforcement-learning environment on Icarus Verilog.",
        lifespan=lifespan,
    )
    app.state.keyring = Keyring(settings)
    error_bodies.install(app)
    for router in (health.router, info.router, rollout.router, batch.router, sessions.router, proxy.router):
        app.include_router(router)
    app.add_middleware(BodyLimit, limit_bytes=settings.max_body_bytes)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(settings.cors_origins), allow_methods=["*"], allow_headers=["*"]
        )
    app.add_middleware(RequestLog)
    return app
