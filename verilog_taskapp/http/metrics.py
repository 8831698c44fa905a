"""Prometheus metrics of one process."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from verilog_taskapp.contracts import RolloutResponse
from verilog_taskapp.services import Services


class Metrics:
    """Counters that the routes feed, and numbers read from the services when asked."""

    def __init__(self, services: Services) -> None:
        self._registry = CollectorRegistry()
        self.rollouts = Counter("verilog_rollouts", "Rollouts by how they ended", ["status"], registry=self._registry)
        self.seconds = Histogram(
            "verilog_rollout_seconds",
            "Wall-clock time of rollouts",
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900),
            registry=self._registry,
        )
        self._registry.register(_FromServices(services))

    def ended(self, response: RolloutResponse, seconds: float) -> None:
        """Count a rollout that came to its end."""
        self.rollouts.labels(response.metrics.details.status or "completed").inc()
        self.seconds.observe(seconds)

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self._registry)


class _FromServices(Collector):
    def __init__(self, services: Services) -> None:
        self._services = services

    def collect(self) -> Iterator[Metric]:
        services = self._services
        runner = services.world.runner
        for name, what, value in (
            ("verilog_rollouts_in_flight", "Rollouts running now", services.rollouts.in_flight),
            ("verilog_sessions_open", "Open sessions", len(services.sessions)),
            ("verilog_children_busy", "Simulator jobs running now", runner.busy),
            ("verilog_children_waiting", "Simulator jobs waiting for a slot", runner.waiting),
            ("verilog_children_limit", "Simulator jobs that may run at once", runner.children),
        ):
            yield GaugeMetricFamily(name, what, value=value)
        steps = CounterMetricFamily(
            "verilog_steps", "Steps of rollouts by tool and outcome", labels=["tool", "outcome"]
        )
        for kind, count in services.rollouts.steps_taken.items():
            steps.add_metric(kind, count)
        yield steps
