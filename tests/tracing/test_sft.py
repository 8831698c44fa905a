"""Fine-tuning examples: what they hold, and files that several processes add to while they serve."""

import asyncio
import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tracing.synthetic import synthetic_records
from verilog_taskapp.tracing import sft
from verilog_taskapp.tracing.record import TraceFacts, TraceRecord
from verilog_taskapp.tracing.sft import SftOutput, append, example_of, file_name
from verilog_taskapp.tracing.store import TraceStore

RECORDS = list(synthetic_records(60, steps=2))
PASSED = next(record for record in RECORDS if record.facts.passed)
NATIVE: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "u"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "compile", "arguments": {"a": 1}}, "index": 0}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "fine"},
    {"role": "assistant", "content": "done", "reasoning": "hm"},
    {"role": "user", "content": "the episode is over"},
]
TOOLS = [{"type": "function", "function": {"name": "compile"}}]


def trace_of(messages: list[dict[str, Any]], **changes: Any) -> TraceRecord:
    history = [{"message_type": one["role"], "content": one.get("content"), "message": one} for one in messages]
    events = [{"event_type": "cais", "request": {"tools": TOOLS}}]
    facts = replace(PASSED.facts, **changes)
    return TraceRecord(
        facts, {}, {"session_trace": {"markov_blanket_message_history": history, "event_history": events}}
    )


def example(record: TraceRecord) -> dict[str, Any]:
    found = example_of(record.facts, record.document)
    assert found is not None
    return found


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_example_is_the_conversation_up_to_the_last_answer() -> None:
    found = example(trace_of(NATIVE))
    call = {"id": "c1", "type": "function", "function": {"name": "compile", "arguments": '{"a":1}'}}
    assert found["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "fine", "tool_call_id": "c1"},
        {"role": "assistant", "content": "done"},
    ]
    assert json.loads(found["tools"]) == TOOLS
    assert (found["run_id"], found["passed"]) == (PASSED.facts.run_id, True)


def test_where_no_model_talks_there_is_no_example() -> None:
    assert example_of(PASSED.facts, trace_of(NATIVE[:2]).document) is None
    session: TraceFacts = replace(PASSED.facts, kind="session")
    assert example_of(session, trace_of(NATIVE).document) is None


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        ("grpo-1.a_b", "grpo-1.a_b.jsonl"),
        ("../../etc/passwd", None),
        ("", None),
        (".", None),
        ("x" * 999, None),
        ("ü\0\ud800", None),
    ],
)
def test_a_run_has_a_safe_file_name_of_its_own(run_id: str, name: str | None) -> None:
    found = file_name(run_id)
    assert name is None or found == name
    assert Path(found).name == found
    assert found[0] != "."
    assert len(found) < 120
    assert found.isascii()
    assert file_name(run_id + "?") != found


async def test_passing_conversations_are_written_while_serving_one_file_a_run(tmp_path: Path) -> None:
    async with TraceStore(None, sft=SftOutput(tmp_path / "sft")) as store:
        await asyncio.gather(*(store.save(record) for record in RECORDS))
    passed = [record.facts for record in RECORDS if record.facts.passed]
    assert {path.name for path in (tmp_path / "sft").iterdir()} == {f"{one.run_id}.jsonl" for one in passed}
    found = [line for path in (tmp_path / "sft").iterdir() for line in lines_of(path)]
    assert {line["trace_id"] for line in found} == {one.id for one in passed}
    assert len(found) == len(passed)
    assert store.sft is not None
    assert store.sft.written == len(passed)


async def test_a_disk_that_fails_costs_the_examples_and_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = SftOutput(tmp_path)
    with monkeypatch.context() as patch:

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr(os, "write", full)
        for _ in range(3):
            output.add(PASSED)
            await output.close()
    output.add(PASSED)
    await output.close()
    assert (output.dropped, output.written) == (3, 1)
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert len(lines_of(tmp_path / file_name(PASSED.facts.run_id))) == 1


def test_half_a_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    append(path, b"{}\n")
    write, calls = os.write, []

    def short(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:3])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="No space"):
        append(path, b'{"long": "line"}\n')
    assert path.read_bytes() == b"{}\n"


async def test_what_waits_for_the_disk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sft, "PENDING_BYTES", 3000)
    output = SftOutput(tmp_path)
    for _ in range(50):
        output.add(PASSED)
    await output.close()
    assert 0 < output.written < 10
    assert output.dropped == 50 - output.written


APPENDS = """
import sys
from pathlib import Path
from verilog_taskapp.tracing.sft import append
for _ in range(200):
    append(Path(sys.argv[1]), sys.argv[2].encode() * 9000 + b"\\n")
"""


def test_processes_that_add_to_one_file_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    running = [subprocess.Popen([sys.executable, "-c", APPENDS, str(path), letter]) for letter in "ab"]
    assert [one.wait() for one in running] == [0, 0]
    found = sorted(path.read_text().splitlines())
    assert found == ["a" * 9000] * 200 + ["b" * 9000] * 200
