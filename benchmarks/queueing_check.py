"""The real service at several loads, and what the simulation says of the same rollouts."""

import asyncio
import json
import os
import time
from collections.abc import Sequence

from rich.table import Table

from benchmarks.accounting import machine_cpu_s, own_cpu_s, tree_time
from benchmarks.arena import Arena, Double, Server, arena
from benchmarks.load import Answer, Played, play, rollout_request
from benchmarks.queueing import Pod, Work, simulate
from benchmarks.report import number, quantile
from benchmarks.tasks import Task, prepare, right_task, table

LOADS = ((0.0, 4), (0.0, 16), (0.2, 8), (0.2, 32), (0.2, 128))
"""Seconds of a model turn, and rollouts in flight."""
PROBLEMS = 16
TURNS = 4


def check(dataset: str, rollouts: int, loads: Sequence[tuple[float, int]] = LOADS) -> Table:
    """A table of what was measured and predicted; costs are those of the very run that is predicted."""
    shown = Table("turn s", "in flight", "loop ms", "children ms", "rollouts/s", "simulated", "ratio", box=None)
    for column in ("p95 s", "simulated", "ratio", "saturated", "others s"):
        shown.add_column(column)
    with arena(dataset) as place:
        ready = prepare(place, PROBLEMS)
        kinds = [right_task(one) for one in ready.problems]
        tasks = (kinds * -(-rollouts // len(kinds)))[:rollouts]
        for think_s, in_flight in loads:
            shown.add_row(*_row(place, kinds, tasks, think_s, in_flight))
    return shown


def _row(place: Arena, kinds: Sequence[Task], tasks: Sequence[Task], think_s: float, in_flight: int) -> tuple[str, ...]:
    with place.double(table(kinds), think_s) as double, place.server(VERILOG_VERDICT_CACHE="off") as server:
        _play(server, double, kinds, "warm", 4)
        machine, used = machine_cpu_s(), tree_time(server.pid)
        besides = own_cpu_s(double.pid) + time.process_time()
        played = _play(server, double, tasks, "run", in_flight)
        besides = own_cpu_s(double.pid) + time.process_time() - besides
        used = tree_time(server.pid) - used
        others_s = machine_cpu_s() - machine - used.total_s - besides
    count = len(played.answers)
    works = works_of(played.answers, think_s, used.own_s / count, used.children_s / count, besides / count)
    cores = os.cpu_count() or 1
    found = simulate(works, in_flight, Pod(cores=cores, children=cores))
    rate = count / played.wall_s
    p95, simulated = quantile([one.latency_s for one in played.answers], 0.95), quantile(found.latencies_s, 0.95)
    return (
        number(think_s),
        str(in_flight),
        number(used.own_s / count * 1000),
        number(used.children_s / count * 1000),
        number(rate),
        number(found.rate),
        f"{rate / found.rate:.2f}",
        number(p95),
        number(simulated),
        f"{p95 / simulated:.2f}",
        found.saturated,
        number(others_s),
    )


def _play(server: Server, double: Double, tasks: Sequence[Task], tag: str, in_flight: int) -> Played:
    requests = [rollout_request(one.problem_id, f"bench:{one.key}:{tag}", double.url) for one in tasks]
    played = asyncio.run(play(server.port, requests, in_flight))
    if played.failed:
        raise SystemExit(f"{len(played.failed)} rollouts failed, one with {played.failed[0].said}")
    return played


def works_of(
    answers: Sequence[Answer], think_s: float, loop_s: float, children_s: float, besides_s: float
) -> list[Work]:
    """The rollouts as the simulation takes them: each has the jobs that its answer tells of.

    The secret simulation is not told: it counts as much as the public one. All jobs are scaled so that their mean is
    `children_s`, launchers included.
    """
    jobs = [_jobs(one) for one in answers]
    scale = children_s * len(jobs) / sum(map(sum, jobs))
    return [Work((think_s,) * TURNS, loop_s, tuple(job * scale for job in one), besides_s) for one in jobs]


def _jobs(answer: Answer) -> tuple[float, ...]:
    (trajectory,) = json.loads(answer.body)["trajectories"]
    return tuple(step["info"]["facts"].get("cpu_ms", 0.0) / 1000 for step in trajectory["steps"])
