"""Episodes on small made problems, with the real simulator."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.icarus import made
from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.environment.state import EpisodeOptions
from verilog_taskapp.environment.world import bench_of
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.problems.model import Problem

FLIP_FLOP = Problem(
    "dff", "Store d at the\npositive edge.\n", made.FLIP_FLOP_BENCH.reference, made.FLIP_FLOP_BENCH.testbench
)
COUNTER = Problem("counter", "Count.", made.COUNTER_BENCH.reference, made.COUNTER_BENCH.testbench)
HANDSHAKE = Problem("handshake", "Grant.", made.CLOSED_LOOP_BENCH.reference, made.CLOSED_LOOP_BENCH.testbench)

Begin = Callable[..., Any]
"""``await begin(problem, **options)`` is a fresh episode."""


@pytest.fixture
def begin(judge: Judge) -> Begin:
    async def fresh(problem: Problem = FLIP_FLOP, **options: Any) -> Episode:
        return Episode(problem, await judge.prepare(bench_of(problem)), judge, EpisodeOptions(**options))

    return fresh
