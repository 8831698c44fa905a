"""Mutants of reference designs, judged by the golden judge and by the published classic flow.

    python benchmarks/agreement.py --dataset dir:PATH [--per-problem 5] [--limit 600] [--json FILE] [--against FILE]

A mutant is the reference under the design's name with one small change to its text. The verdicts must be the same,
except where errata or the secret stimulus explain the difference; every difference is listed. `--against` compares the
golden verdicts with those that an earlier run, with another simulator, wrote with `--json`.
"""

import argparse
import asyncio
import hashlib
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from verilog_taskapp.environment.world import World, bench_of, limits_of
from verilog_taskapp.icarus.official import OfficialFlow
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.settings import load_settings

# (name, pattern, replacement): each match of a pattern in code is one possible mutant.
MUTATIONS = (
    ("and to or", r"(?<![&])&(?![&=])", "|"),
    ("or to and", r"(?<![|])\|(?![|=])", "&"),
    ("xor to xnor", r"(?<![~^])\^(?!~)", "~^"),
    ("logical and to or", r"&&", "||"),
    ("logical or to and", r"\|\|", "&&"),
    ("plus to minus", r"(?<=[\w\])] )\+(?= )", "-"),
    ("minus to plus", r"(?<=[\w\])] )-(?= )", "+"),
    ("equal to unequal", r"(?<![=!<>])==(?!=)", "!="),
    ("less to greater", r"(?<= )<(?= )", ">"),
    ("drop not", r"~(?=[\w(])", ""),
    ("drop logical not", r"!(?=[\w(])", ""),
    ("posedge to negedge", r"\bposedge\b", "negedge"),
    ("0 to 1", r"1'b0\b", "1'b1"),
    ("1 to 0", r"1'b1\b", "1'b0"),
    ("swap branches", r"\bif \((?!!)", "if (!"),
    ("shift direction", r"<<", ">>"),
    ("nonblocking to stuck", r"<= (?=\w+;)", "<= ~"),
    ("constant plus one", r"(?<=[ (=])\d+(?=[;,) ])", None),
)


@dataclass(frozen=True)
class Mutant:
    """One changed design."""

    problem_id: str
    mutation: str
    line: int
    text: str


@dataclass(frozen=True)
class Difference:
    """A mutant on which the two judges disagree."""

    problem_id: str
    mutation: str
    line: int
    golden: str
    classic: str
    explanation: str


def renamed(problem: Problem) -> str:
    """The reference under the design's name."""
    return re.sub(rf"\b{re.escape(problem.reference_top)}\b", problem.top, problem.reference)


def mutants(problem: Problem, count: int, rng: random.Random) -> Iterator[Mutant]:
    """Up to `count` different mutants."""
    text = renamed(problem)
    places = [
        (name, match.start(), match.end(), new if new is not None else str(int(match[0]) + 1))
        for name, pattern, new in MUTATIONS
        for match in re.finditer(pattern, text)
    ]
    rng.shuffle(places)
    seen = {text}
    for name, start, end, new in places:
        changed = text[:start] + new + text[end:]
        if changed not in seen:
            seen.add(changed)
            yield Mutant(problem.id, name, text.count("\n", 0, start) + 1, changed)
            count -= 1
            if count == 0:
                return


def hash_of(text: str) -> str:
    """A short name for a design."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


async def compare(arguments: argparse.Namespace) -> int:
    """Judge all mutants both ways and print what was found; returns the number of unexplained differences."""
    settings = load_settings(dataset=arguments.dataset, errata=False)
    rng = random.Random(arguments.seed)
    counts: Counter[str] = Counter()
    differences: list[Difference] = []
    verdicts: dict[str, str] = {}
    async with World.open(settings) as world:
        limits = limits_of(settings, settings.compile_cpu_s)
        official = OfficialFlow(world.runner, world.tools, limits)
        gate = asyncio.Semaphore(world.runner.children * 2)

        async def judge(problem: Problem, mutant: Mutant) -> None:
            async with gate:
                prepared = await world.judge.prepare(bench_of(problem))
                files = {f"{problem.top}.sv": mutant.text}
                sources = tuple(files)
                compilation = await world.judge.compile(prepared, files, sources)
                golden = await world.judge.run(prepared, compilation)
                final = await world.judge.final(prepared, compilation)
                classic = await official.judge(bench_of(problem), files, sources)
            verdicts[f"{problem.id}:{mutant.line}:{mutant.mutation}:{hash_of(mutant.text)}"] = final.reason
            counts["mutants"] += 1
            counts["golden pass" if golden.passed else "golden fail"] += 1
            counts["fails on the secret stimulus only"] += golden.passed and not final.passed
            if golden.passed == classic.passed:
                counts["the same verdict"] += 1
                return
            reason = "prints TIMEOUT" if classic.category == "T" else ""
            differences.append(
                Difference(problem.id, mutant.mutation, mutant.line, golden.reason, classic.category, reason)
            )

        usable = [one for one in world.problems if (await world.judge.prepare(bench_of(one))).usable]
        chosen = [
            (one, mutant)
            for one in usable
            for mutant in mutants(one, arguments.per_problem, random.Random(f"{arguments.seed} {one.id}"))
        ]
        rng.shuffle(chosen)
        await asyncio.gather(*(judge(problem, mutant) for problem, mutant in chosen[: arguments.limit]))
    print(json.dumps(dict(counts), indent=1))
    for one in differences:
        told = f"golden {one.golden}, classic {one.classic} {one.explanation}".rstrip()
        print(f"{one.problem_id}: {one.mutation} in line {one.line}: {told}")
    if arguments.json:
        found = {"counts": counts, "differences": [asdict(one) for one in differences], "verdicts": verdicts}
        report = json.dumps(found)
        await asyncio.to_thread(Path(arguments.json).write_text, report)
    unexplained = sum(not one.explanation for one in differences)
    if arguments.against:
        earlier = json.loads(await asyncio.to_thread(Path(arguments.against).read_text))["verdicts"]
        shared = verdicts.keys() & earlier.keys()
        other = [key for key in sorted(shared) if verdicts[key] != earlier[key]]
        print(f"{len(shared)} designs judged by both simulators, {len(other)} verdicts differ")
        for key in other:
            print(f"{key}: {earlier[key]} there, {verdicts[key]} here")
        unexplained += len(other)
    return unexplained


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="bundled")
    parser.add_argument("--per-problem", type=int, default=5)
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--against")
    started = time.monotonic()
    unexplained = asyncio.run(compare(parser.parse_args()))
    print(f"{unexplained} unexplained differences, {time.monotonic() - started:.0f} s", file=sys.stderr)
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
