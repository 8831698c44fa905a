"""The web application: `create_app` is the factory that servers call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from verilog_taskapp import __version__
from verilog_taskapp.description import APP_NAME
from verilog_taskapp.http import error_bodies
from verilog_taskapp.http.auth import Keyring
from verilog_taskapp.http.logs import configure_logging
from verilog_taskapp.http.metrics import Metrics
from verilog_taskapp.http.middleware import BodyLimit, RequestLog
from verilog_taskapp.routes import health, info, proxy, rollout, sessions
from verilog_taskapp.services import Services, open_services
from verilog_taskapp.settings import Settings, load_settings

__all__ = ["Services", "create_app", "open_services"]


def create_app(settings: Settings | None = None, *, transport: httpx.AsyncBaseTransport | None = None) -> FastAPI:
    """Build the application; the simulator, the problems and the processes are opened when it starts.

    `settings` None reads the environment and ``.env``; logging is then configured too. `transport` replaces the
    network of the inference client, for tests. Raises ValueError for ``no_auth`` on a host that is not loopback.
    """
    if settings is None:
        settings = load_settings()
        configure_logging(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_services(settings, transport=transport) as services:
            app.state.services = services
            app.state.metrics = Metrics(services)
            yield

    app = FastAPI(
        title=APP_NAME,
        version=__version__,
        description="A spec-to-RTL reinforcement-learning environment on Icarus Verilog.",
        lifespan=lifespan,
    )
    app.state.keyring = Keyring(settings)
    error_bodies.install(app)
    for router in (health.router, info.router, rollout.router, sessions.router, proxy.router):
        app.include_router(router)
    app.add_middleware(BodyLimit, limit_bytes=settings.max_body_bytes)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(settings.cors_origins), allow_methods=["*"], allow_headers=["*"]
        )
    app.add_middleware(RequestLog)
    return app
