"""What the proxy changes, and that it changes nothing else."""

import copy
import json
from typing import Any

import orjson
import pytest
from pydantic import SecretStr

from verilog_taskapp.inference.proxy import (
    DROPPED_FIELDS,
    UpstreamRefused,
    adapt_request,
    refusal,
    synthesize_tool_calls,
    with_hint,
)

HINT = "Answer with exactly one JSON object."
USER = {"role": "user", "content": "write TopModule"}
TOOLS = [
    {"type": "function", "function": {"name": "write_file", "parameters": {}}},
    {"type": "function", "function": {"name": "compile", "parameters": {}}},
]
WHOLE_BODY: dict[str, Any] = {
    "model": "qwen/qwen3-32b",
    "messages": [USER],
    "temperature": 0.2,
    "top_p": 0.9,
    "max_tokens": 64,
    "seed": 3,
    "stream": True,
    "logprobs": True,
    "unknown_field": {"kept": [1, None]},
}


class TestRequest:
    def test_a_body_without_quirks_passes_through_unchanged(self) -> None:
        assert adapt_request(WHOLE_BODY, "openai") == WHOLE_BODY

    @pytest.mark.parametrize("vendor", ["openai", "groq"])
    def test_trainer_fields_that_servers_refuse_are_dropped(self, vendor: Any) -> None:
        quirky = {**WHOLE_BODY, **dict.fromkeys(DROPPED_FIELDS, 1)}
        assert adapt_request(quirky, vendor) == WHOLE_BODY
        assert set(DROPPED_FIELDS) == {"stop_after_tool_calls", "thinking_mode", "thinking_budget", "reasoning"}

    def test_the_body_of_the_client_is_never_modified(self) -> None:
        body = {
            **WHOLE_BODY,
            "model": "gpt-5",
            "tools": TOOLS,
            "reasoning": {},
            "messages": [{"role": "system", "content": "be brief"}, USER],
        }
        before = copy.deepcopy(body)
        adapt_request(body, "openai", HINT)
        adapt_request(body, "groq", HINT)
        assert body == before

    def test_groq_knows_max_tokens_only(self) -> None:
        adapted = adapt_request({"model": "m", "messages": [], "max_completion_tokens": 99}, "groq")
        assert adapted == {"model": "m", "messages": [], "max_tokens": 99}
        both = adapt_request({"model": "m", "max_completion_tokens": 99, "max_tokens": 7}, "groq")
        assert both == {"model": "m", "max_tokens": 7}

    @pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini", "GPT-5.1", "openai/gpt-5-nano"])
    def test_gpt5_gets_its_own_token_limit_no_sampling_and_one_tool_call(self, model: str) -> None:
        body = {**WHOLE_BODY, "model": model, "tools": TOOLS, "parallel_tool_calls": True}
        adapted = adapt_request(body, "openai")
        assert adapted["max_completion_tokens"] == 16_000
        assert adapted["parallel_tool_calls"] is False
        assert adapted["tool_choice"] == {"type": "function", "function": {"name": "write_file"}}
        assert not {"max_tokens", "temperature", "top_p"} & set(adapted)
        assert adapted["unknown_field"] == WHOLE_BODY["unknown_field"]

    @pytest.mark.parametrize(
        ("limits", "expected"),
        [
            ({"max_tokens": 20_000}, {"max_completion_tokens": 20_000}),
            ({"max_completion_tokens": 100}, {"max_completion_tokens": 16_000}),
            ({"max_completion_tokens": 30_000, "max_tokens": 5}, {"max_completion_tokens": 30_000}),
            ({}, {}),
        ],
    )
    def test_gpt5_is_given_16000_tokens_at_least_when_limited_at_all(
        self, limits: dict[str, int], expected: dict[str, int]
    ) -> None:
        assert adapt_request({"model": "gpt-5", **limits}, "openai") == {"model": "gpt-5", **expected}

    def test_gpt5_without_tools_gets_no_tool_fields_and_a_chosen_tool_stays(self) -> None:
        assert adapt_request({"model": "gpt-5", "tools": []}, "openai") == {"model": "gpt-5", "tools": []}
        chosen = adapt_request({"model": "gpt-5", "tools": TOOLS, "tool_choice": "auto"}, "openai")
        assert chosen["tool_choice"] == "auto"

    @pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-oss-120b", "my-gpt-5-clone", None])
    def test_other_models_keep_their_sampling(self, model: Any) -> None:
        body = {**WHOLE_BODY, "model": model}
        assert adapt_request(body, "openai") == body


