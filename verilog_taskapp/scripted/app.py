"""The scripted server as an ASGI application: routes, injected faults, statistics."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send

from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted import episodes
from verilog_taskapp.scripted.completion import (
    BadRequest,
    ChatRequest,
    Completion,
    error_body,
    models_body,
)
from verilog_taskapp.scripted.episodes import EPISODES, Answer, EpisodeName, choose_episode
from verilog_taskapp.scripted.lookup import ProblemIndex, first_user_text, turn_of
from verilog_taskapp.scripted.options import KNOB_HEADER, ScriptedOptions, knobs_of, with_knobs

CHAT_PATHS = frozenset({"/v1/chat/completions", "/chat/completions"})
MODELS_PATHS = frozenset({"/v1/models", "/models"})

_LABEL = (b"x-scripted", b"not a model")
_JSON = (b"content-type", b"application/json")
_EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")


@dataclass
class Stats:
    """Counts of chat requests since the start; ``/stats`` shows them."""

    requests: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    by_mode: Counter[str] = field(default_factory=Counter)
    by_episode: Counter[str] = field(default_factory=Counter)
    by_status: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "requests": self.requests,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "by_mode": dict(self.by_mode),
            "by_episode": dict(self.by_episode),
            "by_status": dict(self.by_status),
        }


@dataclass(frozen=True)
class _Failure:
    """An error answer."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


class ScriptedApp:
    """The ASGI application; ``options`` may be replaced between requests, ``stats`` read at any time."""

    def __init__(self, options: ScriptedOptions, problems: Iterable[Problem]) -> None:
        self.options = options
        self.problems = ProblemIndex(problems)
        self.stats = Stats()
        self.closing = asyncio.Event()
        """Set on shutdown; releases the requests that mode `hang` holds."""
        self._seen: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise NotImplementedError(f"no {scope['type']} here")
        path, method = scope["path"], scope["method"]
        if path in CHAT_PATHS and method == "POST":
            self.stats.in_flight += 1
            self.stats.max_in_flight = max(self.stats.max_in_flight, self.stats.in_flight)
            try:
                await self._chat(scope, receive, send)
            finally:
                self.stats.in_flight -= 1
        elif path in MODELS_PATHS and method == "GET":
            await _send(send, 200, models_body())
        elif path == "/health" and method == "GET":
            health = {"status": "ok", "scripted": True, "problems": len(self.problems), "mode": self.options.mode}
            await _send(send, 200, orjson.dumps(health))
        elif path == "/stats" and method == "GET":
            await _send(send, 200, orjson.dumps(self.stats.to_dict()))
        else:
            await _send(send, 404, error_body(f"there is no {method} {path} here", "invalid_request_error"))

    async def _chat(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _read_body(receive)
        if body is None:
            return
        self.stats.requests += 1
        number = self.stats.requests
        try:
            request = ChatRequest.parse(body)
            knobs = knobs_of(request.model, _header(scope, KNOB_HEADER.encode()))
            options = _with_knobs(self.options, knobs) if knobs else self.options
        except BadRequest as error:
            await self._fail(send, _refusal(error))
            return
        self.stats.by_mode[options.mode] += 1
        self._seen[knobs] += 1
        if options.latency_ms:
            await asyncio.sleep(options.latency_ms / 1000)
        if options.mode == "hang":
            await self._hang(receive, send)
            return
        if options.mode == "http500" or _injected(options, self._seen[knobs]):
            await self._fail(send, _injected_failure(options))
            return
        try:
            completion = self._complete(request, options, number)
        except BadRequest as error:
            await self._fail(send, _refusal(error))
            return
        episode = completion.facts["episode"] or "none"
        self.stats.by_episode[episode] += 1
        self.stats.by_status["200"] += 1
        headers = ((b"x-scripted-mode", options.mode.encode()), (b"x-scripted-episode", episode.encode()))
        if not request.stream:
            await _send(send, 200, completion.body(), headers)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [_EVENTS, _LABEL, *headers]})
        for event in completion.events():
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    def _complete(self, request: ChatRequest, options: ScriptedOptions, number: int) -> Completion:
        turn = turn_of(request.messages)
        known = self.problems.find(first_user_text(request.messages))
        episode: EpisodeName | None = None
        if options.mode == "empty":
            answer = Answer()
        elif known is None:
            raise BadRequest(
                f"scripted server: the first user message holds none of the {len(self.problems)} specifications known",
                "messages",
                "unknown_problem",
            )
        elif options.mode == "malformed":
            answer = episodes.malformed(known.designs, turn)
        else:
            chosen = choose_episode(options.mode, known.problem.id, known.position, request.seed)
            episode = options.episode or chosen or "solve"
            answer = EPISODES[episode](known.designs, turn)
        facts = {
            "mode": options.mode,
            "episode": episode,
            "problem_id": known.problem.id if known else None,
            "turn": turn,
            "correct": episode is not None and episode != "wrong_submitted",
        }
        return Completion(request, answer, number, options.token_ids and request.return_token_ids, facts)

    async def _hang(self, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_disconnected(receive))
        closing = asyncio.ensure_future(self.closing.wait())
        try:
            await asyncio.wait({gone, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            closing.cancel()
        if self.closing.is_set():
            await self._fail(send, _Failure(503, error_body("scripted server: shutting down", "server_error")))

    async def _fail(self, send: Send, failure: _Failure) -> None:
        self.stats.by_status[str(failure.status)] += 1
        await _send(send, failure.status, failure.body, failure.headers)


def scripted_app(options: ScriptedOptions, problems: Iterable[Problem]) -> ScriptedApp:
    """The application for `problems`; positions (mode `demo`) follow their order."""
    return ScriptedApp(options, problems)


def _with_knobs(options: ScriptedOptions, knobs: str) -> ScriptedOptions:
    try:
        return with_knobs(options, knobs)
    except ValueError as error:
        raise BadRequest(f"scripted server: {error}", "model") from None


def _injected(options: ScriptedOptions, number: int) -> bool:
    """Whether the `number`-th request (from 1) is to fail; a rate is spread evenly, so it is exact."""
    if number <= options.fail_first:
        return True
    return int(number * options.error_rate) > int((number - 1) * options.error_rate)


def _injected_failure(options: ScriptedOptions) -> _Failure:
    kind = "rate_limit_error" if options.status_code == 429 else "server_error"
    code = "rate_limit_exceeded" if options.status_code == 429 else None
    headers = ((b"retry-after", options.retry_after.encode("latin-1")),) if options.retry_after is not None else ()
    body = error_body(f"scripted server: an injected {options.status_code}", kind, None, code)
    return _Failure(options.status_code, body, headers)


def _refusal(error: BadRequest) -> _Failure:
    return _Failure(400, error_body(str(error), "invalid_request_error", error.param, error.code))


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None when the client went away before it was complete."""
    message = await receive()
    if message["type"] != "http.request":
        return None
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body
    parts = [body]
    while message.get("more_body"):
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
    return b"".join(parts)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, _LABEL, *headers]})
    await send({"type": "http.response.body", "body": body})
