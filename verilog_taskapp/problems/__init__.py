"""What is to be solved: problems, where they come from, and which one a seed means.

`load_problem_set` is the way in. Importing this package reads nothing and does not import ``datasets``.
"""

from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.problems.model import Difficulty, Problem, ProblemLimits, Split
from verilog_taskapp.problems.problem_set import ProblemSet, SetFacts, SkippedRow
from verilog_taskapp.problems.spec import SourceSpec, parse_source
from verilog_taskapp.problems.splits import ALL_PROBLEMS, DEFAULT_SPLIT, SPLITS, effective_split, split_of

__all__ = [
    "ALL_PROBLEMS",
    "DEFAULT_SPLIT",
    "SPLITS",
    "Difficulty",
    "Problem",
    "ProblemLimits",
    "ProblemSet",
    "SetFacts",
    "SkippedRow",
    "SourceSpec",
    "Split",
    "effective_split",
    "load_problem_set",
    "parse_source",
    "split_of",
]
