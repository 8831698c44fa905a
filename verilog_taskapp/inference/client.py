"""One shared HTTP client for all model calls: retries, deadline, and whose fault a failure is.

    complete()   one chat completion, tried again while that can help
    forward()    one request as it is, for the proxy: status, headers and an open body

Redirects are never followed, so a key reaches the host it belongs to and no other. `DeadlineReached` is the episode's
time being over; `InferenceFailed` is the model server's fault, `InferenceRejected` the caller's configuration.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NoReturn, Self

import httpx

from verilog_taskapp import __version__
from verilog_taskapp.errors import ContextLengthExceeded, InferenceFailed, InferenceRejected, InvalidRequest
from verilog_taskapp.inference import answers
from verilog_taskapp.inference.endpoint import Endpoint
from verilog_taskapp.inference.forwarded import MAX_ANSWER_BYTES, Forwarded
from verilog_taskapp.inference.redaction import excerpt
from verilog_taskapp.inference.retry import (
    RETRY_AFTER_CAP_S,
    Attempt,
    Reason,
    backoff_s,
    is_retryable,
    retry_after_s,
)
from verilog_taskapp.settings import Settings

MAX_ERROR_BYTES = 64 * 1024
"""Of an error answer no more is read."""
EXCERPT_CHARS = 500
CONNECT_TIMEOUT_S = 10.0
KEEPALIVE_S = 4.0
"""Below the 5 s after which uvicorn, and so vLLM and SGLang, close an idle connection under a request."""

_HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Accept-Encoding": "identity",
    "User-Agent": f"verilog-taskapp/{__version__}",
}


class DeadlineReached(Exception):
    """The caller's deadline passed during a model call; `attempts` are the failures before that."""

    def __init__(self, attempts: tuple[Attempt, ...] = ()) -> None:
        super().__init__("the deadline passed during a model call")
        self.attempts = attempts


class ToolCallUnparsable(InferenceRejected):
    """The server refused its own model's native tool call (Groq's `tool_use_failed`): the policy's fault, in truth.

    `generation` is what the model wrote.
    """

    def __init__(self, message: str, generation: str, extras: Mapping[str, Any]) -> None:
        super().__init__(message, retryable=False, extras=extras)
        self.generation = generation


@dataclass(frozen=True)
class Completion:
    """A chat completion as the server gave it."""

    response: dict[str, Any]
    message: dict[str, Any]
    """`choices[0].message`."""
    finish_reason: str | None
    usage: dict[str, Any] | None
    attempts: tuple[Attempt, ...]
    """The failures before this answer, oldest first."""
    elapsed_s: float
    """From the call to the answer, waiting included."""


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: httpx.Headers
    body: bytes


class _Failure(Exception):
    """One attempt failed in a way that another may not."""

    def __init__(self, reason: Reason, said: str, status: int | None = None, asked_wait_s: float | None = None) -> None:
        super().__init__(said)
        self.attempt = Attempt(reason, status, 0.0)
        self.said = said
        self.asked_wait_s = asked_wait_s


