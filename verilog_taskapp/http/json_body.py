"""Request bodies: read for callers with a key only, and every string of them is Unicode text.

Models write half of a surrogate pair now and then, and JSON's escapes carry it along; nothing could then be sent or
stored. It becomes ``?``, as in what model servers answer.
"""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from verilog_taskapp.http.auth import require_key


class _UnicodeRequest(Request):
    async def json(self) -> Any:
        value = await super().json()
        body = await self.body()
        if b"\\ud" in body or b"\\uD" in body or b"\xed" in body:  # escaped or raw, whole pairs too
            return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
        return value


class JsonRoute(APIRoute):
    """The class of protected routes that take a body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, on our kind of request."""
        handle = super().get_route_handler()

        async def handle_unicode(request: Request) -> Response:
            await require_key(request)  # FastAPI would read and parse the body first
            return await handle(_UnicodeRequest(request.scope, request.receive))

        return handle_unicode
