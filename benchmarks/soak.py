"""A thousand rollouts in flight at once on a slow model: do all finish, and what does the service need for it?

Every model turn takes ``--think-s`` seconds, so that nearly all rollouts wait for the model at any time.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.accounting import open_descriptors, resident_bytes, tree_time
from benchmarks.arena import Arena
from benchmarks.contest import play_tasks
from benchmarks.options import Options
from benchmarks.report import Figure, Report, quantile
from benchmarks.tasks import prepare, right_task, table

PROBLEMS = 16
ROLLOUTS = 1000
TURNS = 4
QUICK_ROLLOUTS, QUICK_THINK_S = 40, 0.2
RSS_TARGET_MB = 500.0
SAMPLE_S = 0.2


@dataclass
class Watch:
    """What a process had open at most, looked at a few times a second."""

    pid: int
    descriptors: int = 0
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)

    def look(self) -> None:
        """Look until told to stop, or until the process is gone."""
        while not self._stop.wait(SAMPLE_S):
            try:
                self.descriptors = max(self.descriptors, open_descriptors(self.pid))
            except OSError:
                return

    @classmethod
    @contextmanager
    def on(cls, pid: int) -> Iterator["Watch"]:
        """Watch a process while the block runs."""
        watch = cls(pid)
        thread = threading.Thread(target=watch.look)
        thread.start()
        try:
            yield watch
        finally:
            watch._stop.set()
            thread.join()


def run(arena: Arena, options: Options) -> Report:
    """Measure; a failed rollout is a figure here."""
    count, think_s = (QUICK_ROLLOUTS, QUICK_THINK_S) if options.quick else (ROLLOUTS, options.think_s)
    ready = prepare(arena, options.problems or (2 if options.quick else PROBLEMS))
    kinds = [right_task(one) for one in ready.problems]
    tasks = [kinds[index % len(kinds)] for index in range(count)]
    with arena.double(table(kinds), think_s) as double, arena.server(VERILOG_VERDICT_CACHE="off") as server:
        idle = open_descriptors(server.pid)
        before = tree_time(server.pid)
        with Watch.on(server.pid) as watch:
            played = play_tasks(server, double, tasks, "soak", count)
        used = tree_time(server.pid) - before
        rss_mb = resident_bytes(server.pid, peak=True) / 1e6
    passed = sum(one.passed for one in played.answers)
    statuses = sorted(Counter(one.status for one in played.answers).items())
    facts = {
        "data set": arena.dataset.rpartition("/")[2],
        "in flight": str(count),
        "seconds a model turn": f"{think_s:g}",
        "statuses": ", ".join(f"{status}: {number}" for status, number in statuses),
    }
    latencies = [one.latency_s for one in played.answers]
    figures = (
        Figure("rollouts that failed", "", (float(len(played.failed)),), 0.0),
        Figure("rollouts that did not pass", "", (float(count - passed),), 0.0),
        Figure("server RSS, peak", "MB", (rss_mb,), RSS_TARGET_MB),
        Figure("server's file descriptors, peak", "", (float(watch.descriptors),)),
        Figure("before the load", "", (float(idle),)),
        Figure("slowest rollout", "s", (max(latencies),)),
        Figure("median rollout", "s", (quantile(latencies, 0.5),)),
        Figure("the model's part of a rollout", "s", (TURNS * think_s,)),
        Figure("server's own CPU", "ms/rollout", (used.own_s / count * 1000,)),
    )
    return Report("soak", facts, figures, details={"failures": [one.said for one in played.failed[:20]]})
