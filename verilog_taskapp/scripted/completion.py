"""An answer in the shapes of the chat-completions API: one object, or server-sent chunks."""

import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from verilog_taskapp.scripted import tokens
from verilog_taskapp.scripted.episodes import Answer
from verilog_taskapp.scripted.options import MODEL

OWNED_BY = "verilog-taskapp (scripted, not a model)"
FINGERPRINT = "scripted-not-a-model"
CHUNK_TOKENS = 16
MAX_TOP_LOGPROBS = 20


class BadRequest(ValueError):
    """A request that the API would refuse; ``param`` names the field."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


@dataclass(frozen=True)
class ChatRequest:
    """The fields of a request that mean something here; all others are accepted and ignored, ``n`` included."""

    messages: Sequence[Mapping[str, Any]]
    model: object
    native: bool
    """Whether to answer with tool calls: there are ``tools`` and ``tool_choice`` is not ``none``."""
    stream: bool
    stream_usage: bool
    seed: int | None
    logprobs: bool
    top_logprobs: int
    return_token_ids: bool

    @classmethod
    def parse(cls, body: bytes) -> "ChatRequest":
        """Raises BadRequest."""
        try:
            raw = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise BadRequest(f"the body is not JSON: {error}") from None
        if not isinstance(raw, dict):
            raise BadRequest("the body is not a JSON object")
        messages = raw.get("messages")
        if not isinstance(messages, list) or not messages:
            raise BadRequest("messages must be a list that is not empty", "messages")
        if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
            raise BadRequest("every message must be an object with a role", "messages")
        seed = raw.get("seed")
        if seed is not None and not isinstance(seed, int):
            raise BadRequest("seed must be an integer", "seed")
        top_logprobs = raw.get("top_logprobs") or 0
        if not isinstance(top_logprobs, int) or not 0 <= top_logprobs <= MAX_TOP_LOGPROBS:
            raise BadRequest(f"top_logprobs must be an integer from 0 to {MAX_TOP_LOGPROBS}", "top_logprobs")
        stream_options = raw.get("stream_options")
        return cls(
            messages=messages,
            model=raw.get("model"),
            native=bool(raw.get("tools")) and raw.get("tool_choice") != "none",
            stream=raw.get("stream") is True,
            stream_usage=isinstance(stream_options, dict) and stream_options.get("include_usage") is True,
            seed=seed,
            logprobs=raw.get("logprobs") is True,
            top_logprobs=top_logprobs,
            return_token_ids=raw.get("return_token_ids") is True,
        )


@dataclass(frozen=True)
class Completion:
    """One answer to one request, ready to be put on the wire; ``facts`` goes into the field ``scripted``."""

    request: ChatRequest
    answer: Answer
    number: int
    token_ids: bool
    facts: Mapping[str, Any]

    @property
    def _call(self) -> dict[str, Any] | None:
        if not self.request.native or self.answer.tool is None:
            return None
        arguments = self.answer.native_arguments
        call_id = f"call_scripted_{self.facts['turn']}_{zlib.crc32(arguments.encode()):08x}"
        return {"id": call_id, "type": "function", "function": {"name": self.answer.tool, "arguments": arguments}}

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-scripted-{self.number}",
            "object": kind,
            "created": int(time.time()),
            "model": MODEL,
            "system_fingerprint": FINGERPRINT,
        }

    def _usage(self, text: str) -> dict[str, int]:
        prompt, completion = tokens.prompt_count(self.request.messages), tokens.count(text) + 1
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def _message(self) -> dict[str, Any]:
        if call := self._call:
            return {"role": "assistant", "content": self.answer.before or None, "tool_calls": [call]}
        return {"role": "assistant", "content": self.answer.text}

    def body(self) -> bytes:
        """The whole answer as one JSON object."""
        message = self._message()
        text = tokens.message_text(message)
        choice: dict[str, Any] = {
            "index": 0,
            "message": message,
            "logprobs": {"content": tokens.logprobs(text, self.request.top_logprobs)}
            if self.request.logprobs
            else None,
            "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
        }
        whole = self._head("chat.completion") | {
            "choices": [choice],
            "usage": self._usage(text),
            "scripted": self.facts,
        }
        if self.token_ids:
            choice["token_ids"] = tokens.completion_ids(text)
            whole["prompt_token_ids"] = tokens.prompt_ids(self.request.messages)
        return orjson.dumps(whole)

    def events(self) -> Iterator[bytes]:
        """The answer as server-sent events, the closing ``[DONE]`` included.

        Ids and log-probabilities come along with their text; those of a tool call all in its first chunk.
        """
        head = self._head("chat.completion.chunk")
        message = self._message()
        text = tokens.message_text(message)
        first = dict(head) | {"scripted": self.facts}
        if self.token_ids:
            first["prompt_token_ids"] = tokens.prompt_ids(self.request.messages)
        yield _event(first, {"role": "assistant", "content": ""})
        entries = tokens.logprobs(text, self.request.top_logprobs) if self.request.logprobs else None
        ids = tokens.completion_ids(text) if self.token_ids else None
        size = CHUNK_TOKENS * tokens.TOKEN_CHARS

        def part(start: int, stop: int | None) -> dict[str, Any]:
            extra: dict[str, Any] = {"logprobs": {"content": entries[start:stop]} if entries is not None else None}
            return extra | ({"token_ids": ids[start:stop]} if ids is not None else {})

        if call := self._call:
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            if self.answer.before:
                yield _event(head, {"content": self.answer.before})
            opening = {"index": 0, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
            yield _event(head, {"tool_calls": [opening]}, **part(0, None))
            for at in range(0, len(arguments), size):
                piece = {"index": 0, "function": {"arguments": arguments[at : at + size]}}
                yield _event(head, {"tool_calls": [piece]})
            yield _event(head, {}, finish_reason="tool_calls")
        else:
            for number, at in enumerate(range(0, len(text), size)):
                begin = number * CHUNK_TOKENS
                end = min(begin + CHUNK_TOKENS, tokens.count(text))
                yield _event(head, {"content": text[at : at + size]}, **part(begin, end))
            yield _event(head, {}, finish_reason="stop", **part(tokens.count(text), None))
        if self.request.stream_usage:
            yield b"data: " + orjson.dumps(head | {"choices": [], "usage": self._usage(text)}) + b"\n\n"
        yield b"data: [DONE]\n\n"


def _event(head: Mapping[str, Any], delta: Mapping[str, Any], finish_reason: str | None = None, **extra: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, **extra}
    return b"data: " + orjson.dumps({**head, "choices": [choice]}) + b"\n\n"


def error_body(message: str, kind: str, param: str | None = None, code: str | None = None) -> bytes:
    """An error in the shape of the API."""
    return orjson.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


def models_body() -> bytes:
    """The answer of ``GET /v1/models``."""
    model = {"id": MODEL, "object": "model", "created": 0, "owned_by": OWNED_BY}
    return orjson.dumps({"object": "list", "data": [model]})
