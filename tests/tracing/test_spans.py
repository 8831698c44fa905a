"""Spans: the names of the GenAI conventions, in their places, and nothing at all when they are off."""

import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.support import MIN_MAX, Model, call, rollout_request, settings_in
from verilog_taskapp.errors import InferenceFailed
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.rollout.service import RolloutService
from verilog_taskapp.services import Services, open_services
from verilog_taskapp.settings import load_settings
from verilog_taskapp.tracing import spans as module
from verilog_taskapp.tracing.spans import NO_SPANS, Spans, SpansUnavailable, answer_facts, open_spans


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Spans:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(provider)


@pytest.fixture
async def services(tmp_path: Path, golden_cache: Path) -> AsyncIterator[tuple[Services, Model]]:
    settings = settings_in(tmp_path, cache_dir=golden_cache, inference_retries=0)
    model = Model(load_problem_set(settings))
    async with open_services(settings, transport=model) as opened:
        yield opened, model


def traced(services: Services, spans: Spans) -> RolloutService:
    return RolloutService(services.world, services.chat, services.rubrics, services.traces, spans)


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    assert span.attributes is not None
    return span.attributes


async def test_a_rollout_is_a_tree_of_spans(
    services: tuple[Services, Model], spans: Spans, exporter: InMemorySpanExporter
) -> None:
    answer = await traced(services[0], spans).run(rollout_request(env=MIN_MAX))
    found = exporter.get_finished_spans()
    root = found[-1]
    assert (root.name, root.parent) == ("invoke_agent grpo-verilog", None)
    assert attributes(root) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "grpo-verilog",
        "gen_ai.request.model": "scripted",
        "verilog.run_id": "run-1",
        "verilog.problem_id": MIN_MAX["problem"],
        "verilog.trace_id": (answer.metrics.details.model_extra or {})["trace_id"],
        "verilog.return": answer.metrics.mean_return,
        "verilog.passed": True,
    }
    children = [one for one in found if one.parent is not None and one.parent.span_id == root.context.span_id]
    tools = ["write_file", "compile", "simulate", "submit"]
    assert [one.name for one in children] == [
        part for tool in tools for part in ("chat scripted", f"execute_tool {tool}")
    ]
    chat, tool = children[0], children[1]
    assert chat.kind is SpanKind.CLIENT
    asked = attributes(chat)
    assert (asked["gen_ai.operation.name"], asked["gen_ai.provider.name"]) == ("chat", "openai")
    assert (asked["gen_ai.request.model"], asked["server.address"]) == ("scripted", "model.test")
    assert asked["gen_ai.response.finish_reasons"] == ("stop",)
    assert attributes(tool) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "write_file",
        "gen_ai.tool.type": "function",
        "verilog.outcome": "ok",
    }
    verdicts = [one for one in found if one.name == "verdict"]
    by_id = {one.context.span_id: one for one in found}
    assert [by_id[one.parent.span_id].name for one in verdicts if one.parent] == [
        "execute_tool simulate",
        "execute_tool submit",
    ]
    assert attributes(verdicts[0])["gen_ai.evaluation.score.label"] == "pass"
    for one in verdicts:
        assert one.start_time is not None
        assert one.end_time is not None
        assert one.start_time <= one.end_time


async def test_a_script_has_tools_only(
    services: tuple[Services, Model], spans: Spans, exporter: InMemorySpanExporter
) -> None:
    await traced(services[0], spans).run(rollout_request(env=MIN_MAX, ops=[call("compile"), call("submit")]))
    names = [one.name for one in exporter.get_finished_spans()]
    assert names == ["execute_tool compile", "verdict", "execute_tool submit", "invoke_agent grpo-verilog"]


async def test_what_fails_says_so_without_quoting_anybody(
    services: tuple[Services, Model], spans: Spans, exporter: InMemorySpanExporter
) -> None:
    services[1].answer = lambda _: httpx.ConnectError("sk-secret")
    service = traced(services[0], spans)
    with pytest.raises(InferenceFailed):
        await service.run(rollout_request(env=MIN_MAX))
    found = exporter.get_finished_spans()
    assert [one.name for one in found] == ["chat scripted", "invoke_agent grpo-verilog"]
    for one in found:
        assert attributes(one)["error.type"] == "inference_failed"
        assert one.status.status_code is StatusCode.ERROR
        assert one.events == ()
    assert "sk-secret" not in str([one.to_json() for one in found])


@pytest.mark.parametrize(
    "response", [{}, {"usage": None, "choices": None}, {"usage": {"prompt_tokens": "3"}, "model": 7, "choices": [None]}]
)
def test_an_answer_may_say_anything_about_itself(response: dict[str, Any]) -> None:
    assert set(answer_facts(response).values()) == {None}


async def test_off_is_one_shared_object() -> None:
    async with open_spans(load_settings()) as spans:
        assert spans is NO_SPANS
    first, second = NO_SPANS.model_call("m", None), NO_SPANS.rollout("r", "p", None)
    assert first is second
    with first as span:
        span.note({"a": 1})
        span.failed("x")


@pytest.mark.parametrize("variable", ["VERILOG_OTEL_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"])
async def test_a_collector_is_named_by_the_standards_variable_or_ours(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "http://collector.test:4318/")
    asked: list[str] = []

    def exporting(endpoint: str) -> TracerProvider:
        asked.append(endpoint)
        return TracerProvider()

    monkeypatch.setattr(module, "_exporting", exporting)
    async with open_spans(load_settings()) as spans:
        assert spans is not NO_SPANS
    assert asked == ["http://collector.test:4318/"]


def test_without_the_extra_the_start_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SpansUnavailable, match=r"verilog-taskapp\[otel\]"):
        module._exporting("http://collector.test")
