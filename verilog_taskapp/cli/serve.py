"""``verilog-taskapp serve``: the web service under uvicorn, in one process or several."""

import functools
import gc
import logging
import math
import socket
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verilog_taskapp.cli.console import Exit, fail, note, read_settings
from verilog_taskapp.cli.options import DatasetOption, EnvFileOption
from verilog_taskapp.errors import TaskAppError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn import Config

    from verilog_taskapp.settings import Settings

BACKLOG = 2048
"""Connections that may wait to be accepted."""
HANG_S = 15
"""A worker process that does not answer its supervisor for so long is killed and replaced."""


class LogLevel(StrEnum):
    """Least severe level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def serve(
    host: Annotated[
        str | None, typer.Option("--host", help="Address to bind.  \\[127.0.0.1]", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="TCP port; 0: a free one.  \\[8103]", show_default=False),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Server processes.")] = 1,
    dataset: DatasetOption = None,
    env_file: EnvFileOption = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Ask for no key; only on a loopback address (localhost).")
    ] = False,
    log_level: Annotated[
        LogLevel | None, typer.Option("--log-level", help="Least severe level logged.  \\[info]", show_default=False)
    ] = None,
) -> None:
    """Serve the HTTP API until SIGINT or SIGTERM, then let running rollouts finish."""
    settings = read_settings(
        env_file,
        host=host,
        port=port,
        dataset=dataset,
        no_auth=no_auth or None,
        log_level=log_level and log_level.value,
    )
    from verilog_taskapp.http.auth import is_loopback
    from verilog_taskapp.http.logs import configure_logging

    if settings.no_auth and not is_loopback(settings.host):
        fail(f"--no-auth is only for a loopback address such as 127.0.0.1, not {settings.host}", Exit.USAGE)
    if not settings.no_auth and not settings.server_keys:
        note("ENVIRONMENT_API_KEY is not set: protected routes will answer 503", kind="warning")
    configure_logging(settings)
    listener = listen(settings.host, settings.port, shared=workers > 1)
    note(f"starting on {url_of(listener)}", kind="verilog-taskapp")
    with listener:
        started = _serve_many(settings, listener, workers) if workers > 1 else _serve_one(settings, listener)
    if not started:
        raise typer.Exit(Exit.FAILED)


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A bound socket; an address that cannot be used ends the command with status 1.

    `shared`: further sockets may be bound to the address, one for each worker (`verilog_taskapp.cli.workers`).
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = _bound(family, address, shared=False)
        if shared and hasattr(socket, "SO_REUSEPORT"):
            # The first one has shown that the address is free: another service would have shared it without a word.
            address = listener.getsockname()
            listener.close()
            listener = _bound(family, address, shared=True)
    except OSError as error:
        fail(f"cannot listen on {host} port {port}: {error.strerror}", Exit.FAILED)
    listener.set_inheritable(True)
    return listener


def _bound(family: int, address: Any, *, shared: bool) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """``http://HOST:PORT`` of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_config(settings: "Settings", workers: int = 1) -> "Config":
    """How uvicorn serves the application; it can be sent to worker processes."""
    from uvicorn import Config

    return Config(
        functools.partial(build, settings),
        factory=True,
        workers=workers,
        lifespan="on",
        ws="none",
        log_config=None,
        log_level=settings.log_level,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=math.ceil(settings.drain_s),
        timeout_worker_healthcheck=HANG_S,
    )


def build(settings: "Settings") -> "ASGIApp":
    """The application of one server process, with its logging."""
    from verilog_taskapp.app import create_app
    from verilog_taskapp.http.logs import configure_logging

    configure_logging(settings)
    return PlainStartup(create_app(settings, drain_on_signals=True))


GC_THRESHOLD = 10_000
"""New objects between two collections: a rollout makes thousands that reference counting frees by itself."""


class PlainStartup:
    """Tells in one line why the service did not start, where uvicorn would print a traceback."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass everything on except what a failed start says."""
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        held: list[Message] = []

        async def without_failure(message: "Message") -> None:
            if message["type"] == "lifespan.startup.failed":
                held.append(message)
                return
            if message["type"] == "lifespan.startup.complete":
                gc.freeze()  # what is there now stays: the collector need not look at it again and again
                gc.set_threshold(GC_THRESHOLD)
            await send(message)

        try:
            await self._app(scope, receive, without_failure)
        except (TaskAppError, OSError, ValueError) as error:
            if not held:
                raise
            note(str(error), kind="error")
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            await send({"type": "lifespan.startup.failed", "message": ""})
        except BaseException:
            for message in held:
                await send(message)
            raise


def _serve_one(settings: "Settings", listener: socket.socket) -> bool:
    from uvicorn import Server

    server = Server(server_config(settings))
    try:
        server.run([listener])
    except SystemExit:
        return False
    return server.started


def _serve_many(settings: "Settings", listener: socket.socket, workers: int) -> bool:
    from verilog_taskapp.cli.workers import Supervisor, shared

    try:
        with shared(settings, workers) as of_each:
            # What `uvicorn.run` does with an import string; the settings travel with the configuration, keys and all,
            # and never through the environment.
            supervisor = Supervisor(server_config(of_each, workers), [listener])
            supervisor.run()
    except OSError as error:
        fail(f"the workers have no place to share: {error.strerror or error}", Exit.FAILED)
    if supervisor.interrupted:
        raise KeyboardInterrupt
    return not supervisor.failed
