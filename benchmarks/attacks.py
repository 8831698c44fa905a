"""Designs that try to cheat, judged one by one: who passes, why the others fail, what is left behind.

    python benchmarks/attacks.py FOLDER --problem Prob034_dff8 --dataset dir:PATH [--sandbox limits] [--ungated]

Every file in FOLDER is a design of the problem. Each is judged finally (public and secret stimulus) with short limits.
Exits with 1 if one ends in an error of the service, or leaves a process or a file behind.
"""

import argparse
import asyncio
import sys
from collections import Counter, defaultdict
from pathlib import Path

from verilog_taskapp.environment.world import World
from verilog_taskapp.errors import TaskAppError
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.runner import Limits
from verilog_taskapp.settings import load_settings

NEEDS_A_SANDBOX = frozenset({"71_dumpfile_outside", "72_fopen_w_outside", "c7_writememh", "b0_proc_self_mem_rce"})
"""Designs that write to the host or run native code: left out with resource limits alone."""
LIMITS = Limits(cpu_s=2.0, wall_s=60.0)


async def judge_all(arguments: argparse.Namespace) -> int:
    """Judge every design and print a table; returns how many did what no design may do."""
    settings = load_settings(dataset=arguments.dataset, sandbox=arguments.sandbox)
    outcomes: Counter[str] = Counter()
    names: dict[str, list[str]] = defaultdict(list)
    async with World.open(settings) as world:
        judge = Judge(
            world.runner,
            world.tools,
            compile_limits=LIMITS,
            run_limits=LIMITS,
            wall_factor=30.0,
            cache_dir=settings.cache_dir,
            gated=not arguments.ungated,
        )
        chosen = await world.choose(problem_id=arguments.problem)
        turn = asyncio.Semaphore(world.runner.children)

        async def one(path: Path) -> None:
            async with turn:
                text = await asyncio.to_thread(path.read_text, "utf-8", "replace")
                try:
                    files = {"TopModule.sv": text}
                    compilation = await judge.compile(chosen.prepared, files, tuple(files))
                    verdict = await judge.final(chosen.prepared, compilation)
                    outcome = "PASSES" if verdict.passed else f"fails: {verdict.reason}"
                except TaskAppError as error:
                    outcome = f"ERROR: {error.code}"
            outcomes[outcome] += 1
            names[outcome].append(path.stem)

        paths = sorted(await asyncio.to_thread(lambda: list(Path(arguments.folder).glob("*.*v"))))
        if arguments.sandbox == "limits":
            paths = [path for path in paths if path.stem not in NEEDS_A_SANDBOX]
        await asyncio.gather(*(one(path) for path in paths))
        left = [path for path in world.runner.scratch.rglob("*") if path.is_file() and path.name != "lock"]
        await judge.close()
    print(f"Icarus {world.tools.version}, sandbox {arguments.sandbox}, {'no gate' if arguments.ungated else 'gate'}")
    for outcome, count in sorted(outcomes.items()):
        shown = f"  ({', '.join(sorted(names[outcome]))})" if outcome[0].isupper() else ""
        print(f"{count:5} {outcome}{shown}")
    print(f"{len(left):5} files left behind")
    return len(left) + sum(count for outcome, count in outcomes.items() if outcome.startswith("ERROR"))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--problem", required=True)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--sandbox", default="required", choices=["required", "bubblewrap", "limits"])
    parser.add_argument("--ungated", action="store_true")
    sys.exit(1 if asyncio.run(judge_all(parser.parse_args())) else 0)


if __name__ == "__main__":
    main()
