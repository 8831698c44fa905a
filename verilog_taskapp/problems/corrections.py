"""Known faults of published problem sets, as data: what is changed, why, and where that was found.

An erratum applies to exactly one text of one problem, told by its content hash; another text under the same id is left
alone and reported. ``VERILOG_ERRATA=false`` switches all of it off.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from verilog_taskapp.problems.model import Erratum, Problem


@dataclass(frozen=True)
class Correction:
    """An erratum with what it changes."""

    problem_id: str
    content_hash: str
    what: str
    why: str
    source: str
    ignored_samples: int = 0
    testbench: tuple[tuple[str, str], ...] = ()
    """Texts to replace, each of which must be there."""
    patterns: bool = False
    """The texts are regular expressions."""
    append_to_prompt: str = ""


@cache
def known_corrections() -> dict[str, Correction]:
    """All corrections by problem id."""
    found = {}
    for entry in files(__package__).joinpath("errata").iterdir():
        if not entry.name.endswith(".json"):
            continue
        for item in json.loads(entry.read_text("utf-8"))["errata"]:
            problem_id = item.pop("problem")
            item["testbench"] = tuple((old, new) for old, new in item.pop("testbench", ()))
            found[problem_id] = Correction(problem_id=problem_id, **item)
    return found


def corrected(problem: Problem) -> Problem:
    """The problem with its erratum applied, if there is one for exactly this text."""
    correction = known_corrections().get(problem.id)
    if correction is None:
        return problem
    erratum = Erratum(correction.what, correction.why, correction.source)
    if correction.content_hash != problem.content_hash:
        told = replace(erratum, what=f"not applied, the text is another than the one known: {correction.what}")
        return replace(problem, errata=(told,))
    testbench = problem.testbench
    for old, new in correction.testbench:
        pattern = old if correction.patterns else re.escape(old)
        testbench, count = re.subn(pattern, new if correction.patterns else new.replace("\\", r"\\"), testbench)
        if not count:
            raise ValueError(f"erratum of {problem.id}: {old!r} is not in the testbench")
    prompt = problem.prompt
    if correction.append_to_prompt:
        prompt = f"{prompt.rstrip()}\n\n{correction.append_to_prompt}"
    return replace(
        problem,
        prompt=prompt,
        testbench=testbench,
        ignored_samples=correction.ignored_samples,
        errata=(erratum,),
    )


def with_corrections(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """All problems, corrected."""
    return tuple(corrected(problem) for problem in problems)
