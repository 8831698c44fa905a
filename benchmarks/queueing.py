"""What the service does with a load that no machine at hand can make: a simulation of its queues.

    python -m benchmarks queueing                       # the table for 10, 100 and 1,000 GPUs
    python -m benchmarks queueing --gpus 64 --turn-tokens 1500 --loop-ms 9 --job-ms 7,7,7
    python -m benchmarks queueing --check               # the real service at several loads, beside the simulation

A rollout is turns of the model, each followed by work on the event loop and perhaps by one job of a compiler or a
simulator. The queues are those of the service: places for rollouts with a line before them (`rollout.admission`), an
event loop that does one thing at a time in each worker, places for children that long work leaves to short work
(`icarus.slots`), and cores that share their time.
"""

import argparse
import math
import random
import statistics
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace

import simpy
from rich.console import Console
from rich.table import Table

from benchmarks.report import PIPED_COLUMNS, number, quantile
from verilog_taskapp.icarus.slots import LONG_S

SLICE_S = 0.004
"""How long a core stays with one of those who want it: about what Linux gives."""
SATURATED = 0.9


@dataclass(frozen=True)
class Work:
    """What one rollout asks for, in seconds. The lists go turn by turn."""

    think_s: tuple[float, ...]
    """Time of the model for each turn."""
    loop_s: float
    """CPU time of the server for all turns together."""
    jobs_s: tuple[float, ...]
    """CPU time of the job after each turn; 0 where there is none."""
    besides_s: float = 0.0
    """CPU time that load generator and model double take of the same cores."""


@dataclass(frozen=True)
class Pod:
    """One machine with the service on it."""

    cores: int = 2
    workers: int = 1
    children: int = 2
    max_rollouts: int = 1024
    queue: int = 256


@dataclass
class Outcome:
    """What became of a load."""

    wall_s: float = 0.0
    latencies_s: list[float] = field(default_factory=list)
    waits_s: dict[str, list[float]] = field(default_factory=dict)
    """Time in each line, once for each time that somebody stood in it."""
    used: dict[str, float] = field(default_factory=dict)
    """Share of the time that a resource was busy."""
    refused: int = 0
    """Requests that found the line full; each came again."""

    @property
    def rate(self) -> float:
        """Rollouts per second."""
        return len(self.latencies_s) / self.wall_s

    @property
    def saturated(self) -> str:
        """What holds everything up; ``the model`` where the service does not."""
        name, share = max(self.used.items(), key=lambda item: item[1])
        return name if share >= SATURATED else "the model"


Events = Generator[simpy.Event, object, None]


class Service:
    """The queues of one pod."""

    def __init__(self, env: simpy.Environment, pod: Pod, outcome: Outcome) -> None:
        self.env = env
        self.pod = pod
        self.outcome = outcome
        self.cores = simpy.Resource(env, pod.cores)
        self.loops = [simpy.Resource(env, 1) for _ in range(pod.workers)]
        self.places = [simpy.Resource(env, pod.max_rollouts) for _ in range(pod.workers)]
        # Each worker has places for children of its own.
        self.short = [simpy.Resource(env, pod.children) for _ in range(pod.workers)]
        self.long = [simpy.Resource(env, pod.children) for _ in range(pod.workers)]
        self.busy_s = {"cores": 0.0, "the event loop": 0.0, "places for children": 0.0, "places for rollouts": 0.0}

    def rollout(self, work: Work, worker: int) -> Events:
        """One rollout, from its request to its answer; a refused one comes again after a second."""
        places = self.places[worker]
        while len(places.queue) >= self.pod.queue and places.count >= places.capacity:
            self.outcome.refused += 1
            yield self.env.timeout(1.0)
        began = self.env.now
        with places.request() as place:
            yield place
            self._waited("rollouts", began)
            entered = self.env.now
            turns = len(work.think_s)
            for think_s, job_s in zip(work.think_s, work.jobs_s, strict=True):
                yield from self._on_loop(worker, work.loop_s / (turns + 1))
                yield self.env.timeout(think_s)
                yield from self._on_a_core(work.besides_s / turns)
                if job_s:
                    yield from self._job(worker, job_s)
            yield from self._on_loop(worker, work.loop_s / (turns + 1))
        self.busy_s["places for rollouts"] += self.env.now - entered
        self.outcome.latencies_s.append(self.env.now - began)

    def _on_loop(self, worker: int, cpu_s: float) -> Events:
        asked = self.env.now
        with self.loops[worker].request() as turn:
            yield turn
            self._waited("the event loop", asked)
            began = self.env.now
            yield from self._on_a_core(cpu_s)
            self.busy_s["the event loop"] += self.env.now - began

    def _job(self, worker: int, cpu_s: float) -> Events:
        asked = self.env.now
        place = self.short[worker].request()
        yield place
        self._waited("places for children", asked)
        began, held = self.env.now, self.short[worker]
        left = cpu_s
        while left > 0:
            part = min(left, SLICE_S)
            yield from self._on_a_core(part)
            left -= part
            roomy = self.long[worker]
            if held is not roomy and self.env.now - began > LONG_S and roomy.count < roomy.capacity:
                held.release(place)
                self.busy_s["places for children"] += self.env.now - began
                held, place = roomy, roomy.request()
                yield place
        if held is self.short[worker]:
            self.busy_s["places for children"] += self.env.now - began
        held.release(place)

    def _on_a_core(self, cpu_s: float) -> Events:
        left = cpu_s
        while left > 0:
            with self.cores.request() as core:
                yield core
                part = min(left, SLICE_S)
                yield self.env.timeout(part)
                self.busy_s["cores"] += part
                left -= part

    def _waited(self, line: str, since: float) -> None:
        self.outcome.waits_s.setdefault(line, []).append(self.env.now - since)

    def shares(self, wall_s: float) -> dict[str, float]:
        """How busy each resource was."""
        pod = self.pod
        there = {
            "cores": pod.cores,
            "the event loop": pod.workers,
            "places for children": pod.children * pod.workers,
            "places for rollouts": pod.max_rollouts * pod.workers,
        }
        return {name: self.busy_s[name] / (there[name] * wall_s) for name in there}


