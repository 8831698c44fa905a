"""The messages of one episode, and which of them a request added."""

from collections.abc import Mapping
from typing import Any

from verilog_taskapp.rollout.parsing import Answer

EMPTY_ANSWER = "(empty answer)"
"""Stands for an assistant message without text: several servers refuse an empty one."""


class Conversation:
    """A growing list of chat messages."""

    def __init__(self, system: str, task: str) -> None:
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": system},
            {"role": "user", "content": task},
        ]
        self._sent = 0
        self._open_call: str | None = None

    def request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What a step records of its request: the messages new since the step before, and how many came earlier.

        The whole conversation is the ``messages`` of all steps, one after the other.
        """
        earlier, self._sent = self._sent, len(self.messages)
        return {**body, "messages": self.messages[earlier:], "earlier_messages": earlier}

    def answered(self, message: Mapping[str, Any], answer: Answer) -> None:
        """Add the model's answer, without its reasoning and with one native call at most."""
        if answer.source == "native" and answer.call_id is not None:
            calls = (one for one in message["tool_calls"] if isinstance(one, dict))
            call = next(one for one in calls if one.get("id") == answer.call_id)
            self._open_call = answer.call_id
            self.messages.append({"role": "assistant", "content": answer.text or None, "tool_calls": [call]})
        else:
            self.messages.append({"role": "assistant", "content": answer.text or EMPTY_ANSWER})

    def told(self, content: str) -> None:
        """Add the feedback: as the tool's message after a native call, else as the user's."""
        if self._open_call is not None:
            self.messages.append({"role": "tool", "tool_call_id": self._open_call, "content": content})
            self._open_call = None
        else:
            self.messages.append({"role": "user", "content": content})
