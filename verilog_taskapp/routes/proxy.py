"""OpenAI-compatible passthrough with the server's key."""

import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from verilog_taskapp.errors import InferenceFailed
from verilog_taskapp.http.auth import require_key
from verilog_taskapp.http.disconnect import until_disconnect
from verilog_taskapp.http.json_body import JsonRoute
from verilog_taskapp.inference.answers import encode_json, parse_json
from verilog_taskapp.inference.client import MAX_ERROR_BYTES
from verilog_taskapp.inference.endpoint import Endpoint, Vendor, proxy_endpoint
from verilog_taskapp.inference.forwarded import Forwarded
from verilog_taskapp.inference.proxy import adapt_request, refusal, synthesize_tool_calls
from verilog_taskapp.rollout.parsing import parse_tool_text
from verilog_taskapp.rollout.prompts import tool_format_hint
from verilog_taskapp.services import Services

JsonObject = Annotated[dict[str, Any], Body()]

router = APIRouter(prefix="/proxy", tags=["proxy"], dependencies=[Depends(require_key)], route_class=JsonRoute)


class _Relay(StreamingResponse):
    """A streamed answer whose upstream is closed whenever the response ends, even before its first byte."""

    def __init__(self, upstream: Forwarded) -> None:
        self._upstream = upstream
        media_type = upstream.headers.get("content-type", "text/event-stream")
        super().__init__(self._chunks(), status_code=upstream.status, media_type=media_type)
        self.headers["Cache-Control"] = "no-cache"

    async def _chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._upstream.chunks():
            yield chunk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._upstream.aclose()


async def _refuse(upstream: Forwarded, target: Endpoint) -> None:
    body = await upstream.read(MAX_ERROR_BYTES)
    raise refusal(upstream.status, body, upstream.headers, target.key, now=time.time())


async def _chat(services: Services, vendor: Vendor, body: dict[str, Any]) -> Response:
    settings = services.settings
    target = proxy_endpoint(settings, vendor, "chat/completions")
    hint = tool_format_hint() if settings.proxy_system_hint else None
    adapted = adapt_request(body, vendor, hint)
    upstream = await services.chat.forward(target, adapted)
    if adapted.get("stream") and upstream.status == 200:
        return _Relay(upstream)
    async with upstream:
        if not 200 <= upstream.status < 300:
            await _refuse(upstream, target)
        raw = await upstream.read()
    try:
        answer = parse_json(raw)
    except ValueError as error:
        raise InferenceFailed(f"{target.label} did not answer with JSON") from error
    if isinstance(answer, dict) and settings.proxy_synthesize_tool_calls:
        answer = synthesize_tool_calls(answer, parse_tool_text)
    return Response(encode_json(answer), media_type="application/json")


async def _models(services: Services) -> Response:
    target = proxy_endpoint(services.settings, "openai", "models")
    async with await services.chat.forward(target, method="GET") as upstream:
        if not 200 <= upstream.status < 300:
            await _refuse(upstream, target)
        return Response(await upstream.read(), media_type="application/json")


@router.post("/v1/chat/completions", response_class=Response)
async def chat(request: Request, body: JsonObject) -> Response:
    """Pass a chat-completions request to the configured upstream."""
    return await until_disconnect(request, _chat(request.app.state.services, "openai", body))


@router.post("/groq/v1/chat/completions", response_class=Response)
async def groq_chat(request: Request, body: JsonObject) -> Response:
    """Pass a chat-completions request to Groq."""
    return await until_disconnect(request, _chat(request.app.state.services, "groq", body))


@router.get("/v1/models", response_class=Response)
async def models(request: Request) -> Response:
    """The upstream's list of models."""
    return await until_disconnect(request, _models(request.app.state.services))