def simulate(works: Sequence[Work], in_flight: int, pod: Pod) -> Outcome:
    """Have all of `works` done, `in_flight` at any time, in their order: as the load generator does it."""
    env = simpy.Environment()
    outcome = Outcome()
    service = Service(env, pod, outcome)
    waiting = iter(works)

    def sender(number: int) -> Events:
        for work in waiting:
            yield from service.rollout(work, number % pod.workers)

    for index in range(in_flight):
        env.process(sender(index))
    env.run()
    outcome.wall_s = env.now
    outcome.used = service.shares(env.now)
    return outcome


def arrive(works: Sequence[Work], rate: float, pod: Pod, seed: int = 0, settled_s: float = 0.0) -> Outcome:
    """Have `works` come by themselves, `rate` a second at random.

    How busy a resource is counts from `settled_s` to the last arrival.
    """
    env = simpy.Environment()
    outcome = Outcome()
    service = Service(env, pod, outcome)
    rng = random.Random(seed)

    def source() -> Events:
        before, began = dict(service.busy_s), 0.0
        for index, work in enumerate(works):
            env.process(service.rollout(work, index % pod.workers))
            yield env.timeout(rng.expovariate(rate))
            if began == 0.0 and env.now >= settled_s:
                before, began = dict(service.busy_s), env.now
        service.busy_s = {name: busy_s - before[name] for name, busy_s in service.busy_s.items()}
        outcome.used = service.shares(env.now - began)

    env.process(source())
    env.run()
    outcome.wall_s = env.now
    return outcome


# --- how much there is to do


@dataclass(frozen=True)
class Trainer:
    """What a number of GPUs asks for while it samples. Every number is an assumption to be replaced by one's own."""

    tokens_per_gpu_s: float = 2000.0
    """Sampled by one GPU, all its sequences together."""
    tokens_per_sequence_s: float = 40.0
    """In one conversation."""
    turn_tokens: float = 400.0
    turns: int = 4

    def rate(self, gpus: int) -> float:
        """Rollouts per second that so many GPUs can sample."""
        return gpus * self.tokens_per_gpu_s / (self.turns * self.turn_tokens)

    @property
    def sampling_s(self) -> float:
        """Of one rollout."""
        return self.turns * self.turn_tokens / self.tokens_per_sequence_s


@dataclass(frozen=True)
class Cost:
    """CPU time of one rollout, in seconds, as `rollouts` measures it."""

    loop_s: float
    jobs_s: tuple[float, ...]
    """Of the job after each turn, on the average."""
    heavy_share: float = 0.02
    """Share of the problems whose simulations take `heavy_factor` times as long (three of VerilogEval's 156)."""
    heavy_factor: float = 60.0

    @property
    def total_s(self) -> float:
        """Of one rollout, on the average."""
        return self.loop_s + sum(self.jobs_s)

    def works(self, count: int, trainer: Trainer, seed: int) -> list[Work]:
        """Rollouts whose mean cost is this one; sampling times scatter by a half."""
        rng = random.Random(seed)
        light = 1 / (1 + self.heavy_share * (self.heavy_factor - 1))
        turn_s = trainer.turn_tokens / trainer.tokens_per_sequence_s
        found = []
        for _ in range(count):
            factor = light * (self.heavy_factor if rng.random() < self.heavy_share else 1.0)
            jobs = tuple(job_s * factor for job_s in self.jobs_s)
            think = tuple(turn_s * rng.uniform(0.5, 1.5) for _ in self.jobs_s)
            found.append(Work(think, self.loop_s, jobs))
        return found


@dataclass(frozen=True)
class Plan:
    """How many pods a load needs, and what one of them does then."""

    gpus: int
    rate: float
    in_flight: float
    cores: float
    pods: int
    of_a_pod: Outcome


