"""Request ids, one log line a request, and a limit on bodies; plain ASGI: streams and disconnects pass through."""

import asyncio
import logging
import re
import time
import uuid
from contextvars import ContextVar

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verilog_taskapp.errors import Draining
from verilog_taskapp.http.error_bodies import bug_response, error_response, fault_response

request_id: ContextVar[str] = ContextVar("request_id", default="-")
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
DRAINING_RETRY_AFTER_S = 5.0
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
        except asyncio.CancelledError:  # the server stops, and its grace for what runs is over
            if not status:
                stopping = Draining("the server is shutting down", retry_after_s=DRAINING_RETRY_AFTER_S)
                await fault_response(stopping)(scope, receive, send_with_id)
            raise
        except Exception as error:
            if status:  # in the middle of an answer: all that is left is to cut the connection
                raise
            log.exception("an unexpected error")
            await bug_response(error)(scope, receive, send_with_id)
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
        self._message = f"the body is larger than {limit_bytes} bytes"

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

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                # of this kind, because FastAPI makes a 400 of any other error while it reads a body
                raise HTTPException(413, self._message, {"Connection": "close"})
            return message

        await self._app(scope, counted, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = error_response(413, "body_too_large", self._message, {"retryable": False}, {"Connection": "close"})
        await response(scope, receive, send)
