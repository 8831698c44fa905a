"""Request ids, one log line a request, and a limit on bodies; plain ASGI: streams and disconnects pass through."""

import logging
import re
import time
import uuid
from contextvars import ContextVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verilog_taskapp.http.error_bodies import error_response

request_id: ContextVar[str] = ContextVar("request_id", default="-")
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
QUIET_PATHS = frozenset({"/", "/health", "/ready", "/metrics"})

log = logging.getLogger("verilog_taskapp.access")


class RequestLog:
    """Gives each request an id (``X-Request-ID``, the client's if it is plain) and logs its end without its content."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
        name = sent if _ACCEPTED_ID.fullmatch(sent) else uuid.uuid4().hex
        token = request_id.set(name)
        started, status = time.perf_counter(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-request-id", name.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            level = logging.DEBUG if scope["path"] in QUIET_PATHS and status < 400 else logging.INFO
            if log.isEnabledFor(level):
                facts = {
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "ms": round((time.perf_counter() - started) * 1000, 1),
                }
                log.log(level, "request", extra={"facts": facts})
            request_id.reset(token)


class BodyLimit:
    """Answers 413 to bodies over the limit, declared or not."""

    def __init__(self, app: ASGIApp, limit_bytes: int) -> None:
        self._app = app
        self._limit = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not declared.isdigit() or int(declared) > self._limit:
            await self._refuse(scope, receive, send)
            return
        received = 0
        started = False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise _TooLarge
            return message

        async def tracked(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, counted, tracked)
        except _TooLarge:
            if started:
                raise
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = f"the body is larger than {self._limit} bytes"
        response = error_response(413, "body_too_large", message, {"retryable": False}, {"Connection": "close"})
        await response(scope, receive, send)


class _TooLarge(Exception):
    """Internal to `BodyLimit`."""
