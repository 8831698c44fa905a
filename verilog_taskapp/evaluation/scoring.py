"""Whether a sample counts as passed, and why not: one rule for fresh samples and for those that are graded again."""

from verilog_taskapp.evaluation.config import JudgeName
from verilog_taskapp.evaluation.samples import Sample


def scored(sample: Sample, judge: JudgeName) -> Sample:
    """`sample` with `passed` and `category` by `judge`, from its judgements.

    A design that was never handed in has not passed, whatever it would have been worth. Where `judge` cannot judge the
    problem, the sample becomes `unusable`, and leaves the statistics.
    """
    found = sample.judgements.get(judge)
    if found is not None and found.passed is None:
        return sample.model_copy(update={"status": "unusable", "passed": None, "stop_reason": found.reason})
    if not sample.submitted or found is None:
        return sample.model_copy(update={"passed": False})
    return sample.model_copy(update={"passed": found.passed, "category": None if found.passed else found.category})
