"""``GET /task_info`` and ``GET /info``: what the service offers. Further keys are allowed everywhere."""

from typing import Any, Literal

from pydantic import Field

from verilog_taskapp.contracts._fields import OpenAnswer

Aggregation = Literal["sum", "weighted_sum", "custom", "inherit"]


class TaskDescriptor(OpenAnswer):
    """Which task this is, for people and logs."""

    id: str
    name: str
    description: str | None = None
    version: str | None = None


class ActionSpace(OpenAnswer):
    """What a policy can do."""

    type: str = "tool_calls"
    tools: list[str] = Field(default_factory=list)
    """Names of the tools."""
    description: str | None = None


class ObservationInfo(OpenAnswer):
    """What a policy sees; of one problem when the question named a seed."""

    summary: str | None = None
    format: str = "dict"
    keys: list[str] = Field(default_factory=list)
    problem_name: str | None = None
    difficulty: str | None = None


class DatasetMetadata(OpenAnswer):
    """Facts about one problem."""

    problem_name: str | None = None
    difficulty: str | None = None
    description: str | None = None
    files_provided: list[str] | None = None
    """Names of the files that an episode starts with and the model can see."""


class DatasetInfo(OpenAnswer):
    """The problem set, and the problem that a seed chose."""

    id: str | None = None
    name: str | None = None
    version: str | None = None
    splits: list[str] | None = None
    default_split: str | None = None
    description: str | None = None
    instance_count: int | None = None
    """Problems in the default split."""
    instance_ids: list[str] | None = None
    """The first 50 problem ids."""
    default_seed: int | None = None
    instance_id: str | None = None
    """The chosen problem's id."""
    metadata: DatasetMetadata | None = None


class RubricCriterion(OpenAnswer):
    """One thing that a rubric looks at."""

    id: str
    description: str
    weight: float | None = None


class RubricSection(OpenAnswer):
    """One rubric's criteria."""

    name: str
    criteria: list[RubricCriterion] = Field(default_factory=list)


class RubricInfo(OpenAnswer):
    """How episodes are scored in [0, 1]."""

    version: str | None = None
    criteria_count: int | None = None
    source: str | None = None
    aggregation: Aggregation | None = None
    outcome: RubricSection | None = None
    events: RubricSection | None = None


class ProxyEndpoints(OpenAnswer):
    """Paths of the chat-completions passthrough, by upstream."""

    openai: str | None = None
    groq: str | None = None


class InferenceTool(OpenAnswer):
    """The tool set that a policy calls."""

    name: str
    parallel_tool_calls: bool = False


class InferenceInfo(OpenAnswer):
    """Where a policy is asked unless a request says otherwise."""

    model: str | None = None
    inference_url: str | None = None
    supports_proxy: bool | None = None
    endpoints: ProxyEndpoints | None = None
    tool: InferenceTool | None = None


class LimitsInfo(OpenAnswer):
    """The limits in force."""

    max_turns: int | None = None
    """Model turns per episode."""
    max_response_tokens: int | None = None
    """Completion tokens per model turn."""
    timeout_seconds: int | None = None
    """Whole seconds that one model call may take; readers of this contract refuse fractions."""
    max_ops: int | None = None
    """Tool calls per episode."""
    max_time_s: float | None = None
    """Wall-clock seconds per episode."""


class TaskInfo(OpenAnswer):
    """Everything about the task, and about one problem when the question named a seed."""

    task: TaskDescriptor
    environment: str
    action_space: ActionSpace | None = None
    observation: ObservationInfo | None = None
    dataset: DatasetInfo
    rubric: RubricInfo
    inference: InferenceInfo
    limits: LimitsInfo
    task_metadata: dict[str, Any] = Field(default_factory=dict)
    """Task-specific extras."""


class TaskSetInfo(TaskInfo):
    """The answer to ``GET /task_info`` without a seed: the problem set, next to what holds for every problem.

    Trainers read ``taskset``; `TaskAppClient.task_info()` parses the same object as a `TaskInfo`, so it has to be both.
    """

    taskset: DatasetInfo


class Rubric(OpenAnswer):
    """A whole rubric as it was loaded."""

    version: str
    goal_text: str | None = None
    criteria: list[RubricCriterion] = Field(default_factory=list)
    aggregation: Aggregation = "weighted_sum"


class Rubrics(OpenAnswer):
    """The rubrics in use."""

    outcome: Rubric | None = None
    events: Rubric | None = None


class ServiceDescriptor(OpenAnswer):
    """The running service."""

    task: TaskDescriptor
    version: str | None = None


class ServiceInfo(OpenAnswer):
    """The answer to ``GET /info``."""

    service: ServiceDescriptor
    dataset: DatasetInfo
    rubrics: Rubrics
    inference: InferenceInfo
    limits: LimitsInfo
