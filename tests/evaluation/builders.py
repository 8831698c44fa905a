"""Samples and evaluations for tests, made by hand."""

from typing import Any

from verilog_taskapp.evaluation.directory import FORMAT, Saved
from verilog_taskapp.evaluation.samples import Sample


def sample(problem: str = "p1", number: int = 0, *, passed: bool | None = True, **changes: Any) -> Sample:
    """A finished sample; `passed` None makes it an error unless `changes` say otherwise."""
    given: dict[str, Any] = {
        "model": "m",
        "problem": problem,
        "sample": number,
        "seed": number,
        "status": "error" if passed is None else "done",
        "passed": passed,
        "category": None if passed is not False else "R",
        "submitted": passed is not None,
    }
    return Sample.model_validate({**given, **changes})


def saved(problems: tuple[str, ...] = ("p1",), *, n: int = 1, k: tuple[int, ...] = (1,), **changes: Any) -> Saved:
    """The configuration of a made-up evaluation of the model ``m``; `changes` go into ``[eval]`` and `how`."""
    how = {"k": list(k), "bootstrap": 200, "prices": {}}
    what = {"split": "all", "n": n, "mode": "agent", "judge": "golden", "seed": 0}
    return Saved(
        format=FORMAT,
        what={
            "eval": {**what, **{name: value for name, value in changes.items() if name not in how}},
            "policy": {"models": [{"name": "m", "label": None}]},
        },
        how={**how, **{name: value for name, value in changes.items() if name in how}},
        dataset={"source": "bundled", "id": "bundled", "fingerprint": "f", "problems": list(problems)},
        versions={"service": "1", "judge": "1", "simulator": "icarus 11.0", "dataset": "f"},
        settings={},
    )
