"""Reading what an inference server answers: JSON, a completion's message, an error in one of the many shapes."""

import json
from dataclasses import dataclass
from typing import Any

import orjson

CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
"""Error codes or types: OpenAI and Groq; llama.cpp."""
CONTEXT_PHRASES = (
    "maximum context length",  # vLLM, OpenAI, DeepSeek
    "longer than the maximum model length",  # vLLM, for the prompt alone
    "longer than the model's context length",  # SGLang
    "exceeds the available context size",  # llama.cpp
    "reduce the length of",  # Groq, vLLM, OpenAI
)
# llama.cpp answered 500 for a full context until it learned 400; 413 and 422 are other servers' words for the same.
_CONTEXT_STATUSES = frozenset({400, 413, 422, 500})


@dataclass(frozen=True)
class UpstreamError:
    """What an error answer says, wherever it says it."""

    message: str
    code: str
    """`code`, or '' when there is none; a number is given as text."""
    kind: str
    """`type`, or ''."""
    generation: str | None
    """Groq's `failed_generation`: the text of a native tool call that did not parse."""


def parse_json(raw: bytes) -> object:
    """The JSON value in `raw`; NaN and infinities become null, lone surrogates '?'. Raises ValueError for none.

    Servers written in Python send NaN log-probabilities, and models emit half of a surrogate pair; neither is JSON.
    """
    try:
        parsed: object = orjson.loads(raw)
    except ValueError:
        try:
            lenient = json.loads(raw, parse_constant=lambda _: None)
            return orjson.loads(json.dumps(lenient, ensure_ascii=False).encode(errors="replace"))
        except RecursionError:
            raise ValueError("nested too deeply") from None
    return parsed


def encode_json(value: object) -> bytes:
    """`value` as a JSON body. Raises TypeError or ValueError for what JSON cannot hold."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # Lone surrogates and integers beyond 64 bits, which the standard encoder can write.
        return json.dumps(value, allow_nan=False).encode()


def completion_message(response: object) -> dict[str, Any] | None:
    """``choices[0].message`` of a chat completion, or None if `response` is not one."""
    choice = first_choice(response)
    message = choice.get("message") if choice is not None else None
    return message if isinstance(message, dict) else None


def first_choice(response: object) -> dict[str, Any] | None:
    """``choices[0]`` of a chat completion, or None."""
    choices = response.get("choices") if isinstance(response, dict) else None
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def read_error(raw: bytes) -> UpstreamError:
    """The error in an answer's body: OpenAI's, vLLM's and SGLang's, FastAPI's and Ollama's shapes, else its text."""
    text = raw.decode(errors="replace")
    try:
        body = parse_json(raw)
    except ValueError:
        return UpstreamError(text, "", "", None)
    if not isinstance(body, dict):
        return UpstreamError(text, "", "", None)
    inner = body.get("error")
    error: dict[str, Any] = inner if isinstance(inner, dict) else body
    candidates = (error.get("message"), error.get("detail"), inner)
    message = next((each for each in candidates if isinstance(each, str) and each), text)
    generation = error.get("failed_generation")
    return UpstreamError(
        message, _word(error.get("code")), _word(error.get("type")), generation if isinstance(generation, str) else None
    )


def is_context_length_exceeded(status: int, error: UpstreamError) -> bool:
    """Whether an error answer means that the conversation no longer fits the model."""
    if status not in _CONTEXT_STATUSES:
        return False
    if not CONTEXT_CODES.isdisjoint((error.code, error.kind)):
        return True
    said = error.message.lower().replace("\u2019", "'")
    return any(phrase in said for phrase in CONTEXT_PHRASES)


def _word(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""
