"""Prometheus metrics, of one process or, where ``PROMETHEUS_MULTIPROC_DIR`` is set, of all workers together."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from verilog_taskapp.contracts import RolloutResponse
from verilog_taskapp.errors import Aborted, TaskAppError
from verilog_taskapp.icarus.runner import Step, StepResult
from verilog_taskapp.rollout.outcome import StepFacts
from verilog_taskapp.services import Services

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
REFRESH_S = 1.0
"""How old another worker's gauges may be."""
_ROLLOUT_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)
_WAIT_S = (0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60)
_CHILD_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_MODEL_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 90)


class Metrics:
    """Counters that the routes and the services feed; gauges that are read from the services when asked."""

    def __init__(self, services: Services) -> None:
        self._services = services
        registry = self._registry = CollectorRegistry()
        self.rollouts = Counter("verilog_rollouts", "Rollouts by how they ended", ["status"], registry=registry)
        self.seconds = _seconds("verilog_rollout_seconds", "Wall-clock time of rollouts", _ROLLOUT_S, registry)
        self._queued = _seconds("verilog_rollout_wait_seconds", "Time of rollouts in line", _WAIT_S, registry)
        self._steps = Counter(
            "verilog_steps", "Steps of rollouts by tool and outcome", ["tool", "outcome"], registry=registry
        )
        self._verdicts = Counter(
            "verilog_verdicts", "Verdicts of rollouts by result and reason", ["result", "reason"], registry=registry
        )
        self._model = _seconds("verilog_inference_seconds", "Model calls, retries included", _MODEL_S, registry)
        self._retries = Counter(
            "verilog_inference_retries", "Failed attempts of model calls by reason", ["reason"], registry=registry
        )
        self._child_wait = _seconds("verilog_child_wait_seconds", "Time of jobs in line", _WAIT_S, registry)
        self._child_cpu = _seconds("verilog_child_cpu_seconds", "CPU time of children", _CHILD_S, registry, "stage")
        self._child_wall = _seconds("verilog_child_wall_seconds", "Time of children", _CHILD_S, registry, "stage")
        self._cache = Counter("verilog_verdict_cache", "Uses of the verdict cache", ["event"], registry=registry)
        self._expired = Counter("verilog_sessions_expired", "Sessions that expired", registry=registry)
        self._traces = Counter("verilog_traces", "Traces by what became of them", ["event"], registry=registry)
        self._sft = Counter(
            "verilog_sft_examples", "Fine-tuning examples by what became of them", ["event"], registry=registry
        )
        self._counted = {"hits": 0, "misses": 0, "evictions": 0, "expired": 0}
        self._traces_counted: dict[str, int] = {}
        self._sft_counted: dict[str, int] = {}
        self._gauges = self._make_gauges()
        services.world.runner.observe_step = self._child
        services.world.runner.observe_wait = self._child_wait.observe
        services.rollouts.admission.observe_wait = self._queued.observe
        services.rollouts.observe_step = self._step

    def _make_gauges(self) -> list[tuple[Gauge, Callable[[], float]]]:
        services = self._services
        runner, admission = services.world.runner, services.rollouts.admission
        # Sessions are counted over all workers by each of them; everything else is a worker's own.
        sums: tuple[tuple[str, str, Callable[[], float]], ...] = (
            ("verilog_rollouts_in_flight", "Rollouts running now", lambda: admission.in_flight),
            ("verilog_rollouts_queued", "Rollouts in line", lambda: admission.waiting),
            ("verilog_rollouts_limit", "Rollouts that may run at once", lambda: admission.capacity),
            ("verilog_draining", "Processes that are shutting down", lambda: admission.draining),
            ("verilog_children_busy", "Simulator jobs running now", lambda: runner.busy),
            ("verilog_children_waiting", "Simulator jobs in line", lambda: runner.waiting),
            ("verilog_children_limit", "Simulator jobs that may run at once", lambda: runner.children),
            ("verilog_traces_queued", "Traces that wait for the database", lambda: services.traces.queued),
            ("verilog_traces_queued_bytes", "Their size in memory", lambda: services.traces.queued_bytes),
            ("verilog_traces_failing", "Processes that cannot use the database", lambda: services.traces.failing),
        )
        sessions = Gauge("verilog_sessions_open", "Open sessions", registry=self._registry, multiprocess_mode="livemax")
        return [
            (sessions, lambda: len(services.sessions)),
            *(
                (Gauge(name, what, registry=self._registry, multiprocess_mode="livesum"), read)
                for name, what, read in sums
            ),
        ]

    @property
    def multiprocess(self) -> bool:
        """Whether other processes tell this one's numbers too."""
        return MULTIPROCESS in os.environ

    async def keep_fresh(self) -> None:
        """Bring the gauges up to date for whichever process is asked, until cancelled."""
        while True:
            self.refresh()
            await asyncio.sleep(REFRESH_S)

    def ended(self, response: RolloutResponse, seconds: float) -> None:
        """Count a rollout, or each member of a group, that came to its end."""
        for one in response.trajectories:
            if one.error is not None:
                self._count_failure(one.error)
            else:
                self.rollouts.labels(one.status or response.metrics.details.status or "completed").inc()
        self.seconds.observe(seconds)

    def failed(self, error: TaskAppError) -> None:
        """Count a rollout, or each member of a group, that did not come to its end."""
        own = {**error.extras, "code": "aborted" if isinstance(error, Aborted) else error.code}
        for one in error.extras.get("members") or [own]:
            self._count_failure(one)

    def _count_failure(self, error: Mapping[str, Any]) -> None:
        self.rollouts.labels(error["code"]).inc()
        for attempt in error.get("attempts") or ():
            self._retries.labels(str(attempt["reason"])).inc()

    def refresh(self) -> None:
        """Bring gauges and totals up to date."""
        for gauge, read in self._gauges:
            gauge.set(read())
        verdicts = self._services.world.judge.verdicts
        totals = {name: getattr(verdicts, name) for name in ("hits", "misses", "evictions")}
        for name, total in totals.items():
            self._cache.labels(name).inc(total - self._counted[name])
        self._expired.inc(self._services.sessions.expired - self._counted["expired"])
        self._counted = {**totals, "expired": self._services.sessions.expired}
        self._count_traces()

    def _count_traces(self) -> None:
        traces = self._services.traces
        for event, total in asdict(traces.counts).items():
            self._traces.labels(event).inc(total - self._traces_counted.get(event, 0))
            self._traces_counted[event] = total
        if traces.sft is not None:
            for event, total in (("written", traces.sft.written), ("dropped", traces.sft.dropped)):
                self._sft.labels(event).inc(total - self._sft_counted.get(event, 0))
                self._sft_counted[event] = total

    def text(self) -> bytes:
        """The exposition format."""
        self.refresh()
        if not self.multiprocess:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)

    def _child(self, step: Step, result: StepResult) -> None:
        self._child_cpu.labels(step.stage).observe(result.cpu_s)
        self._child_wall.labels(step.stage).observe(result.wall_s)

    def _step(self, facts: StepFacts) -> None:
        self._steps.labels(facts.tool, facts.outcome).inc()
        if facts.verdict is not None:
            self._verdicts.labels(*facts.verdict).inc()
        if facts.inference_s is not None:
            self._model.observe(facts.inference_s)
        for reason in facts.retries:
            self._retries.labels(reason).inc()


def _seconds(name: str, what: str, buckets: tuple[float, ...], registry: CollectorRegistry, *labels: str) -> Histogram:
    return Histogram(name, what, labels, buckets=buckets, registry=registry)
