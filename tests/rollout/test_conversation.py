"""The conversation: what is sent at each turn, and what a step records of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verilog_taskapp.rollout.conversation import EMPTY_ANSWER, Conversation
from verilog_taskapp.rollout.parsing import read_answer


def native(*ids: str | None) -> dict[str, Any]:
    calls = [{"id": one, "type": "function", "function": {"name": "compile", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answered(conversation: Conversation, message: dict[str, Any]) -> None:
    conversation.answered(message, read_answer(message))


def test_it_begins_with_the_system_and_the_task() -> None:
    conversation = Conversation("be good", "do it")
    assert conversation.messages == [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "do it"},
    ]


def test_each_request_records_only_what_is_new() -> None:
    conversation = Conversation("s", "t")
    records = []
    for turn in range(3):
        body = {"model": "m", "messages": list(conversation.messages)}
        records.append(conversation.request(body))
        answered(conversation, {"content": f"answer {turn}"})
        conversation.told(f"result {turn}")
    assert [record["earlier_messages"] for record in records] == [0, 2, 4]
    assert [len(record["messages"]) for record in records] == [2, 2, 2]
    together = [message for record in records for message in record["messages"]]
    assert together == conversation.messages[: len(together)]
    assert all(record["model"] == "m" for record in records)


def test_a_record_does_not_change_afterwards() -> None:
    conversation = Conversation("s", "t")
    record = conversation.request({"messages": conversation.messages})
    answered(conversation, {"content": "a"})
    conversation.told("r")
    assert len(record["messages"]) == 2


def test_reasoning_is_not_sent_back() -> None:
    conversation = Conversation("s", "t")
    answered(conversation, {"content": "<think>secret plan</think>I compile.", "reasoning_content": "more plans"})
    assert conversation.messages[-1] == {"role": "assistant", "content": "I compile."}


@pytest.mark.parametrize("content", ["", None, "<think>only thoughts", [], [{"type": "text", "text": " "}]])
def test_an_empty_answer_is_sent_back_as_words(content: Any) -> None:
    conversation = Conversation("s", "t")
    answered(conversation, {"content": content})
    assert conversation.messages[-1] == {"role": "assistant", "content": EMPTY_ANSWER}


def test_a_native_call_is_answered_by_a_tool_message() -> None:
    conversation = Conversation("s", "t")
    answered(conversation, native("c1"))
    conversation.told("compiled")
    assert conversation.messages[2:] == [
        {"role": "assistant", "content": None, "tool_calls": native("c1")["tool_calls"]},
        {"role": "tool", "tool_call_id": "c1", "content": "compiled"},
    ]
    answered(conversation, {"content": "text now"})
    conversation.told("hm")
    assert conversation.messages[-1] == {"role": "user", "content": "hm"}


def test_of_several_native_calls_only_the_played_one_is_kept() -> None:
    conversation = Conversation("s", "t")
    answered(conversation, native("c1", "c2", "c3"))
    conversation.told("compiled")
    assert [call["id"] for call in conversation.messages[2]["tool_calls"]] == ["c1"]
    assert [message["role"] for message in conversation.messages[2:]] == ["assistant", "tool"]


def test_a_native_call_without_an_id_is_told_as_text() -> None:
    conversation = Conversation("s", "t")
    answered(conversation, native(None))
    conversation.told("compiled")
    assert [message["role"] for message in conversation.messages[2:]] == ["assistant", "user"]
    assert "tool_calls" not in conversation.messages[2]


def test_an_unusable_native_call_still_gets_its_tool_message() -> None:
    conversation = Conversation("s", "t")
    message = {
        "content": "",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "dance", "arguments": "{"}}],
    }
    answered(conversation, message)
    conversation.told("there is no tool dance")
    assert [one["role"] for one in conversation.messages[2:]] == ["assistant", "tool"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
CALL = st.fixed_dictionaries(
    {}, optional={"id": JSON, "type": JSON, "function": JSON | st.fixed_dictionaries({}, optional={"name": JSON})}
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "role": JSON,
        "content": JSON,
        "tool_calls": JSON | st.lists(CALL | JSON, max_size=3),
        "function_call": JSON | CALL,
        "reasoning": JSON,
        "reasoning_content": JSON,
    },
)


@given(MESSAGE)
def test_no_message_of_a_model_server_breaks_the_conversation(message: dict[str, Any]) -> None:
    conversation = Conversation("s", "t")
    answered(conversation, message)
    conversation.told("result")
    said, told = conversation.messages[2:]
    assert said["role"] == "assistant"
    assert (told["role"] == "tool") is ("tool_calls" in said)
