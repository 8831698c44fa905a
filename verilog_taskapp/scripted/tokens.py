"""Plainly synthetic tokens: four characters each, with ids that no vocabulary has.

They are consistent the way a real chat template is: ids of a prompt are the ids of its messages one after another, so
the next turn's prompt begins with this turn's prompt and completion, and usage counts equal the numbers of ids.
"""

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from verilog_taskapp.scripted.lookup import content_text

TOKEN_CHARS = 4
FIRST_ID = 1_000_000
"""Larger than any real vocabulary; the first few are the marks below, the rest come from a CRC-32 of the text."""
ROLE_IDS = {"system": FIRST_ID, "user": FIRST_ID + 1, "assistant": FIRST_ID + 2, "tool": FIRST_ID + 3}
OTHER_ROLE_ID = FIRST_ID + 4
END_ID = FIRST_ID + 5
END_TOKEN = "<|end|>"  # noqa: S105 - the text of a synthetic token
_FIRST_TEXT_ID = FIRST_ID + 16
_TEXT_IDS = 1_000_000


def split(text: str) -> list[str]:
    """The tokens of a text."""
    return [text[at : at + TOKEN_CHARS] for at in range(0, len(text), TOKEN_CHARS)]


def count(text: str) -> int:
    """How many tokens a text has."""
    return -(-len(text) // TOKEN_CHARS)


@lru_cache(maxsize=1024)
def ids(text: str) -> tuple[int, ...]:
    """The ids of a text."""
    return tuple(_FIRST_TEXT_ID + zlib.crc32(_encoded(token)) % _TEXT_IDS for token in split(text))


def call_text(name: str, arguments: str) -> str:
    """The text that stands for a native tool call."""
    return f"<tool_call>{name}\n{arguments}</tool_call>"


def message_text(message: Mapping[str, Any]) -> str:
    """Everything of a chat message that costs tokens."""
    text = content_text(message)
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for call in calls:
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                text += call_text(str(function.get("name")), str(function.get("arguments")))
    return text


def prompt_ids(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """The ids of a conversation, up to and including the mark that asks for an answer."""
    found: list[int] = []
    for message in messages:
        found.append(ROLE_IDS.get(str(message.get("role")), OTHER_ROLE_ID))
        found.extend(ids(message_text(message)))
        found.append(END_ID)
    return [*found, ROLE_IDS["assistant"]]


def prompt_count(messages: Sequence[Mapping[str, Any]]) -> int:
    """``len(prompt_ids(messages))`` without making them."""
    return sum(count(message_text(message)) + 2 for message in messages) + 1


def completion_ids(text: str) -> list[int]:
    """The ids of an answer, its end included."""
    return [*ids(text), END_ID]


def logprobs(text: str, alternatives: int) -> list[dict[str, Any]]:
    """One entry for each of `completion_ids`, in the shape of a chat completion; values follow from the ids."""
    return [
        _entry(token, -(token_id % 1000) / 1000, alternatives)
        for token, token_id in zip([*split(text), END_TOKEN], completion_ids(text), strict=True)
    ]


def _entry(token: str, logprob: float, alternatives: int) -> dict[str, Any]:
    chosen = {"token": token, "logprob": logprob, "bytes": list(_encoded(token))}
    others = [
        {"token": f"<|other{rank}|>", "logprob": logprob - rank, "bytes": list(f"<|other{rank}|>".encode())}
        for rank in range(1, alternatives)
    ]
    return {**chosen, "top_logprobs": [dict(chosen), *others] if alternatives else []}


def _encoded(token: str) -> bytes:
    return token.encode(errors="surrogatepass")
