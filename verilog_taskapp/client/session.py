"""One episode on the service, step by step."""

import logging
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import anyio
from pydantic import TypeAdapter

from verilog_taskapp.client.calls import Calls
from verilog_taskapp.contracts import (
    EnvConfig,
    InitializeRequest,
    InitializeResponse,
    StepRequest,
    StepResponse,
    TerminateRequest,
    TerminateResponse,
)
from verilog_taskapp.contracts.tool_calls import ToolCallRequest
from verilog_taskapp.errors import TaskAppError

CLOSE_S = 10.0
"""How long leaving the context waits for the service to close the session; it expires there anyway."""

_OPENED = TypeAdapter(InitializeResponse)
_STEPPED = TypeAdapter(StepResponse)
_CLOSED = TypeAdapter(TerminateResponse)

log = logging.getLogger(__name__)


class SessionNotOpen(RuntimeError):
    """A step or a look at a session before `reset` or after `close`: a mistake in the calling code."""


class Session:
    """Made by `Client.session`; opened by ``async with``, or by `reset`, which may be called again for a new episode.

    Every request carries an id of ours, so that one whose answer was lost can be repeated: it is not done twice.
    Not for concurrent use: an episode has one step at a time.
    """

    def __init__(self, calls: Calls, seed: int | None, config: EnvConfig, *, deadline_s: float) -> None:
        self._calls = calls
        self._seed = seed
        self._config = config
        self._deadline_s = deadline_s
        self._name: str | None = None
        """The session's name on the service, from before it is asked for until it is closed."""
        self._opened: InitializeResponse | None = None
        self._last: StepResponse | None = None
        self._steps = 0
        self._unanswered: Sequence[ToolCallRequest] | None = None
        self.final: TerminateResponse | None = None
        """The final facts of the last episode that was closed: ``total_reward``, ``task_completed``, ``trace_id``."""

    async def __aenter__(self) -> Self:
        try:
            await self.reset()
        except BaseException:
            await self.leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    @property
    def is_open(self) -> bool:
        """Whether there is an episode to step."""
        return self._opened is not None

    @property
    def opened(self) -> InitializeResponse:
        """What opening it answered: ``prompt`` and ``tools`` for the policy, ``info`` with the problem's id."""
        if self._opened is None:
            raise SessionNotOpen("the session is not open: call reset, or use it as a context manager")
        return self._opened

    @property
    def id(self) -> str:
        """The session's ``env_id`` on the service."""
        return self.opened.env_id

    @property
    def last(self) -> StepResponse | None:
        """The answer of the last step; None before the first."""
        return self._last

    @property
    def observation(self) -> dict[str, Any]:
        """The environment as the policy may see it now."""
        return self._last.observation if self._last is not None else self.opened.observation

    @property
    def done(self) -> bool:
        """Whether the episode is over, submitted or truncated."""
        return self._last.done if self._last is not None else self.opened.done

    @property
    def total_reward(self) -> float:
        """Sum of the step rewards so far, as the service counts them."""
        return float(self._last.info["total_reward"]) if self._last is not None else 0.0

    async def reset(
        self, seed: int | None = None, config: EnvConfig | Mapping[str, Any] | None = None
    ) -> InitializeResponse:
        """Close the episode that is open, if there is one, and open the next; without arguments, on the same problem.

        `seed` alone keeps the config. Raises `Overloaded` when the service takes no more sessions until the deadline,
        and the faults of choosing a problem.
        """
        await self.close()
        if seed is not None:
            self._seed = seed
        if config is not None:
            self._config = EnvConfig.model_validate(config)
        self._name = uuid.uuid4().hex
        request = InitializeRequest(seed=self._seed, config=self._config, session_id=self._name)
        self._opened = await self._calls.ask(
            _OPENED, "POST", "/env/verilog/initialize", request, deadline_s=self._deadline_s
        )
        return self._opened

    async def step(self, tool: str, arguments: Mapping[str, Any] | str | None = None) -> StepResponse:
        """Call one tool. `arguments`: an object, or the text that the model wrote in its place.

        What the policy does wrong is an ordinary answer with its reward. A fault (`TaskAppError`) is never a reward:
        calling `step` again with the same arguments takes up the step that failed, it does not do it twice.
        """
        return await self.step_calls([{"tool": tool, "args": arguments if arguments is not None else {}}])

    async def step_calls(self, calls: Sequence[Mapping[str, Any] | ToolCallRequest]) -> StepResponse:
        """Make several calls in one step, in order, in any style of the wire; none: the policy made no call."""
        name = self.opened.env_id
        asked = [ToolCallRequest.model_validate(call) for call in calls]
        if asked != self._unanswered:
            self._steps += 1
            self._unanswered = asked
        request = StepRequest(env_id=name, tool_calls=asked, step_id=f"step-{self._steps}")
        answer = await self._calls.ask(_STEPPED, "POST", "/env/verilog/step", request, deadline_s=self._deadline_s)
        self._unanswered = None
        self._last = answer
        return answer

    async def close(self, *, deadline_s: float | None = None) -> TerminateResponse | None:
        """Close the episode and return its final facts; None when none is open. Repeating it is no error."""
        if self._name is None:
            return None
        self.final = await self._calls.ask(
            _CLOSED,
            "POST",
            "/env/verilog/terminate",
            TerminateRequest(env_id=self._name),
            deadline_s=self._deadline_s if deadline_s is None else deadline_s,
        )
        self._forget()
        return self.final

    async def leave(self) -> None:
        """What leaving the context does: close, cancelled or not.

        A service that cannot be reached will expire the session by itself.
        """
        with anyio.move_on_after(CLOSE_S + 1, shield=True):
            try:
                await self.close(deadline_s=CLOSE_S)
            except TaskAppError as error:
                log.warning("session %s was left to expire: %s", self._name, error.message)
        self._forget()

    def _forget(self) -> None:
        self._name = self._opened = self._last = self._unanswered = None
        self._steps = 0


def tool_messages(answer: StepResponse) -> list[str]:
    """What each call of a step was told, in words for the model."""
    return [str(result.get("message", "")) for result in answer.info.get("tool_results", [])]