class TestHint:
    def test_the_hint_ends_the_system_message(self) -> None:
        adapted = adapt_request(
            {"messages": [{"role": "system", "content": "be brief", "name": "s"}, USER]}, "openai", HINT
        )
        assert adapted["messages"] == [{"role": "system", "content": f"be brief\n\n{HINT}", "name": "s"}, USER]

    def test_a_conversation_without_a_system_message_gets_one(self) -> None:
        assert with_hint([USER], HINT) == [{"role": "system", "content": HINT}, USER]

    @pytest.mark.parametrize(
        "messages",
        [
            [USER],
            [],
            [{"role": "system", "content": "be brief"}, USER],
            [{"role": "developer", "content": "be brief"}, USER],
            [{"role": "system", "content": [{"type": "text", "text": "be brief"}]}, USER],
            [{"role": "system", "content": None}, USER],
            [USER, {"role": "system", "content": "late"}],
        ],
    )
    def test_the_hint_is_there_once_however_often_it_is_injected(self, messages: list[Any]) -> None:
        once = with_hint(messages, HINT)
        assert json.dumps(once).count(HINT) == 1
        assert with_hint(once, HINT) == once
        assert all(message in once for message in messages if message["role"] == "user")

    def test_a_hint_in_parts_is_added_as_a_part(self) -> None:
        part = {"type": "text", "text": "be brief"}
        assert with_hint([{"role": "system", "content": [part]}], HINT) == [
            {"role": "system", "content": [part, {"type": "text", "text": HINT}]}
        ]

    @pytest.mark.parametrize("messages", ["not a list", None, {"role": "user"}])
    def test_messages_that_are_no_list_are_left_for_the_upstream_to_refuse(self, messages: Any) -> None:
        assert adapt_request({"messages": messages}, "openai", HINT) == {"messages": messages}


def parse(text: str) -> tuple[str, dict[str, Any]] | None:
    try:
        call = json.loads(text)
    except ValueError:
        return None
    return call["tool"], call["args"]


