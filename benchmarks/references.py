"""Every reference under its own judge: it passes twice, an empty design and a stuck output fail.

    python benchmarks/references.py --dataset dir:PATH [--rounds 2] [--jobs 4] [--no-errata]

For each usable problem the reference, under the design's name, is judged on the public and on every secret stimulus and
by the published classic flow, `rounds` times; then the stub that a workspace starts with, and for each output the
reference with that output stuck at 0. Prints how many benches are open-loop and every deviation.
"""

import argparse
import asyncio
import json
import re
import sys
import time
from collections import Counter

from verilog_taskapp.environment.workspace import stub
from verilog_taskapp.environment.world import World, bench_of, limits_of
from verilog_taskapp.icarus.benches import identifier
from verilog_taskapp.icarus.judge import Prepared
from verilog_taskapp.icarus.official import OfficialFlow
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.settings import load_settings


def renamed(problem: Problem) -> str:
    """The reference under the design's name."""
    return re.sub(rf"\b{re.escape(problem.reference_top)}\b", problem.top, problem.reference)


def stuck(problem: Problem, prepared: Prepared, output: str) -> str:
    """The reference with one output tied to 0."""
    inner = f"{problem.top}_inner"
    text = re.sub(rf"\b{re.escape(problem.reference_top)}\b", inner, problem.reference)
    ranges = {port.name: f"[{port.width - 1}:0] " if port.width > 1 else "" for port in prepared.ports}
    header = ", ".join(f"{port.direction} {ranges[port.name]}{identifier(port.name)}" for port in prepared.ports)
    wired = ", ".join(
        f".{identifier(port.name)}({'' if port.name == output else identifier(port.name)})" for port in prepared.ports
    )
    body = f"  {inner} inner({wired});\n  assign {identifier(output)} = 0;\n"
    return f"{text}\nmodule {problem.top}({header});\n{body}endmodule\n"


class Survey:
    """Counts what was seen and lists what should not have been."""

    def __init__(self, world: World, rounds: int) -> None:
        self.counts: Counter[str] = Counter()
        self.deviations: list[str] = []
        self._world = world
        self._rounds = rounds
        settings = world.settings
        self._official = OfficialFlow(world.runner, world.tools, limits_of(settings, settings.compile_cpu_s))

    async def look_at(self, problem: Problem) -> None:
        """Judge everything about one problem."""
        prepared = await self._world.judge.prepare(bench_of(problem))
        self.counts[prepared.status] += 1
        self.counts["open-loop"] += prepared.status == "golden"
        if not prepared.usable:
            self.deviations.append(f"{problem.id}: unusable: {prepared.reason}")
            return
        for _ in range(self._rounds):
            await self._reference(problem, prepared)
        await self._must_fail(problem, prepared, "stub", stub(problem.top, problem.prompt))
        for port in prepared.ports:
            if port.direction == "output":
                await self._stuck(problem, prepared, port.name)

    async def _reference(self, problem: Problem, prepared: Prepared) -> None:
        judge = self._world.judge
        files = {f"{problem.top}.sv": renamed(problem)}
        compilation = await judge.compile(prepared, files, tuple(files))
        draws = [0, *(judge.secrets.draws(prepared.bench.key, index) for index in range(judge.secrets.size))]
        for number in draws if prepared.status == "golden" else draws[:1]:
            verdict = await judge.run(prepared, compilation, number)
            self.counts[f"reference {'passes' if verdict.passed else 'fails'}"] += 1
            if not verdict.passed:
                self.deviations.append(f"{problem.id}: the reference fails ({verdict.reason}, {number} draws)")
        official = await self._official.judge(bench_of(problem), files, tuple(files))
        self.counts[f"reference classic {'passes' if official.passed else 'fails'}"] += 1
        if not official.passed:
            self.deviations.append(f"{problem.id}: the classic flow says {official.category} of the reference")

    async def _must_fail(self, problem: Problem, prepared: Prepared, what: str, text: str) -> None:
        files = {f"{problem.top}.v": text}
        verdict = await self._world.judge.judge(prepared, files, tuple(files))
        self.counts[f"{what} {'passes' if verdict.passed else 'fails'}"] += 1
        if verdict.passed:
            self.deviations.append(f"{problem.id}: the {what} passes")

    async def _stuck(self, problem: Problem, prepared: Prepared, output: str) -> None:
        text = stuck(problem, prepared, output)
        if prepared.status == "golden":
            trace = await self._world.judge.trace(prepared)
            start = 0
            for port in trace.interface.outputs:
                if port.name == output:
                    break
                start += port.width
            lines = trace.expected.splitlines()
            if not any(b"1" in line[start : start + port.width] for line in lines):
                self.counts["output that is never 1"] += 1
                return
        await self._must_fail(problem, prepared, "stuck output", text)


async def survey(arguments: argparse.Namespace) -> int:
    """Look at every problem; returns the number of deviations."""
    settings = load_settings(dataset=arguments.dataset, errata=not arguments.no_errata)
    async with World.open(settings) as world:
        seen = Survey(world, arguments.rounds)
        turn = asyncio.Semaphore(arguments.jobs)

        async def one(problem: Problem) -> None:
            async with turn:
                await seen.look_at(problem)

        await asyncio.gather(*(one(problem) for problem in world.problems))
        print(json.dumps({"simulator": world.tools.version, **dict(sorted(seen.counts.items()))}, indent=1))
    for line in sorted(set(seen.deviations)):
        print(line)
    return len(set(seen.deviations))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dataset", default="bundled")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--no-errata", action="store_true")
    started = time.monotonic()
    deviations = asyncio.run(survey(parser.parse_args()))
    print(f"{deviations} deviations, {time.monotonic() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
