"""OpenTelemetry spans of rollouts, model calls, tools and verdicts, named by the GenAI semantic conventions.

Off, nothing of OpenTelemetry is imported and a span is one shared object that does nothing. Spans hold no text of a
model, a design or a problem.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from verilog_taskapp import __version__
from verilog_taskapp.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

SERVICE_NAME = "grpo-verilog"
"""Where ``OTEL_SERVICE_NAME`` does not say otherwise."""
_GROQ, _OPENAI = "groq", "openai"
"""``gen_ai.provider.name``; a server that speaks OpenAI's protocol counts as it."""

T = TypeVar("T")
Attribute = str | int | float | bool | tuple[str, ...]


class SpansUnavailable(ValueError):
    """Spans are asked for and the extra is not installed."""


class OpenSpan(Protocol):
    """What can be added to a span while it is open."""

    def note(self, attributes: Mapping[str, Attribute | None]) -> None:
        """Add attributes; those that are None are left out."""

    def failed(self, code: str) -> None:
        """It did not work; `code` is the ``error.type``."""


class _Nothing:
    def note(self, attributes: Mapping[str, Attribute | None]) -> None:
        """Nothing."""

    def failed(self, code: str) -> None:
        """Nothing."""


class _Recording:
    def __init__(self, span: "Span") -> None:
        self._span = span

    def note(self, attributes: Mapping[str, Attribute | None]) -> None:
        """See `OpenSpan`."""
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def failed(self, code: str) -> None:
        """See `OpenSpan`."""
        from opentelemetry.trace import StatusCode

        self._span.set_attribute("error.type", code)
        self._span.set_status(StatusCode.ERROR)


_OFF: AbstractContextManager[OpenSpan] = nullcontext(_Nothing())


class Spans:
    """Makes spans with the tracer of `provider`; None makes none."""

    def __init__(self, provider: "TracerProvider | None" = None) -> None:
        self._tracer: Tracer | None = None
        if provider is not None:
            self._tracer = provider.get_tracer("verilog_taskapp", __version__)

    def rollout(self, run_id: str, problem_id: str, model: str | None) -> AbstractContextManager[OpenSpan]:
        """One rollout from its first prompt to its end."""
        if self._tracer is None:
            return _OFF
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": SERVICE_NAME,
            "gen_ai.request.model": model,
            "verilog.run_id": run_id,
            "verilog.problem_id": problem_id,
        }
        return self._span(self._tracer, f"invoke_agent {SERVICE_NAME}", attributes)

    def model_call(self, model: str, host: str | None) -> AbstractContextManager[OpenSpan]:
        """One chat completion, retries included."""
        if self._tracer is None:
            return _OFF
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _GROQ if host is not None and host.endswith("groq.com") else _OPENAI,
            "gen_ai.request.model": model,
            "server.address": host,
        }
        return self._span(self._tracer, f"chat {model}", attributes, client=True)

    def tool(self, name: str) -> AbstractContextManager[OpenSpan]:
        """One tool call."""
        if self._tracer is None:
            return _OFF
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
        return self._span(self._tracer, f"execute_tool {name}", attributes)

    def verdict(self, label: str, reason: str, milliseconds: float) -> None:
        """A verdict that was just given, in the span that is open."""
        if self._tracer is None:
            return
        end = time.time_ns()
        attributes: dict[str, Attribute] = {
            "gen_ai.evaluation.name": "verilog.verdict",
            "gen_ai.evaluation.score.label": label,
            "gen_ai.evaluation.score.value": 1.0 if label == "pass" else 0.0,
            "verilog.verdict.reason": reason,
        }
        span = self._tracer.start_span("verdict", start_time=end - int(milliseconds * 1e6), attributes=attributes)
        span.end(end)

    @contextmanager
    def _span(
        self, tracer: "Tracer", name: str, attributes: Mapping[str, Attribute | None], *, client: bool = False
    ) -> Iterator[OpenSpan]:
        from opentelemetry.trace import SpanKind

        given = {key: value for key, value in attributes.items() if value is not None}
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        # An exception's text may quote a model or a server: its type is enough.
        with tracer.start_as_current_span(
            name, kind=kind, attributes=given, record_exception=False, set_status_on_exception=False
        ) as span:
            recording = _Recording(span)
            try:
                yield recording
            except BaseException as error:
                recording.failed(getattr(error, "code", None) or type(error).__name__)
                raise


NO_SPANS = Spans()
"""Makes none."""


@asynccontextmanager
async def open_spans(settings: Settings) -> AsyncIterator[Spans]:
    """What the settings mean: spans for a collector, or none; at the end what is left is sent.

    Raises `SpansUnavailable`.
    """
    if not settings.otel_endpoint:
        yield NO_SPANS
        return
    provider = await asyncio.to_thread(_exporting, settings.otel_endpoint)
    try:
        yield Spans(provider)
    finally:
        await asyncio.to_thread(provider.shutdown)


def answer_facts(response: Mapping[str, Any]) -> dict[str, Attribute | None]:
    """What a chat completion says about itself, for its span."""
    usage = response.get("usage") or {}
    reasons = tuple(
        str(choice["finish_reason"])
        for choice in response.get("choices") or ()
        if isinstance(choice, dict) and choice.get("finish_reason")
    )
    return {
        "gen_ai.response.model": _typed(response.get("model"), str),
        "gen_ai.response.id": _typed(response.get("id"), str),
        "gen_ai.response.finish_reasons": reasons or None,
        "gen_ai.usage.input_tokens": _typed(usage.get("prompt_tokens"), int),
        "gen_ai.usage.output_tokens": _typed(usage.get("completion_tokens"), int),
    }


def _typed(value: Any, kind: type[T]) -> T | None:
    return value if type(value) is kind else None


def _exporting(endpoint: str) -> "TracerProvider":
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise SpansUnavailable("spans need the extra 'otel': pip install 'verilog-taskapp[otel]'") from error
    resource = Resource.create({"service.version": __version__})  # OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": SERVICE_NAME}))
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")))
    return provider
