"""What an episode consists of, as plain values: enough to go on with it elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from verilog_taskapp.environment.rewards import Booked, Rewards
from verilog_taskapp.icarus.verdict import Compilation, Verdict
from verilog_taskapp.settings import Feedback


@dataclass(frozen=True)
class EpisodeOptions:
    """What may differ from episode to episode."""

    rewards: Rewards = field(default_factory=Rewards)
    feedback: Feedback = "hints"
    max_steps: int = 10
    """Only counted here (`Observation.steps_left`); whoever drives the episode ends it."""
    compile_message_chars: int = 4000
    design_output_chars: int = 1000


@dataclass
class EpisodeCounts:
    """What happened so far, for the events rubric."""

    steps: int = 0
    compiles: int = 0
    failed_compiles: int = 0
    compiles_without_change: int = 0
    simulations: int = 0
    simulations_without_change: int = 0
    overrides: int = 0
    blocks: int = 0
    refused_calls: int = 0
    submitted: bool = False


@dataclass(frozen=True)
class EpisodeSnapshot:
    """An episode between two steps; see `Episode.snapshot` and `World.restore`.

    Without `compilation` although nothing has `changed`, the files are compiled again when the result is needed; what
    the policy sees and what it is paid stay the same.
    """

    problem_id: str
    problem_hash: str
    """`Problem.content_hash`."""
    options: EpisodeOptions
    files: Mapping[str, str]
    """The whole workspace."""
    booked: Booked
    counts: EpisodeCounts
    task_completed: bool
    done: bool
    truncated: bool
    chosen: tuple[str, ...] | None
    """The sources of the last compile; None: all of them."""
    changed: bool
    """Whether the files may differ from those of the last compile."""
    compilation: Compilation | None
    """Of exactly these files."""
    verdict: Verdict | None
    """Of exactly these files, on the public stimulus."""
    compile_status: str
    simulate_status: str