def response_with(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {
        "id": "r1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}],
        "usage": {"total_tokens": 5},
    }


class TestSynthesis:
    def test_a_call_in_the_text_becomes_a_tool_call(self) -> None:
        text = '{"tool": "write_file", "args": {"path": "TopModule.v", "content": "é\\n"}}'
        response = response_with({"role": "assistant", "content": text}, logprobs={"content": []})
        before = copy.deepcopy(response)
        changed = synthesize_tool_calls(response, parse)
        assert response == before
        choice = changed["choices"][0]
        (call,) = choice["message"]["tool_calls"]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["content"] == text
        assert choice["logprobs"] == {"content": []}
        assert changed["usage"] == {"total_tokens": 5}
        assert call["type"] == "function"
        assert call["function"]["name"] == "write_file"
        assert json.loads(call["function"]["arguments"]) == {"path": "TopModule.v", "content": "é\n"}
        assert call["id"].startswith("call_parsed_")
        assert len(call["id"]) <= 40

    def test_two_calls_never_share_an_id(self) -> None:
        response = response_with({"content": '{"tool": "compile", "args": {}}'})
        ids = {synthesize_tool_calls(response, parse)["choices"][0]["message"]["tool_calls"][0]["id"] for _ in range(9)}
        assert len(ids) == 9

    def test_text_in_parts_is_read_and_every_choice_is(self) -> None:
        parts = [{"type": "text", "text": '{"tool": "submit",'}, {"type": "text", "text": ' "args": {}}'}]
        response = response_with({"content": parts})
        response["choices"].append({"message": {"content": "no call"}, "finish_reason": "stop"})
        first, second = synthesize_tool_calls(response, parse)["choices"]
        assert first["message"]["tool_calls"][0]["function"] == {"name": "submit", "arguments": "{}"}
        assert second == {"message": {"content": "no call"}, "finish_reason": "stop"}

    @pytest.mark.parametrize(
        "message",
        [
            {"content": '{"tool": "compile", "args": {}}', "tool_calls": [{"id": "x"}]},
            {"content": '{"tool": "compile", "args": {}}', "function_call": {"name": "compile"}},
            {"content": "I would compile now."},
            {"content": None},
            {"content": ""},
            {},
        ],
    )
    def test_an_answer_with_a_call_or_without_one_of_ours_stays(self, message: dict[str, Any]) -> None:
        assert synthesize_tool_calls(response_with(message), parse) == response_with(message)

    @pytest.mark.parametrize(
        "response", [{}, {"choices": None}, {"choices": ["x", None]}, {"choices": [{"message": "x"}]}]
    )
    def test_what_is_no_completion_stays_as_it_is(self, response: dict[str, Any]) -> None:
        assert synthesize_tool_calls(response, parse) == response


class TestRefusal:
    KEY = SecretStr("sk-proj-abcdefgh12345678")

    def test_status_and_json_body_are_kept(self) -> None:
        body = {"error": {"message": "model not found", "code": 404, "param": None}}
        fault = refusal(404, orjson.dumps(body), {"content-type": "application/json"}, self.KEY)
        assert isinstance(fault, UpstreamRefused)
        assert fault.status == 404
        assert not fault.retryable
        assert fault.extras == {
            "upstream_status": 404,
            "upstream_body": body,
            "upstream_content_type": "application/json",
        }

    def test_two_refusals_keep_their_own_status(self) -> None:
        first, second = refusal(400, b"{}", {}, None), refusal(503, b"{}", {}, None)
        assert (first.status, second.status, UpstreamRefused.status) == (400, 503, 500)

    def test_overload_is_retryable_and_says_when(self) -> None:
        fault = refusal(429, b"slow down", {"retry-after": "7"}, self.KEY)
        assert (fault.status, fault.retryable, fault.retry_after_s) == (429, True, 7.0)
        assert fault.extras["upstream_body"] == "slow down"
        dated = refusal(503, b"", {"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, None, now=50.0)
        assert dated.retry_after_s == 10.0

    def test_a_redirect_is_a_bad_gateway(self) -> None:
        fault = refusal(302, b"", {"location": "https://evil.com"}, self.KEY)
        assert (fault.status, fault.extras["upstream_status"]) == (502, 302)
        assert "evil" not in str(fault.extras)

    @pytest.mark.parametrize(
        "body",
        [
            b'{"error": {"message": "Incorrect API key provided: sk-proj-abcdefgh12345678."}}',
            b'{"error": {"message": "Incorrect API key provided: sk-proj-********5678. See the site."}}',
            b'{"sk-proj-abcdefgh12345678": [["sk-proj-abcdefgh12345678"]]}',
            b'{"error": {"message": "key ending in 5678 is unknown, got sk-proj-abc"}}',
            b'{"error": "sk-proj-\\u0061bcdefgh12345678"}',
            b"<html>Bearer sk-proj-abcdefgh12345678</html>",
            b"x" * 480 + b" Bearer sk-proj-abcdefgh12345678 " + b"y" * 400,
            b"x " * 1990 + b"Bearer sk-proj-abcdefgh12345678 " + b"y" * 400,
        ],
    )
    def test_no_part_of_the_key_comes_back(self, body: bytes) -> None:
        fault = refusal(401, body, {}, self.KEY)
        shown = repr(fault) + str(fault) + json.dumps(fault.extras)
        assert "abc" not in shown
        assert "5678" not in shown

    def test_a_long_body_is_cut(self) -> None:
        page = refusal(500, b"<p>" + b"z" * 100_000, {"content-type": "text/html"}, None)
        assert len(page.extras["upstream_body"]) == 500
        listing = refusal(500, orjson.dumps(["z" * 100_000]), {}, None)
        assert len(listing.extras["upstream_body"]) == 500

    def test_a_deeply_nested_body_is_no_way_to_break_the_proxy(self) -> None:
        fault = refusal(400, b"[" * 900 + b"]" * 900, {}, self.KEY)
        assert json.dumps(fault.extras["upstream_body"]).count("[") == 32
