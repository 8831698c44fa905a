"""Drawing one sample: from a task to what the model made of it, judged."""

import time
from typing import Any

from verilog_taskapp.contracts import RolloutRequest, RolloutResponse, RolloutStep
from verilog_taskapp.environment.workspace import Refused, Workspace
from verilog_taskapp.environment.world import World
from verilog_taskapp.errors import TaskAppError
from verilog_taskapp.evaluation import categories, single_shot
from verilog_taskapp.evaluation.backend import Backend, SampleFault, fault_of
from verilog_taskapp.evaluation.config import EvalConfig, JudgeName, ModelSpec
from verilog_taskapp.evaluation.grading import Grader
from verilog_taskapp.evaluation.samples import Judgement, Sample, Task
from verilog_taskapp.evaluation.scoring import scored
from verilog_taskapp.inference.client import ChatClient
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.problems.problem_set import ProblemSet
from verilog_taskapp.settings import Settings

MAX_ANSWER_CHARS = 64 * 1024
"""Of a single-shot answer that is kept."""


class Sampler:
    """Draws samples for one evaluation. Safe to use concurrently.

    `world` is that of this process, if rollouts are run in it; `grader` is needed for the classic judge only.
    """

    def __init__(
        self,
        config: EvalConfig,
        settings: Settings,
        problems: ProblemSet,
        backend: Backend,
        chat: ChatClient,
        *,
        world: World | None,
        grader: Grader | None,
    ) -> None:
        self._config = config
        self._settings = settings
        self._problems = problems
        self._backend = backend
        self._chat = chat
        self._world = world
        self._grader = grader
        self._models = {one.title: one for one in config.policy.models}

    async def draw(self, task: Task) -> Sample:
        """The sample, with status `done` or `unusable`. Raises `SampleFault`."""
        started = time.monotonic()
        problem = self._problems.get(task.problem)
        facts: dict[str, Any] = {**task.model_dump(), "difficulty": problem.difficulty}
        facts["problem_hash"] = problem.content_hash
        request = self._request(task, problem)
        try:
            if self._config.eval.mode == "agent":
                drawn = await self._agent(request)
            else:
                drawn = await self._single_shot(request, problem)
            sample = Sample.model_validate({**facts, **drawn, "status": "done"})
            sample = await self._judged(sample)
        except TaskAppError as error:
            return self._unusable(facts, fault_of(error))
        except SampleFault as fault:
            return self._unusable(facts, fault)
        return sample.model_copy(update={"elapsed_s": round(time.monotonic() - started, 6)})

    @staticmethod
    def _unusable(facts: dict[str, Any], fault: SampleFault) -> Sample:
        if fault.code != "problem_unusable":
            raise fault
        return Sample.model_validate({**facts, "status": "unusable", "stop_reason": fault.message})

    def _request(self, task: Task, problem: Problem, ops: list[dict[str, Any]] | None = None) -> RolloutRequest:
        model: ModelSpec = self._models[task.model]
        policy = self._config.policy.of(model)
        names = ("inference_url", "api_key_env", "temperature", "top_p", "max_tokens", "extra_body")
        chosen = {name: getattr(policy, name) for name in names}
        if self._config.eval.mode == "agent":
            chosen |= {name: getattr(policy, name) for name in ("max_steps", "heuristics", "tool_mode")}
        chosen |= {"model": model.name, "stop": list(policy.stop) or None}
        chosen["seed"] = task.seed if policy.sampling_seed else None
        env = self._config.env
        return RolloutRequest.model_validate(
            {
                "run_id": f"eval-{task.model}-{task.problem}-{task.sample}",
                "env": {
                    "config": {
                        "problem": problem.id,
                        "feedback": env.feedback,
                        "rewards": env.rewards.model_dump(exclude_none=True),
                    }
                },
                "policy": {"config": chosen},
                "ops": ops or [],
                "safety": {"max_time_s": self._config.eval.max_time_s},
            }
        )

    async def _agent(self, request: RolloutRequest) -> dict[str, Any]:
        response = await self._backend.rollout(request)
        return {**_episode(response), **_tokens(response.trajectories[0].steps)}

    async def _single_shot(self, request: RolloutRequest, problem: Problem) -> dict[str, Any]:
        await self._check_usable(problem)
        shot = await single_shot.ask(request, problem, self._chat, self._settings)
        drawn: dict[str, Any] = {
            "answer": shot.text[:MAX_ANSWER_CHARS],
            "stop_reason": shot.stop_reason,
            "steps": 1,
            "prompt_tokens": shot.prompt_tokens,
            "completion_tokens": shot.completion_tokens,
        }
        if shot.design is None:
            category = "context_length" if shot.stop_reason == "context_length" else "no_design"
            return {**drawn, "category": category}
        calls = [
            {"tool": "write_file", "args": {"path": f"{problem.top}.v", "content": shot.design}},
            {"tool": "submit", "args": {}},
        ]
        script = RolloutRequest.model_validate({**request.model_dump(), "ops": calls})
        episode = _episode(await self._backend.rollout(script))
        if not episode["files"]:  # too large, or not text that a file can hold
            return {**drawn, "category": "no_design"}
        return {**episode, **drawn, "total": None, "stop_reason": shot.stop_reason}

    async def _check_usable(self, problem: Problem) -> None:
        """Ask nothing about a problem that cannot be judged: only known where the judge is in this process."""
        if self._world is not None:
            await self._world.choose(problem_id=problem.id)

    async def _judged(self, sample: Sample) -> Sample:
        """With the verdicts that were asked for and are not there yet."""
        wanted: list[JudgeName] = [name for name in self._config.judges if name not in sample.judgements]
        if self._grader is not None and wanted and sample.files:
            more = await self._grader.judgements(sample.problem, sample.files, sample.sources, wanted)
            sample = sample.model_copy(update={"judgements": {**sample.judgements, **more}})
        return scored(sample, self._config.judges[0])


