"""What the service tells about itself: ``/task_info`` and ``/info``."""

from dataclasses import asdict
from typing import Any

from verilog_taskapp import __version__
from verilog_taskapp.contracts import (
    DatasetInfo,
    DatasetMetadata,
    LimitsInfo,
    ServiceInfo,
    TaskInfo,
    TaskSetInfo,
)
from verilog_taskapp.contracts.config import MAX_STEPS
from verilog_taskapp.contracts.rollout import RolloutSafetyConfig
from verilog_taskapp.environment.actions import TOOL_NAMES
from verilog_taskapp.environment.world import Chosen
from verilog_taskapp.icarus.store import JUDGE_VERSION
from verilog_taskapp.problems.splits import DEFAULT_SPLIT, SPLITS
from verilog_taskapp.rubric import Rubric
from verilog_taskapp.services import Services

APP_ID = "grpo-verilog"
APP_NAME = "GRPO Verilog Task App"
APP_ALIASES = ("verilog", "verilog-task")
TASK_ID = "verilog_eval_v2"
TASK_NAME = "VerilogEval Spec-to-RTL"
INSTANCE_IDS_SHOWN = 50
DESCRIPTION_CHARS = 600


def task_set_info(services: Services) -> TaskSetInfo:
    """The data set as a whole."""
    fields = _task_fields(services)
    return TaskSetInfo.model_validate({**fields, "taskset": fields["dataset"]})


async def task_info(services: Services, seed: int, split: str | None = None) -> TaskInfo:
    """The instance that a seed means. Raises the faults of choosing a problem."""
    chosen = await services.world.choose(split=split, seed=seed)
    fields = _task_fields(services)
    fields["dataset"] = _dataset(services, chosen)
    problem = chosen.problem
    fields["observation"] |= {"problem_name": problem.id, "difficulty": problem.difficulty}
    fields["task_metadata"] = {
        "seed": seed,
        "split": split or DEFAULT_SPLIT,
        "problem_name": problem.id,
        "judge": chosen.prepared.status,
        "judge_reason": chosen.prepared.reason,
        "interface": [str(port) for port in chosen.prepared.ports],
        "tags": list(problem.tags),
        "errata": [asdict(one) for one in problem.errata],
    }
    return TaskInfo.model_validate(fields)


def service_info(services: Services) -> ServiceInfo:
    """``GET /info``."""
    fields = _task_fields(services)
    return ServiceInfo.model_validate(
        {
            "service": {
                "task": {**fields["task"], "app_id": APP_ID, "app_name": APP_NAME, "aliases": list(APP_ALIASES)},
                "version": __version__,
                "simulator": f"icarus {services.world.tools.version}",
                "judge": JUDGE_VERSION,
            },
            "dataset": fields["dataset"],
            "rubrics": {
                "outcome": _rubric(services.rubrics.outcome),
                "events": _rubric(services.rubrics.events),
            },
            "inference": fields["inference"],
            "limits": fields["limits"],
        }
    )


def _task_fields(services: Services) -> dict[str, Any]:
    settings, rubrics = services.settings, services.rubrics
    criteria = len(rubrics.outcome.criteria) + len(rubrics.events.criteria)
    return {
        "task": {
            "id": TASK_ID,
            "name": TASK_NAME,
            "version": __version__,
            "description": "Implement a hardware module from its specification; a hidden testbench decides.",
        },
        "environment": "verilog",
        "action_space": {
            "type": "tool_calls",
            "tools": list(TOOL_NAMES),
            "description": "One tool call per turn: write a file, compile, simulate, or submit for the verdict.",
        },
        "observation": {
            "summary": "The workspace's files, the compiler's and the simulator's last results, and the rewards.",
            "format": "dict",
            "keys": ["files", "compile_status", "simulate_status", "reward_last"],
        },
        "dataset": _dataset(services, None),
        "rubric": {
            "version": rubrics.outcome.version,
            "criteria_count": criteria,
            "source": rubrics.outcome_source,
            "aggregation": rubrics.outcome.aggregation,
            "outcome": _section(rubrics.outcome),
            "events": _section(rubrics.events),
        },
        "inference": {
            "model": settings.default_model,
            "inference_url": settings.inference_url,
            "supports_proxy": True,
            "endpoints": {"openai": "/proxy/v1/chat/completions", "groq": "/proxy/groq/v1/chat/completions"},
            "tool": {"name": "verilog_tools", "parallel_tool_calls": False},
        },
        "limits": LimitsInfo(
            max_turns=MAX_STEPS,
            max_response_tokens=settings.max_tokens,
            timeout_seconds=round(settings.inference_timeout_s),
            max_ops=RolloutSafetyConfig().max_ops,
            max_time_s=RolloutSafetyConfig().max_time_s,
        ).model_dump(),
        "task_metadata": {},
    }


def _dataset(services: Services, chosen: Chosen | None) -> dict[str, Any]:
    facts = services.world.problems.facts
    described = DatasetInfo(
        id=facts.id,
        name=facts.name,
        version=facts.version,
        splits=list(SPLITS),
        default_split=DEFAULT_SPLIT,
        description=facts.description,
        instance_count=facts.instance_count,
        instance_ids=list(facts.instance_ids[:INSTANCE_IDS_SHOWN]),
        default_seed=0,
    )
    if chosen is not None:
        problem = chosen.problem
        described.instance_id = problem.id
        described.metadata = DatasetMetadata(
            problem_name=problem.id,
            difficulty=problem.difficulty,
            description=problem.description or problem.prompt[:DESCRIPTION_CHARS],
            files_provided=sorted({f"{problem.top}.v", *problem.visible_files}),
        )
    return described.model_dump(exclude_none=True) | {
        "source": facts.source,
        "split_counts": facts.split_counts,
        "difficulty_counts": facts.difficulty_counts,
        "skipped_count": len(facts.skipped),
    }


def _rubric(rubric: Rubric) -> dict[str, Any]:
    return rubric.model_dump(mode="json")


def _section(rubric: Rubric) -> dict[str, Any]:
    return {"name": rubric.goal_text, "criteria": [one.model_dump(mode="json") for one in rubric.criteria]}