def plan(gpus: int, trainer: Trainer, cost: Cost, pod: Pod, utilisation: float, seed: int = 0) -> Plan:
    """Arithmetic for the number of pods, and a simulation of one of them with its share of the load."""
    rate = trainer.rate(gpus)
    cores = rate * cost.total_s
    # One event loop is one core's worth of Python, however many cores there are.
    by_loop = rate * cost.loop_s / (pod.workers * utilisation)
    by_places = rate * trainer.sampling_s / (pod.max_rollouts * pod.workers * utilisation)
    pods = math.ceil(max(cores / (pod.cores * utilisation), by_loop, by_places))
    share = rate / pods
    sampling = replace(trainer, turns=len(cost.jobs_s))
    settled_s = 1.5 * sampling.sampling_s
    count = max(300, int(share * (settled_s + 60)))
    found = arrive(cost.works(count, sampling, seed), share, pod, seed, settled_s)
    latency_s = statistics.fmean(found.latencies_s)
    return Plan(gpus, rate, rate * latency_s, cores, pods, found)


# --- from the shell


def parser() -> argparse.ArgumentParser:
    """The command line."""
    trainer, pod = Trainer(), Pod()
    made = argparse.ArgumentParser(
        prog="queueing", description="The service's queues under loads of any size, simulated."
    )
    made.add_argument("--gpus", type=_numbers(int), default=(10, 100, 1000), help="10,100,1000")
    made.add_argument("--tokens-per-gpu-s", type=float, default=trainer.tokens_per_gpu_s, help="%(default)s")
    made.add_argument("--tokens-per-sequence-s", type=float, default=trainer.tokens_per_sequence_s, help="%(default)s")
    made.add_argument("--turn-tokens", type=float, default=trainer.turn_tokens, help="%(default)s")
    made.add_argument("--loop-ms", type=float, default=10.0, help="server's CPU of a rollout (%(default)s)")
    made.add_argument(
        "--job-ms", type=_numbers(float), default=(0.0, 8.0, 10.0, 10.0), help="job after each turn (0,8,10,10)"
    )
    made.add_argument("--cores", type=int, default=pod.cores, help="of a pod (%(default)s)")
    made.add_argument("--workers", type=int, default=pod.workers, help="processes of a pod (%(default)s)")
    made.add_argument("--children", type=int, default=None, help="simulators at once, of a worker (the cores)")
    made.add_argument("--max-rollouts", type=int, default=pod.max_rollouts, help="of a worker (%(default)s)")
    made.add_argument("--utilisation", type=float, default=0.7, help="of each resource, planned for (%(default)s)")
    made.add_argument("--check", action="store_true", help="run the real service too, and compare")
    made.add_argument("--dataset", default="bundled", help="with --check: as VERILOG_DATASET (%(default)s)")
    made.add_argument("--rollouts", type=int, default=256, help="with --check: of each load (%(default)s)")
    return made


def _numbers(kind: Callable[[str], float]) -> Callable[[str], tuple[float, ...]]:
    def read(text: str) -> tuple[float, ...]:
        return tuple(kind(one) for one in text.split(","))

    return read


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table for the loads that are asked for, or that of the check."""
    given = parser().parse_args(argv)
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPED_COLUMNS)
    if given.check:
        from benchmarks.queueing_check import check

        console.print(check(given.dataset, given.rollouts))
        return 0
    trainer = Trainer(given.tokens_per_gpu_s, given.tokens_per_sequence_s, given.turn_tokens, len(given.job_ms))
    cost = Cost(given.loop_ms / 1000, tuple(one / 1000 for one in given.job_ms))
    pod = Pod(given.cores, given.workers, given.children or given.cores, given.max_rollouts)
    table = Table("GPUs", "rollouts/s", "in flight", "cores busy", "pods", "of a pod: /s", "p50 s", "p99 s", box=None)
    for column in ("beyond sampling p50 s", "p99 s", "waits for a child p99 ms", "busiest"):
        table.add_column(column)
    for gpus in given.gpus:
        found = plan(int(gpus), trainer, cost, pod, given.utilisation)
        table.add_row(*_cells(found, trainer))
    console.print(table)
    return 0


def _cells(found: Plan, trainer: Trainer) -> tuple[str, ...]:
    one = found.of_a_pod
    beyond = [latency_s - trainer.sampling_s for latency_s in one.latencies_s]
    name, share = max(one.used.items(), key=lambda item: item[1])
    return (
        str(found.gpus),
        number(found.rate),
        number(found.in_flight),
        number(found.cores),
        str(found.pods),
        number(found.rate / found.pods),
        number(quantile(one.latencies_s, 0.5)),
        number(quantile(one.latencies_s, 0.99)),
        number(max(0.0, statistics.median(beyond))),
        number(quantile(beyond, 0.99)),
        number(quantile(one.waits_s.get("places for children", [0.0]), 0.99) * 1000),
        f"{name} {share:.0%}",
    )


if __name__ == "__main__":
    sys.exit(main())
