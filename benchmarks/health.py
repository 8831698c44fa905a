"""``/health`` while 64 rollouts run and two designs never end; then how fast a server is ready, and its idle memory."""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.accounting import resident_bytes
from benchmarks.arena import READY_S, Arena, Server, fetched, process
from benchmarks.load import Answer, play, rollout_request
from benchmarks.options import BenchmarkFailed, Options
from benchmarks.prober import EVERY_S
from benchmarks.report import Figure, Report, quantile
from benchmarks.tasks import Task, inside, prepare, right_task, table, task
from verilog_taskapp.scripted.designs import renamed_reference

PROBLEMS = 16
IN_FLIGHT = 64
HUNG = 2
HANGS = "reg benchmark_spins = 0; initial forever benchmark_spins = ~benchmark_spins;"
SECONDS, QUICK_SECONDS = 10.0, 1.0
"""Of probing, once per repeat; a hung design is stopped by its CPU limit of 10 s and then simulated anew."""
IDLE_S = 0.5
P99_TARGET_MS, READY_TARGET_S, IDLE_TARGET_MB = 25.0, 1.5, 120.0


def run(arena: Arena, options: Options) -> Report:
    """Measure; raises `BenchmarkFailed` when the server does not answer."""
    seconds = QUICK_SECONDS if options.quick else SECONDS
    ready = prepare(arena, options.problems or (2 if options.quick else PROBLEMS))
    kinds = [right_task(one) for one in ready.problems]
    first = ready.problems[0]
    hung = task(first, "hung", inside(renamed_reference(first), first.top, HANGS))
    idle: list[list[float]] = []
    busy: list[list[float]] = []
    played = 0
    with arena.double(table([*kinds, hung])) as double, arena.server(VERILOG_VERDICT_CACHE="off") as server:
        for number in range(options.repeats):
            wait_until_idle(server)
            idle.append(probe(arena, server, seconds / 4))
            load = Load(server, double.url, kinds, hung, str(number))
            busy.append(asyncio.run(load.probed(arena, seconds)))
            played += len(load.answers)
    starts, sizes = zip(*(start(arena) for _ in range(options.repeats)), strict=True)
    facts = {
        "data set": arena.dataset.rpartition("/")[2],
        "rollouts in flight": str(IN_FLIGHT),
        "hung designs": str(HUNG),
        "rollouts that ended meanwhile": str(played),
        "probes": str(sum(map(len, busy))),
        "Icarus": ready.tools.version,
    }
    figures = (
        *_latencies("/health under load", busy, P99_TARGET_MS),
        *_latencies("/health idle", idle, None),
        Figure("start to ready, bundled set", "s", starts, READY_TARGET_S),
        Figure("idle RSS, bundled set", "MB", sizes, IDLE_TARGET_MB),
    )
    return Report("health", facts, figures, details={"busy_s": busy, "idle_s": idle})


def _latencies(what: str, probes: Sequence[Sequence[float]], target: float | None) -> tuple[Figure, ...]:
    def of(share: float) -> tuple[float, ...]:
        return tuple(quantile(one, share) * 1000 for one in probes)

    return (
        Figure(f"{what}: p50", "ms", of(0.5)),
        Figure(f"{what}: p99", "ms", of(0.99), target),
        Figure(f"{what}: max", "ms", of(1.0)),
    )


def probe(arena: Arena, server: Server, seconds: float) -> list[float]:
    """Latencies of ``/health`` in seconds, as a process of its own sees them."""
    argv = [sys.executable, "-m", "benchmarks.prober", str(server.port), str(seconds)]
    with process(argv, arena.fresh("prober"), {}) as running:
        return [float(one) for one in json.loads("[" + running.said("[", seconds + READY_S))]


def wait_until_idle(server: Server) -> None:
    """Return once no rollout is in flight and no simulator runs. Raises `BenchmarkFailed`."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        capacity = fetched(server.port, "/health")["capacity"]
        if capacity["rollouts_in_flight"] == capacity["children_busy"] == 0:
            return
        time.sleep(EVERY_S)
    raise BenchmarkFailed("rollouts of clients that hung up never ended")


class Load:
    """Rollouts that go on until they are stopped: `IN_FLIGHT` right ones, and `HUNG` whose simulation never ends."""

    def __init__(self, server: Server, model_url: str, kinds: Sequence[Task], hung: Task, tag: str) -> None:
        self._server = server
        self._right = [rollout_request(one.problem_id, f"bench:{one.key}:{tag}", model_url) for one in kinds]
        self._hung = [rollout_request(hung.problem_id, f"bench:{hung.key}:{tag}-{n}", model_url) for n in range(HUNG)]
        self.answers: list[Answer] = []

    async def probed(self, arena: Arena, seconds: float) -> list[float]:
        """Probe while the load is on. Raises `BenchmarkFailed` when a rollout fails."""
        senders = [asyncio.create_task(self._repeat(self._hung[n])) for n in range(HUNG)]
        senders += [asyncio.create_task(self._repeat(self._right[n % len(self._right)])) for n in range(IN_FLIGHT)]
        try:
            latencies = await asyncio.to_thread(probe, arena, self._server, seconds)
        finally:
            for sender in senders:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)
        failed = [one.said for one in self.answers if one.status != 200]
        if failed:
            raise BenchmarkFailed(f"{len(failed)} rollouts failed, one with {failed[0]}")
        return latencies

    async def _repeat(self, request: bytes) -> None:
        while True:
            self.answers += (await play(self._server.port, [request], 1)).answers


def start(arena: Arena) -> tuple[float, float]:
    """Seconds from the start of a server with the bundled set to its first answer, and its idle memory in MB."""
    fresh = replace(arena, dataset="bundled", cache_dir=arena.fresh("cache"))
    with fresh.server() as server:
        time.sleep(IDLE_S)
        return server.ready_s, resident_bytes(server.pid) / 1e6