class ChatClient:
    """The process's client for chat-completions endpoints; safe for any number of concurrent calls.

    `transport` replaces the network, `sleep`, `clock` (monotonic seconds, the loop's time), `wall_clock` (seconds since
    the epoch) and `jitter` (uniform in [0, 1)) replace time and chance, all for tests.
    """

    def __init__(
        self,
        settings: Settings,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
        wall_clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._retries = settings.inference_retries
        self._backoff_s = settings.inference_backoff_s
        self._timeout_s = settings.inference_timeout_s
        self._sleep = sleep
        self._clock = clock
        self._wall_clock = wall_clock
        self._jitter = jitter
        self._transport = transport
        connect_s = min(self._timeout_s, CONNECT_TIMEOUT_S)
        self._extensions = {"timeout": httpx.Timeout(self._timeout_s, connect=connect_s).as_dict()}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        if self._transport is not None:
            await self._transport.aclose()

    async def complete(self, target: Endpoint, body: Mapping[str, Any], *, deadline: float | None = None) -> Completion:
        """One chat completion for `body`, never streamed.

        `deadline` is a moment of the loop's clock that bounds both the calls and the waits between them: a wait that
        would pass it is not begun, and the failure before it is raised. Each attempt has `inference_timeout_s`.

        Raises DeadlineReached when the deadline passes during a call; InferenceFailed (`upstream_status`, `attempts` in
        its extras) for a server that cannot be reached, keeps failing or does not answer with a chat completion;
        InferenceRejected for other refusals, ToolCallUnparsable among them; ContextLengthExceeded;
        InferenceHostRefused for a name with a forbidden address; InvalidRequest for a body that JSON cannot hold.
        """
        started = self._now()
        payload = _encode({name: value for name, value in body.items() if name not in ("stream", "stream_options")})
        failed: list[Attempt] = []
        while True:
            try:
                response = await self._attempt(target, payload, deadline, tuple(failed))
            except _Failure as failure:
                wait_s = self._wait_s(failure, failed, deadline)
                if wait_s is None:
                    self._give_up(target, failure, (*failed, failure.attempt))
                failed.append(replace(failure.attempt, wait_s=wait_s))
                await self._sleep(wait_s)
            else:
                return self._completion(target, response, tuple(failed), self._now() - started)

    async def forward(
        self, target: Endpoint, body: Mapping[str, Any] | None = None, *, method: Literal["GET", "POST"] = "POST"
    ) -> Forwarded:
        """Send `body` once, with the target's key, and return once status and headers are there, whatever they are.

        Silence longer than `inference_timeout_s` is a failure, the whole answer has no limit in time. The caller closes
        what it gets. Raises InferenceFailed when there is no answer, InferenceHostRefused, InvalidRequest.
        """
        payload = _encode(body) if body is not None else None
        try:
            response = await self._send(self._request(method, target, payload))
        except (httpx.TransportError, TimeoutError) as error:
            raise InferenceFailed(
                f"{target.label} did not answer: {_described(error, target)}", extras={"upstream_status": None}
            ) from error
        return Forwarded(response, target)

    async def _attempt(
        self, target: Endpoint, payload: bytes, deadline: float | None, failed: tuple[Attempt, ...]
    ) -> object:
        """The parsed JSON of a 2xx answer; every other outcome is raised."""
        remaining_s = float("inf") if deadline is None else deadline - self._now()
        if remaining_s <= 0:
            raise DeadlineReached(failed)
        try:
            async with asyncio.timeout(min(self._timeout_s, remaining_s)):
                answer = await self._exchange(target, payload)
        except (TimeoutError, httpx.TimeoutException) as error:
            if isinstance(error, TimeoutError) and remaining_s <= self._timeout_s:
                raise DeadlineReached(failed) from None
            raise _Failure("timeout", "no complete answer in time") from error
        except httpx.DecodingError as error:
            raise _Failure("malformed", "a body that cannot be decoded") from error
        except httpx.TransportError as error:
            raise _Failure("connection", _described(error, target)) from error
        if not 200 <= answer.status <= 299:
            self._refuse(target, answer)
        try:
            return answers.parse_json(answer.body)
        except ValueError:
            said = f"an answer that is not JSON: {_quoted(answer.body.decode(errors='replace'), target)}"
            raise _Failure("malformed", said, answer.status) from None

    async def _exchange(self, target: Endpoint, payload: bytes) -> _Answer:
        response = await self._send(self._request("POST", target, payload))
        received = bytearray()
        ok = response.is_success
        try:
            async for chunk in response.aiter_bytes():
                received += chunk
                if not ok and len(received) >= MAX_ERROR_BYTES:
                    break
                if len(received) > MAX_ANSWER_BYTES:
                    raise _Failure("malformed", f"more than {MAX_ANSWER_BYTES} bytes", response.status_code)
        finally:
            await response.aclose()
        return _Answer(response.status_code, response.headers, bytes(received))

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """Status and headers of the answer, its body unread.

        Straight to the transport: what a client adds (redirects, cookies, authentication) is not wanted here.
        """
        if self._transport is None:
            from verilog_taskapp.inference.guard import GuardedTransport  # a fifth of a second: not before it is needed

            self._transport = GuardedTransport(keepalive_s=KEEPALIVE_S)
        response = await self._transport.handle_async_request(request)
        response.request = request
        return response

    def _request(self, method: str, target: Endpoint, payload: bytes | None) -> httpx.Request:
        headers = {**_HEADERS}
        if payload is not None:
            headers["Content-Type"] = "application/json"
        if target.key is not None:
            headers["Authorization"] = f"Bearer {target.key.get_secret_value()}"
        try:
            url = _url(target.url)
        except httpx.InvalidURL:
            raise InvalidRequest("inference_url is not a valid URL") from None
        return httpx.Request(method, url, content=payload, headers=headers, extensions=self._extensions)

    def _refuse(self, target: Endpoint, answer: _Answer) -> NoReturn:
        """Raise what an answer outside 2xx means."""
        error = answers.read_error(answer.body)
        said = f"{answer.status}: {_quoted(error.message, target)}".rstrip(": ")
        if answers.is_context_length_exceeded(answer.status, error):
            raise ContextLengthExceeded(f"{target.label} answered {said}")
        if is_retryable(answer.status):
            asked_s = retry_after_s(answer.headers.get("retry-after"), self._wall_clock())
            raise _Failure("status", said, answer.status, asked_s)
        if answer.status < 400:
            said = f"{answer.status}, a redirect; keys are not carried along, so name the final URL"
        extras = {"upstream_status": answer.status, "upstream_error": _quoted(error.message, target)}
        if error.code:
            extras["upstream_code"] = _quoted(error.code, target)
        message = f"{target.label} answered {said}"
        if error.code == "tool_use_failed" and error.generation is not None:
            raise ToolCallUnparsable(message, error.generation, extras)
        raise InferenceRejected(message, retryable=False, extras=extras)

    def _wait_s(self, failure: _Failure, failed: list[Attempt], deadline: float | None) -> float | None:
        """Seconds to wait before the next attempt; None: give up."""
        if len(failed) >= self._retries:
            return None
        if failure.attempt.reason == "malformed" and any(each.reason == "malformed" for each in failed):
            return None
        # Jitter on top of what the server asked for: it told all rollouts the same moment.
        wait_s = backoff_s(self._backoff_s, len(failed) + 1, self._jitter()) + (failure.asked_wait_s or 0.0)
        if deadline is None:
            return None if (failure.asked_wait_s or 0.0) > RETRY_AFTER_CAP_S else wait_s
        return wait_s if wait_s < deadline - self._now() else None

    def _give_up(self, target: Endpoint, failure: _Failure, attempts: tuple[Attempt, ...]) -> NoReturn:
        tries = "1 attempt" if len(attempts) == 1 else f"{len(attempts)} attempts"
        raise InferenceFailed(
            f"{target.label} failed ({tries}), last: {failure.said}",
            retry_after_s=failure.asked_wait_s,
            extras={"upstream_status": failure.attempt.status, "attempts": [asdict(each) for each in attempts]},
        ) from failure

    def _completion(
        self, target: Endpoint, response: object, attempts: tuple[Attempt, ...], elapsed_s: float
    ) -> Completion:
        message = answers.completion_message(response)
        choice = answers.first_choice(response)
        if not isinstance(response, dict) or message is None or choice is None:
            text = answers.encode_json(response).decode(errors="replace")
            raise InferenceFailed(
                f"{target.label} answered with something that is not a chat completion: {_quoted(text, target)}",
                extras={"upstream_status": 200, "attempts": [asdict(each) for each in attempts]},
            )
        finish, usage = choice.get("finish_reason"), response.get("usage")
        return Completion(
            response=response,
            message=message,
            finish_reason=finish if isinstance(finish, str) else None,
            usage=usage if isinstance(usage, dict) else None,
            attempts=attempts,
            elapsed_s=elapsed_s,
        )

    def _now(self) -> float:
        return asyncio.get_running_loop().time() if self._clock is None else self._clock()


@lru_cache(256)
def _url(text: str) -> httpx.URL:
    """Parsed once: rollouts name the same few endpoints over and over."""
    return httpx.URL(text)


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return answers.encode_json(dict(body))
    except (TypeError, ValueError, RecursionError):
        raise InvalidRequest("the request to the model holds a value that JSON cannot express") from None


def _quoted(text: str, target: Endpoint) -> str:
    return excerpt(text, target.key, EXCERPT_CHARS)


def _described(error: Exception, target: Endpoint) -> str:
    return f"{type(error).__name__} {_quoted(str(error), target)}".strip()
