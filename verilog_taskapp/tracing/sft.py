"""Conversations of passing rollouts as fine-tuning examples, in the format of OpenAI's messages.

An example is what TRL's SFTTrainer calls conversational: a ``messages`` column, with tool calls where the model made
them natively and then a ``tools`` column, a JSON string.
"""

import asyncio
import fcntl
import hashlib
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from verilog_taskapp.tracing.record import TraceFacts, TraceRecord
from verilog_taskapp.tracing.rows import clean

PENDING_BYTES = 32 * 1024**2
"""Lines that may wait for the disk; more are dropped."""
NAME_CHARS = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

log = logging.getLogger(__name__)


def example_of(facts: TraceFacts, document: Mapping[str, Any]) -> dict[str, Any] | None:
    """The example in a trace; None where no model talked: a script, or a session, whose trainer holds its words."""
    trace = document["session_trace"]
    messages = [_message(one["message"]) for one in trace["markov_blanket_message_history"]]
    if facts.kind != "rollout" or not any(one["role"] == "assistant" for one in messages):
        return None
    while messages and messages[-1]["role"] != "assistant":
        messages.pop()  # nothing is learnt from what follows the last answer
    return {
        "messages": messages,
        "tools": _tools(trace["event_history"]) if any("tool_calls" in one for one in messages) else None,
        "trace_id": facts.id,
        "run_id": clean(facts.run_id),
        "model": clean(facts.model or ""),
        "dataset": clean(facts.dataset),
        "split": facts.split,
        "problem_id": clean(facts.problem_id),
        "episode_return": facts.episode_return,
        "passed": facts.passed,
    }


def fingerprint(example: Mapping[str, Any]) -> str:
    """The same for equal conversations."""
    return hashlib.sha256(to_json(example["messages"])).hexdigest()


def file_name(run_id: str) -> str:
    """A safe name for a run's file; different runs never share one."""
    safe = _UNSAFE.sub("_", run_id)[:NAME_CHARS].strip(".")
    if safe and safe == run_id:
        return f"{safe}.jsonl"
    digest = hashlib.sha256(run_id.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{safe or 'run'}-{digest}.jsonl"


class SftOutput:
    """Appends examples to a file per run below `folder`, in the background; several processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pending: list[tuple[str, bytes]] = []
        self._pending_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._failing = False
        self.written = 0
        """Examples on disk."""
        self.dropped = 0
        """Examples that the disk did not take."""

    def add(self, record: TraceRecord) -> None:
        """Have a trace's example written, if it passed and has one."""
        example = example_of(record.facts, record.document) if record.facts.passed else None
        if example is None:
            return
        line = _line(example)
        if self._pending_bytes + len(line) > PENDING_BYTES:
            self.dropped += 1
            return
        self._pending.append((file_name(record.facts.run_id), line))
        self._pending_bytes += len(line)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all())

    async def close(self) -> None:
        """Wait until everything is written."""
        if self._task is not None:
            await self._task

    async def _write_all(self) -> None:
        while self._pending:
            lines, self._pending, self._pending_bytes = self._pending, [], 0
            together: dict[str, list[bytes]] = {}
            for name, line in lines:
                together.setdefault(name, []).append(line)
            for name, parts in together.items():
                try:
                    await asyncio.to_thread(append, self._folder / name, b"".join(parts))
                except OSError as error:
                    self.dropped += len(parts)
                    if not self._failing:
                        log.error("fine-tuning examples cannot be written now: %s", error.strerror)
                    self._failing = True
                else:
                    self.written += len(parts)
                    if self._failing:
                        log.warning("fine-tuning examples are written again; %d were dropped", self.dropped)
                    self._failing = False


def append(path: Path, data: bytes) -> None:
    """Add all of it to a file, or nothing. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        end = os.lseek(descriptor, 0, os.SEEK_END)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
        except OSError:
            os.ftruncate(descriptor, end)
            raise
    finally:
        os.close(descriptor)


def _line(example: Mapping[str, Any]) -> bytes:
    return to_json({key: value for key, value in example.items() if value is not None}) + b"\n"


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """One message with the keys that trainers know; a tool call's arguments stay JSON text."""
    found: dict[str, Any] = {"role": message["role"], "content": clean(message.get("content") or "")}
    if calls := message.get("tool_calls"):
        found["tool_calls"] = [_call(call) for call in calls]
    if call_id := message.get("tool_call_id"):
        found["tool_call_id"] = clean(str(call_id))
    return found


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else to_json(arguments or {}).decode()
    return {
        "id": clean(str(call.get("id") or "")),
        "type": "function",
        "function": {"name": clean(str(function.get("name") or "")), "arguments": clean(text)},
    }


def _tools(events: Any) -> str | None:
    for event in events:
        if tools := (event.get("request") or {}).get("tools"):
            return to_json(tools).decode()
    return None
