"""The agent loop: one problem, one workspace, one conversation with a chat-completions endpoint."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from verilog_taskapp.contracts.tool_calls import ToolCallRequest
from verilog_taskapp.environment.actions import ToolCall
from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.environment.observation import StepResult
from verilog_taskapp.errors import ContextLengthExceeded, InferenceFailed
from verilog_taskapp.inference.client import ChatClient, Completion, DeadlineReached, ToolCallUnparsable
from verilog_taskapp.rollout.conversation import Conversation
from verilog_taskapp.rollout.guidance import Guidance
from verilog_taskapp.rollout.outcome import Progress, Turn, executed_step, idle_step, turn_tokens
from verilog_taskapp.rollout.parsing import Answer, read_answer, read_call
from verilog_taskapp.rollout.policy import Policy
from verilog_taskapp.rollout.prompts import LastTurn, simulator_line, system_message, task_message, turn_message
from verilog_taskapp.tracing.spans import NO_SPANS, Spans, answer_facts


class AgentLoop:
    """Plays an episode with a model until it ends; `progress` is complete up to the last step at any time."""

    def __init__(
        self,
        episode: Episode,
        policy: Policy,
        chat: ChatClient,
        progress: Progress,
        *,
        deadline: float,
        max_ops: int,
        simulator: str,
        preview_chars: int,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._spans = spans
        self._episode = episode
        self._policy = policy
        self._chat = chat
        self._progress = progress
        self._deadline = deadline
        self._max_ops = max_ops
        self._preview_chars = preview_chars
        self._guidance = Guidance()
        self._native = policy.tool_mode == "native"
        observation = episode.observation()
        problem = episode.problem
        self._conversation = Conversation(
            system_message("native" if self._native else "json", simulator_line(simulator)),
            task_message(
                problem.prompt,
                problem.top,
                episode.files_provided,
                observation,
                guidance=self._advice(0),
                preview_chars=preview_chars,
            ),
        )
        progress.messages = self._conversation.messages

    async def run(self) -> None:
        """Play to the end of the episode or to the first limit.

        Raises the errors of the inference client and of the environment; cancellation stops at once.
        """
        for step in range(1, self._policy.max_steps + 1):
            if self._progress.ops_executed >= self._max_ops:
                self._progress.stop_reason = "max_ops"
                break
            try:
                await self._turn(step)
            except TimeoutError:
                self._progress.stop_reason = "max_time_s"
                break
            except DeadlineReached as reached:
                if reached.attempts:
                    raise InferenceFailed(
                        "the time limit passed while the model server kept failing",
                        extras={"attempts": [asdict(attempt) for attempt in reached.attempts]},
                    ) from reached
                self._progress.stop_reason = "max_time_s"
                break
            except ContextLengthExceeded:
                self._progress.stop_reason = "context_length"
                break
            if self._episode.done:
                return
        else:
            self._progress.stop_reason = "max_steps"
        self._episode.truncate()

    async def _turn(self, step: int) -> None:
        body = self._policy.body(self._conversation.messages)
        request = self._conversation.request(body)
        try:
            completion = await self._ask(body)
            answer = read_answer(completion.message)
            turn = _turn_of(completion, answer, request)
            self._conversation.answered(completion.message, answer)
        except ToolCallUnparsable as failure:
            # The server could not read its own model's native call: the policy's fault, like any malformed answer.
            answer = read_answer({"content": failure.generation})
            turn = Turn(failure.generation, None, request, None, {"reasoning": answer.reasoning})
            self._conversation.answered({}, answer)
        async with asyncio.timeout_at(self._deadline):
            await self._act(step, answer, turn)

    async def _ask(self, body: dict[str, Any]) -> Completion:
        with self._spans.model_call(self._policy.model, urlsplit(self._policy.endpoint.url).hostname) as span:
            completion = await self._chat.complete(self._policy.endpoint, body, deadline=self._deadline)
            span.note(answer_facts(completion.response))
            return completion

    async def _act(self, step: int, answer: Answer, turn: Turn) -> None:
        episode, before = self._episode, self._episode.observation()
        decision = self._guidance.decide(answer.call, self._policy.heuristics, episode.task_completed)
        turn = Turn(**{**vars(turn), "facts": {**turn.facts, **decision.to_info()}})
        result: StepResult | None = None
        episode.counts.overrides += decision.override is not None
        if decision.call is None:
            self._progress.steps.append(idle_step(before, episode.idle(), turn, answer.complaint))
        else:
            if decision.kind == "block":
                result = episode.block(decision.call, decision.hint)
            else:
                result = await step_in_span(episode, decision.call, self._spans)
                self._progress.ops_executed += 1
            self._guidance = self._guidance.after(result)
            self._progress.steps.append(executed_step(before, result, turn, answer.complaint))
        self._conversation.told(
            turn_message(
                step,
                episode.observation(),
                LastTurn(result, answer.complaint, decision.override, answer.extra_calls),
                guidance=self._advice(step),
                preview_chars=self._preview_chars,
                mode="native" if self._native else "json",
            )
        )

    def _advice(self, step: int) -> str:
        episode = self._episode
        return self._guidance.line(step, episode.task_completed, mode=self._policy.heuristics, top=episode.problem.top)


async def play_script(
    episode: Episode,
    script: Sequence[ToolCallRequest],
    progress: Progress,
    *,
    deadline: float,
    max_ops: int,
    spans: Spans = NO_SPANS,
) -> None:
    """Execute the given calls one after the other; no model is asked and no call is changed."""
    for request in script:
        if progress.ops_executed >= max_ops:
            progress.stop_reason = "max_ops"
            break
        if asyncio.get_running_loop().time() >= deadline:  # calls that wait for nothing never meet the time-out below
            progress.stop_reason = "max_time_s"
            break
        before = episode.observation()
        answer = read_call(request.tool, request.args)
        try:
            async with asyncio.timeout_at(deadline):
                if answer.call is None:
                    progress.steps.append(idle_step(before, episode.idle(), Turn(), answer.complaint))
                    continue
                result = await step_in_span(episode, answer.call, spans)
                progress.steps.append(executed_step(before, result, Turn()))
        except TimeoutError:
            progress.stop_reason = "max_time_s"
            break
        progress.ops_executed += 1
        if episode.done:
            return
    else:
        progress.stop_reason = "ops_exhausted"
    episode.truncate()


async def step_in_span(episode: Episode, call: ToolCall, spans: Spans) -> StepResult:
    """One tool call, and the verdict in it."""
    with spans.tool(call.tool) as span:
        result = await episode.step(call)
        found = result.facts
        span.note({"verilog.outcome": result.outcome})
        if "verdict" in found:
            spans.verdict(str(found["verdict"]), str(found.get("reason")), float(found.get("ms") or 0.0))
        return result


def _turn_of(completion: Completion, answer: Answer, request: dict[str, object]) -> Turn:
    facts: dict[str, object] = {"inference_ms": round(completion.elapsed_s * 1000, 3)}
    if answer.reasoning:
        facts["reasoning"] = answer.reasoning
    if answer.extra_calls:
        facts["extra_calls"] = answer.extra_calls
    if completion.attempts:
        facts["retries"] = [asdict(attempt) for attempt in completion.attempts]
    return Turn(answer.text, completion.response, request, turn_tokens(completion), facts)