def _episode(response: RolloutResponse) -> dict[str, Any]:
    """The facts of an episode: its end, its design, and the verdict on that if it was handed in."""
    trajectory, details = response.trajectories[0], response.metrics.details
    observation = trajectory.final.observation if trajectory.final is not None else {}
    steps = trajectory.steps
    written = any(_did(step, "write_file", "ok") for step in steps)
    files: dict[str, str] = dict(observation.get("files") or {}) if written else {}
    submission = next((step for step in steps if _did(step, "submit", "ok", "failed")), None)
    found: dict[str, Any] = {
        "submitted": submission is not None,
        "total": response.metrics.mean_return,
        "steps": response.metrics.num_steps,
        "stop_reason": details.stop_reason,
        "files": files,
        "sources": _sources(steps, files),
    }
    status = str(observation.get("compile_status") or "")
    if submission is None:
        return {**found, "category": categories.of_unfinished(steps, status, details.stop_reason)}
    if not files:  # handed in as it was: the specification as a comment
        return {**found, "category": "no_design"}
    design = "\n".join(files[name] for name in found["sources"])
    verdict: dict[str, Any] = getattr(submission.info, "facts", None) or {}
    reason = str(verdict.get("reason") or "unknown")
    failed = categories.of_verdict(reason, status.partition("\n")[2], design)
    judgement = Judgement(
        passed=details.task_completed,
        reason=reason,
        category=categories.PASS if details.task_completed else failed,
        samples=verdict.get("samples"),
        mismatches=verdict.get("mismatches"),
    )
    return {**found, "judgements": {"golden": judgement}}


def _did(step: RolloutStep, tool: str, *outcomes: str) -> bool:
    ran = step.tool_calls[0].tool_name if step.tool_calls else None
    return ran == tool and getattr(step.info, "outcome", None) in outcomes


def _sources(steps: list[RolloutStep], files: dict[str, str]) -> tuple[str, ...]:
    """What a submission compiles: what the last compile named, else every source."""
    workspace = Workspace(files)
    last = next((step for step in reversed(steps) if _did(step, "compile", "ok", "failed")), None)
    named = last.tool_calls[0].arguments.get("sources") if last is not None else None
    try:
        return (workspace.select(named) if named else ()) or workspace.sources
    except Refused:  # a compile that was overridden names what it did not compile
        return workspace.sources


def _tokens(steps: list[RolloutStep]) -> dict[str, int | None]:
    """Tokens of all turns; None when one turn was not counted."""
    used = [(step.info.model_response or {}).get("usage") or {} for step in steps if step.info.llm_request]
    found: dict[str, int | None] = {}
    for name in ("prompt_tokens", "completion_tokens"):
        counts = [single_shot.counted(one.get(name)) for one in used]
        found[name] = None if not counts or None in counts else sum(one for one in counts if one is not None)
    return found
