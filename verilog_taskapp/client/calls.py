"""One HTTP call as the client makes it: tried again while that can help, and bounded by a deadline as a whole.

Every call that goes through here may be repeated: what changes something carries an id of the client's own
(``session_id``, ``step_id``), and a rollout has no effect outside of the service, which stops the work of a caller that
is gone, so repeating it only draws the sample again.
"""

import asyncio
import math
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar, cast

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from verilog_taskapp import __version__
from verilog_taskapp.client.errors import DeadlinePassed, ServiceUnreachable, UnreadableAnswer, refusal
from verilog_taskapp.errors import Draining, InvalidRequest, Overloaded, TaskAppError
from verilog_taskapp.inference.retry import backoff_s

CONNECT_TIMEOUT_S = 10.0
KEEPALIVE_S = 4.0
"""Below the 5 s after which uvicorn closes an idle connection under a request."""

Result = TypeVar("Result")


class Calls:
    """The client's one connection pool; safe for any number of concurrent calls in one event loop.

    `retries`: attempts after the first, for a fault that may pass. "Come back later" (429, or 503 while a server
    drains) is no fault and only bounded by the deadline. `first_backoff_s` doubles, with full jitter.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None,
        *,
        retries: int,
        first_backoff_s: float,
        max_connections: int,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self._retries = retries
        self._first_backoff_s = first_backoff_s
        headers = {"User-Agent": f"verilog-taskapp-client/{__version__}"}
        if api_key is not None:
            headers["X-API-Key"] = api_key
        try:
            self._http = httpx.AsyncClient(
                base_url=url.rstrip("/"),
                headers=headers,
                timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),  # the deadline bounds the rest
                limits=httpx.Limits(
                    max_connections=max_connections,
                    max_keepalive_connections=max_connections,
                    keepalive_expiry=KEEPALIVE_S,
                ),
                transport=transport,
            )
        except httpx.InvalidURL as error:
            raise InvalidRequest(f"the service's URL is not valid: {error}") from error
        if self._http.base_url.scheme not in ("http", "https"):
            raise InvalidRequest("the service's URL must begin with http:// or https://")

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def ask(
        self,
        kind: TypeAdapter[Result],
        method: str,
        path: str,
        body: BaseModel | None = None,
        *,
        deadline_s: float,
        params: Mapping[str, Any] | None = None,
    ) -> Result:
        """The answer to one request. Raises `TaskAppError`, `DeadlinePassed` at the latest after `deadline_s`."""
        deadline = asyncio.get_running_loop().time() + deadline_s
        failures = 0
        while True:
            try:
                async with _bounded(deadline, path):
                    response = await self._http.request(method, path, params=params, **_content(body))
                if not response.is_success:
                    raise refusal(response)
                return parsed(kind, response.content, path)
            except httpx.TransportError as error:
                failure: TaskAppError = unreachable(error, path)
            except TaskAppError as error:
                failure = error
            failures += 1
            await self.wait(failure, failures, deadline)

    async def wait(self, failure: TaskAppError, failures: int, deadline: float) -> None:
        """Wait until another attempt makes sense; raises `failure` when none does.

        `failures` counts this one, `deadline` is a moment of the loop's clock.
        """
        later = isinstance(failure, Overloaded | Draining)
        if not failure.retryable or isinstance(failure, DeadlinePassed) or (failures > self._retries and not later):
            raise failure
        # Jitter on top of what the server asked for: it told all callers the same moment.
        jitter = random.random()  # noqa: S311 - no secret
        wait_s = backoff_s(self._first_backoff_s, failures, jitter) + (failure.retry_after_s or 0.0)
        if wait_s >= deadline - asyncio.get_running_loop().time():
            raise failure
        await asyncio.sleep(wait_s)

    async def lines(
        self, path: str, body: BaseModel, *, silence_s: float, deadline: float
    ) -> AsyncGenerator[str, None]:
        """The lines of one streamed answer, in one attempt; `silence_s` without one counts as a broken connection."""
        now = asyncio.get_running_loop().time

        async def soon(awaited: Awaitable[Result]) -> Result:
            until = min(deadline, now() + silence_s)
            try:
                async with asyncio.timeout_at(until):
                    return await awaited
            except TimeoutError:
                if now() >= deadline:
                    raise DeadlinePassed(f"{path} did not end in time") from None
                raise ServiceUnreachable(f"{path} was silent for {silence_s:g} s") from None

        request = self._http.build_request("POST", path, **_content(body))
        try:
            response = await soon(self._http.send(request, stream=True))
            async with aclosing(response):
                if not response.is_success:
                    await soon(response.aread())
                    raise refusal(response)
                async with aclosing(cast(AsyncGenerator[str, None], response.aiter_lines())) as lines:
                    while (line := await soon(anext(lines, None))) is not None:
                        yield line
        except httpx.TransportError as error:
            raise unreachable(error, path) from error


@asynccontextmanager
async def _bounded(deadline: float, path: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(deadline if math.isfinite(deadline) else None):
            yield
    except TimeoutError as error:
        raise DeadlinePassed(f"{path} was not answered in time") from error


def _content(body: BaseModel | None) -> dict[str, Any]:
    if body is None:
        return {}
    content = body.model_dump_json(by_alias=True, exclude_unset=True)
    return {"content": content, "headers": {"Content-Type": "application/json"}}


def parsed(kind: TypeAdapter[Result], content: bytes | str, path: str) -> Result:
    """An answer as the model that it should be. Raises `UnreadableAnswer`."""
    try:
        return kind.validate_json(content)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "body"
        raise UnreadableAnswer(f"{path}: {place}: {first['msg']}") from error


def unreachable(error: httpx.TransportError, path: str) -> ServiceUnreachable:
    """A failure of the network as a fault."""
    fault = ServiceUnreachable(f"{path}: {type(error).__name__} {error}".rstrip())
    fault.__cause__ = error
    return fault
