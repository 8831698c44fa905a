"""Whole rollouts through the running service: rate, latency and CPU time, against the bare tools.

32 problems four times, write, compile, simulate, submit; the model answers at once. For each number of rollouts in
flight, with the verdict cache off and on, a run of the service and one of the floor take turns.
"""

from typing import Any

from benchmarks.arena import Arena
from benchmarks.contest import Contest, Run
from benchmarks.floor import run_floor
from benchmarks.options import Options
from benchmarks.report import Figure, Report, number, quantile, spread_of
from benchmarks.tasks import floor_items, prepare, right_task, table

PROBLEMS = 32
ROLLOUTS = 128
CONCURRENCY = (1, 4, 16, 64)
CACHES = ("off", "memory")
JUDGED = (16, 64)
CPU_TARGET, RATE_TARGET, SERVER_TARGET_MS = 1.0, 0.75, 8.0


def run(arena: Arena, options: Options) -> Report:
    """Measure; raises `BenchmarkFailed` when a rollout fails or does not pass."""
    problems = options.problems or (4 if options.quick else PROBLEMS)
    concurrency = (1, 4) if options.quick else CONCURRENCY
    ready = prepare(arena, problems)
    kinds = [right_task(one) for one in ready.problems]
    tasks = kinds * (2 if options.quick else ROLLOUTS // PROBLEMS)
    items = floor_items(arena.fresh("floor"), ready.tools, tasks)
    runs: dict[tuple[str, int], list[Run]] = {}
    run_floor(items[: len(kinds)])  # files and programs are in the page cache from here on
    with arena.double(table(kinds)) as double:
        for cache in CACHES:
            with arena.server(VERILOG_VERDICT_CACHE=cache) as server:
                contest = Contest(server, double, must_pass=True)
                contest.warm_up(kinds)
                for flight in concurrency:
                    runs[cache, flight] = [contest.run(tasks, items, flight) for _ in range(options.repeats)]
    facts = {
        "data set": arena.dataset.rpartition("/")[2],
        "problems": str(len(kinds)),
        "rollouts a run": str(len(tasks)),
        "Icarus": ready.tools.version,
    }
    figures = [figure for (cache, flight), some in runs.items() for figure in figures_of(cache, flight, some)]
    rows = tuple(_row(cache, flight, some) for (cache, flight), some in runs.items())
    details: dict[str, Any] = {"problems": [one.id for one in ready.problems]}
    details["runs"] = [
        {"cache": cache, "in_flight": flight, **one.to_json()} for (cache, flight), some in runs.items() for one in some
    ]
    return Report("rollouts", facts, tuple(figures), COLUMNS, rows, details)


def figures_of(cache: str, flight: int, runs: list[Run]) -> list[Figure]:
    """The figures of one setting; targets hold for 16 and 64 in flight without the cache."""
    where = f"cache {cache}, {flight} in flight"
    judged = cache == "off" and flight in JUDGED
    cpu, rate = (CPU_TARGET, RATE_TARGET) if judged else (None, None)
    server_ms = SERVER_TARGET_MS if judged and flight == max(JUDGED) else None
    return [
        Figure(f"CPU, floor / service: {where}", "ratio", tuple(one.cpu_ratio for one in runs), cpu, "more"),
        Figure(f"rate, service / floor: {where}", "ratio", tuple(one.rate_ratio for one in runs), rate, "more"),
        Figure(f"server's own CPU: {where}", "ms/rollout", tuple(one.server_ms for one in runs), server_ms),
    ]


COLUMNS = (
    "cache",
    "in flight",
    "rollouts/s",
    "p50 ms",
    "p95 ms",
    "server ms",
    "children ms",
    "launchers' part",
    "floor ms",
    "CPU floor/service",
    "rate service/floor",
    "others s",
)


def _row(cache: str, flight: int, runs: list[Run]) -> tuple[str, ...]:
    latencies = [answer.latency_s * 1000 for one in runs for answer in one.answers]
    return (
        cache,
        str(flight),
        spread_of([one.rate for one in runs]),
        number(quantile(latencies, 0.5)),
        number(quantile(latencies, 0.95)),
        spread_of([one.server_ms for one in runs]),
        spread_of([one.children_ms for one in runs]),
        spread_of([one.launchers_ms for one in runs]),
        spread_of([one.floor_ms for one in runs]),
        spread_of([one.cpu_ratio for one in runs]),
        spread_of([one.rate_ratio for one in runs]),
        spread_of([one.others_s for one in runs]),
    )
