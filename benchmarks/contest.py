"""A run of the service and a run of the bare tools, in turn, with the CPU time of both."""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.accounting import TreeTime, machine_cpu_s, own_cpu_s, tree_time
from benchmarks.arena import Double, Server
from benchmarks.floor import Cost, run_floor
from benchmarks.load import Answer, Played, play, rollout_request
from benchmarks.options import BenchmarkFailed
from benchmarks.tasks import Task

WARM_UP_IN_FLIGHT = 4


@dataclass(frozen=True)
class Run:
    """One run of the service, and the run of the floor that followed it."""

    answers: tuple[Answer, ...]
    wall_s: float
    used: TreeTime
    """CPU seconds of the server process, of its launchers, and of the compilers and simulators."""
    others_s: float
    """CPU seconds of the machine beyond service, load generator and double: neighbours disturb a measurement."""
    floor: Cost

    @property
    def server_ms(self) -> float:
        """Of one rollout."""
        return self.used.own_s / len(self.answers) * 1000

    @property
    def children_ms(self) -> float:
        """Of one rollout."""
        return self.used.children_s / len(self.answers) * 1000

    @property
    def launchers_ms(self) -> float:
        """Of one rollout; part of `children_ms`."""
        return self.used.living_s / len(self.answers) * 1000

    @property
    def floor_ms(self) -> float:
        """Of one item."""
        return self.floor.cpu_s / self.floor.items * 1000

    @property
    def rate(self) -> float:
        """Rollouts per second."""
        return len(self.answers) / self.wall_s

    @property
    def floor_rate(self) -> float:
        """Items per second."""
        return self.floor.items / self.floor.wall_s

    @property
    def cpu_ratio(self) -> float:
        """CPU time of a floor item over that of a rollout: above 1 the service is cheaper than the bare tools."""
        return self.floor_ms / (self.server_ms + self.children_ms)

    @property
    def rate_ratio(self) -> float:
        """Rollouts per second over items per second."""
        return self.rate / self.floor_rate

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        names = (
            "server_ms",
            "children_ms",
            "launchers_ms",
            "floor_ms",
            "rate",
            "floor_rate",
            "cpu_ratio",
            "rate_ratio",
        )
        return {name: getattr(self, name) for name in names} | {
            "wall_s": self.wall_s,
            "others_s": self.others_s,
            "latencies_ms": [round(one.latency_s * 1000, 2) for one in self.answers],
        }


@dataclass
class Contest:
    """A running service and its model; every run has a tag of its own, so that no cache knows its designs."""

    server: Server
    double: Double
    must_pass: bool
    """Whether every rollout has to end with a passing submission."""
    _tags: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def warm_up(self, tasks: Sequence[Task]) -> None:
        """Run each task once, so that launchers are started and traces are loaded."""
        self._play(tasks, WARM_UP_IN_FLIGHT)

    def run(self, tasks: Sequence[Task], items: Sequence[tuple[Path, str]], in_flight: int) -> Run:
        """Run all `tasks` through the service, then `items` through the bare tools.

        Raises `BenchmarkFailed` and `FloorBroken`.
        """
        server, double = self.server.pid, self.double.pid
        machine, used, besides = machine_cpu_s(), tree_time(server), own_cpu_s(double) + time.process_time()
        played = self._play(tasks, in_flight)
        used = tree_time(server) - used
        besides = own_cpu_s(double) + time.process_time() - besides
        others_s = machine_cpu_s() - machine - used.total_s - besides
        floor = run_floor(items, may_fail=not self.must_pass)
        return Run(played.answers, played.wall_s, used, others_s, floor)

    def _play(self, tasks: Sequence[Task], in_flight: int) -> Played:
        played = play_tasks(self.server, self.double, tasks, f"run-{next(self._tags)}", in_flight)
        if played.failed:
            raise BenchmarkFailed(f"{len(played.failed)} rollouts failed, one with {played.failed[0].said}")
        if self.must_pass and not all(one.passed for one in played.answers):
            raise BenchmarkFailed(f"{sum(not one.passed for one in played.answers)} right designs did not pass")
        return played


def play_tasks(server: Server, double: Double, tasks: Sequence[Task], tag: str, in_flight: int) -> Played:
    """Play a rollout of each task, `in_flight` at once, with one tag."""
    requests = [rollout_request(one.problem_id, f"bench:{one.key}:{tag}", double.url) for one in tasks]
    return asyncio.run(play(server.port, requests, in_flight))
