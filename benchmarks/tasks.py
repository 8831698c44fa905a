"""Which problems and designs a benchmark uses, and the golden traces that are recorded before anything is measured."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arena import Arena
from benchmarks.double import TAG
from benchmarks.floor import command, lay_out
from verilog_taskapp.environment.world import World, bench_of
from verilog_taskapp.icarus import gate
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.official import ROOT
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted.designs import renamed_reference


class NothingToDo(Exception):
    """The problem set has no problem that a benchmark can use."""


@dataclass(frozen=True)
class Task:
    """A problem and a design for it."""

    key: str
    """Unique among the tasks of a benchmark."""
    problem_id: str
    bench: Bench
    path: str
    """The design's file."""
    design: str
    """Its text, with `TAG` in a parameter: it differs from run to run, so that no cache knows the design."""


@dataclass(frozen=True)
class Ready:
    """Problems with their golden traces in the cache, and the tools that they were recorded with."""

    problems: tuple[Problem, ...]
    tools: Toolchain


def prepare(arena: Arena, count: int | None) -> Ready:
    """Record `count` usable problems, evenly spread over the set, with all their stimuli (None: every usable one).

    Only problems that the published flow can run too. Raises `NothingToDo`.
    """
    return asyncio.run(_prepare(arena, count))


async def _prepare(arena: Arena, count: int | None) -> Ready:
    async with World.open(arena.settings()) as world:
        candidates = [one for one in world.problems if ROOT in gate.declared_modules(one.testbench)]
        chosen: list[Problem] = []
        wanted = spread(candidates, count)
        for problem in wanted + [one for one in candidates if one not in wanted]:
            prepared = await world.judge.prepare(bench_of(problem))
            if prepared.usable:
                await world.judge.record_secrets(prepared)
                chosen.append(problem)
            if count is not None and len(chosen) == count:
                break
        if not chosen:
            raise NothingToDo(f"{arena.dataset}: no problem is usable here")
        return Ready(tuple(sorted(chosen, key=lambda one: one.id)), world.tools)


def spread(candidates: list[Problem], count: int | None) -> list[Problem]:
    """`count` of them, evenly spaced from the first on; all where there are not more."""
    if count is None or count >= len(candidates):
        return list(candidates)
    return [candidates[number * len(candidates) // count] for number in range(count)]


def right_task(problem: Problem) -> Task:
    """The reference under the design's name: the right answer."""
    return task(problem, "right", renamed_reference(problem))


def task(problem: Problem, variant: str, design: str) -> Task:
    """A design for a problem, tagged."""
    tagged = inside(design, problem.top, f'localparam benchmark_tag = "{TAG}";')
    return Task(f"{problem.id}/{variant}", problem.id, bench_of(problem), f"{problem.top}.v", tagged)


def inside(design: str, top: str, text: str) -> str:
    """The design with `text` at the end of its module `top`."""
    found = re.search(rf"\bmodule\s+{re.escape(top)}\b.*?(?=\bendmodule\b)", design, re.DOTALL)
    if found is None:
        raise NothingToDo(f"a design has no module {top}")
    return f"{design[: found.end()]}\n{text}\n{design[found.end() :]}"


def floor_items(folder: Path, tools: Toolchain, tasks: Sequence[Task]) -> list[tuple[Path, str]]:
    """What the bare tools get for `tasks`, which may repeat: a folder of its own for each."""
    return [
        (lay_out(folder / str(number), one.bench, one.path, one.design), command(tools, one.bench, one.path))
        for number, one in enumerate(tasks)
    ]


def table(tasks: Sequence[Task]) -> dict[str, dict[str, str]]:
    """What the model double answers from."""
    return {one.key: {"path": one.path, "design": one.design} for one in tasks}
