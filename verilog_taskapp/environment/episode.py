"""One episode: a workspace, four tools, rewards. Knows nothing of models or HTTP."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from verilog_taskapp.environment.actions import TOOLS, ToolCall
from verilog_taskapp.environment.feedback import advice, facts, headline, hints, told
from verilog_taskapp.environment.observation import Observation, Outcome, StepResult
from verilog_taskapp.environment.rewards import Bonus, Ledger
from verilog_taskapp.environment.state import EpisodeCounts, EpisodeOptions, EpisodeSnapshot
from verilog_taskapp.environment.workspace import Refused, Workspace, stub
from verilog_taskapp.icarus.judge import Judge, Prepared
from verilog_taskapp.icarus.verdict import Compilation, Verdict
from verilog_taskapp.problems.model import Problem

_ARGUMENTS: Mapping[str, frozenset[str]] = {spec.name: frozenset(spec.parameters["properties"]) for spec in TOOLS}

MAX_NOTES = 8
"""Unknown arguments of one call that are named."""


class Episode:
    """The state of one episode. Steps must not overlap; everything lives in memory, so there is nothing to close.

    Every method that runs the simulator raises `EnvironmentFailed` when it cannot give an honest answer; the episode's
    state and rewards are then as before the call, so that the call can be repeated.
    """

    def __init__(self, problem: Problem, prepared: Prepared, judge: Judge, options: EpisodeOptions) -> None:
        self.problem = problem
        self.options = options
        self.counts = EpisodeCounts()
        self.task_completed = False
        self.done = False
        self.truncated = False
        self._judge = judge
        self._prepared = prepared
        start = {f"{problem.top}.v": stub(problem.top, problem.prompt), **problem.visible_files}
        self._workspace = Workspace(start)
        self._ledger = Ledger(options.rewards)
        self._chosen: tuple[str, ...] | None = None
        self._compiled: Compilation | None = None
        self._compiled_dirty = True
        self._simulated: Verdict | None = None
        self._compile_status = ""
        self._simulate_status = ""

    def snapshot(self) -> EpisodeSnapshot:
        """The state between two steps. It shares nothing with this episode that a later step changes."""
        return EpisodeSnapshot(
            problem_id=self.problem.id,
            problem_hash=self.problem.content_hash,
            options=self.options,
            files=dict(self._workspace.files),
            booked=self._ledger.booked,
            counts=replace(self.counts),
            task_completed=self.task_completed,
            done=self.done,
            truncated=self.truncated,
            chosen=self._chosen,
            changed=self._compiled_dirty,
            compilation=None if self._compiled_dirty else self._compiled,
            verdict=self._simulated,
            compile_status=self._compile_status,
            simulate_status=self._simulate_status,
        )

    @classmethod
    def restored(cls, problem: Problem, prepared: Prepared, judge: Judge, state: EpisodeSnapshot) -> Self:
        """The episode that a snapshot of the same problem was taken of."""
        episode = cls(problem, prepared, judge, state.options)
        episode.counts = replace(state.counts)
        episode.task_completed, episode.done, episode.truncated = state.task_completed, state.done, state.truncated
        episode._workspace = Workspace(state.files)
        episode._ledger = Ledger(state.options.rewards, state.booked)
        episode._chosen = state.chosen
        episode._compiled, episode._compiled_dirty = state.compilation, state.changed
        episode._simulated = state.verdict
        episode._compile_status, episode._simulate_status = state.compile_status, state.simulate_status
        return episode

    @property
    def total_reward(self) -> float:
        """The return so far."""
        return self._ledger.total

    @property
    def files_provided(self) -> tuple[str, ...]:
        """Names of the files that the policy can see."""
        return tuple(sorted(self._workspace.files))

    def observation(self) -> Observation:
        """What the policy may see now."""
        return Observation(
            problem_name=self.problem.id,
            files=dict(self._workspace.files),
            files_summary=self._workspace.summary(),
            compile_status=self._compile_status,
            simulate_status=self._simulate_status,
            reward_last=self._ledger.last,
            total_reward=self._ledger.total,
            task_completed=self.task_completed,
            terminated=self.done,
            truncated=self.truncated,
            steps_left=max(0, self.options.max_steps - self.counts.steps),
        )

    async def step(self, call: ToolCall) -> StepResult:
        """Execute one tool call."""
        if self.done:
            raise RuntimeError("the episode is over")
        ignored = sorted(name for name in call.arguments if name not in _ARGUMENTS[call.tool])
        notes = tuple(f"{call.tool} has no argument {_quoted(name)}: ignored" for name in ignored[:MAX_NOTES])
        if len(ignored) > MAX_NOTES:
            notes += (f"{len(ignored) - MAX_NOTES} further arguments were ignored",)
        try:
            match call.tool:
                case "write_file":
                    return self._write_file(call, notes)
                case "compile":
                    return await self._compile(call, notes)
                case "simulate":
                    return await self._simulate(call, notes)
                case "submit":
                    return await self._submit(call, notes)
        except Refused as refusal:
            self.counts.refused_calls += 1
            return self._result(call, "refused", f"{call.tool} refused: {refusal}", notes)

    def block(self, call: ToolCall, hint: str) -> StepResult:
        """Book a call that is not executed: the step penalty and nothing else."""
        self.counts.blocks += 1
        return self._result(call, "blocked", hint, ())

    def idle(self) -> Mapping[str, float]:
        """Book a turn without a usable call; returns the reward's components."""
        self.counts.steps += 1
        self.counts.refused_calls += 1
        return self._ledger.step()

    def truncate(self) -> None:
        """Mark the episode as ended from outside."""
        self.truncated = True

    # --- the tools

    def _write_file(self, call: ToolCall, notes: tuple[str, ...]) -> StepResult:
        for name in ("path", "content"):
            if name not in call.arguments:
                raise Refused(f"the argument {name} is missing")
        before = dict(self._workspace.files)
        path, changed = self._workspace.write(call.arguments["path"], call.arguments["content"])
        text = self._workspace.files[path]
        if before.get(path) != text:
            self._compiled_dirty = True
            self._simulated = None
        size = f"{len(text.encode())} bytes, {text.count(chr(10)) + (not text.endswith(chr(10)))} lines"
        return self._result(call, "ok", f"wrote {path} ({size})", (*notes, *changed))

    async def _compile(self, call: ToolCall, notes: tuple[str, ...]) -> StepResult:
        sources = call.arguments.get("sources")
        chosen = None if sources is None else self._workspace.select(sources)
        if not chosen or chosen == self._workspace.sources:
            chosen = None
        unchanged = not self._compiled_dirty and chosen == self._chosen
        compilation = await self._compilation(chosen)
        self.counts.compiles += 1
        self.counts.compiles_without_change += unchanged
        self.counts.failed_compiles += not compilation.succeeded
        message = self._compile_message(compilation)
        if unchanged:
            message = f"nothing changed since the last compile\n{message}"
        found: dict[str, Any] = {
            "compiled": compilation.succeeded,
            "failure": compilation.failure,
            **_cost(compilation),
        }
        found["diagnostics"] = [
            {"severity": one.severity, "file": one.file, "line": one.line, "message": one.message}
            for one in compilation.diagnostics[:50]
        ]
        if compilation.hints:
            found["hints"] = list(compilation.hints)
        bonus: Bonus | None = "compile_success" if compilation.succeeded else None
        return self._result(call, "ok" if compilation.succeeded else "failed", message, notes, bonus=bonus, found=found)

    async def _simulate(self, call: ToolCall, notes: tuple[str, ...]) -> StepResult:
        compiled_now = self._compiled_dirty
        unchanged = not compiled_now and self._simulated is not None
        compilation = await self._compilation(self._chosen)
        verdict = self._simulated or await self._judge.run(self._prepared, compilation)
        self._simulated = verdict
        self.counts.simulations += 1
        self.counts.simulations_without_change += unchanged
        lines = ["the files had changed: compiled them first"] if compiled_now else []
        if compilation.succeeded:
            lines.append(told(verdict, self.options.feedback, self.options.design_output_chars))
        else:
            lines.append(f"{headline(verdict)}\n{self._compile_message(compilation)}")
        status = "Passed" if verdict.passed else "Failed"
        detail = "" if self.options.feedback == "verdict" or verdict.passed else hints(verdict)
        self._simulate_status = f"Last simulation: {status}" + (f"\n{detail}" if detail else "")
        if not verdict.passed and not detail:
            self._simulate_status += f"\n{headline(verdict)}" if self.options.feedback != "verdict" else ""
        return self._result(
            call,
            "ok" if verdict.passed else "failed",
            "\n".join(lines),
            notes,
            bonus="simulate_pass" if verdict.passed else None,
            found=facts(verdict, self.options.feedback),
        )

    async def _submit(self, call: ToolCall, notes: tuple[str, ...]) -> StepResult:
        compilation = await self._compilation(self._chosen)
        verdict = await self._judge.final(self._prepared, compilation, self._simulated)
        self.counts.submitted = True
        self.done = True
        self.task_completed = verdict.passed
        return self._result(
            call,
            "ok" if verdict.passed else "failed",
            f"submission {headline(verdict)}",
            notes,
            bonus="submit_pass" if verdict.passed else None,
            partial_share=0.0 if verdict.passed else verdict.share_of_outputs,
            found=facts(verdict, self.options.feedback),
        )

    # --- shared by the tools

    async def _compilation(self, chosen: tuple[str, ...] | None) -> Compilation:
        """The compilation of exactly the files that are there now, reused while nothing changes."""
        changed = self._compiled_dirty or chosen != self._chosen
        if self._compiled is None or changed:
            files = dict(self._workspace.files)
            sources = chosen or self._workspace.sources
            compiled = await self._judge.compile(self._prepared, files, sources)
            known = None if changed else self._simulated  # a restored episode may have come without its program
            self._simulated = known and replace(known, compilation=compiled)
            self._compiled, self._compiled_dirty = compiled, False
            self._chosen = chosen
            self._compile_status = "Last compile: Success"
            if not compiled.succeeded:
                self._compile_status = f"Last compile: Failed\n{self._messages(compiled)}".rstrip()
        return self._compiled

    def _compile_message(self, compilation: Compilation) -> str:
        told_sources = "" if self._chosen is None else f" ({', '.join(compilation.sources)})"
        head = "compilation succeeded" if compilation.succeeded else "compilation failed"
        return f"{head}{told_sources}\n{self._messages(compilation)}".rstrip()

    def _messages(self, compilation: Compilation) -> str:
        messages = compilation.messages(self.options.compile_message_chars)
        return f"{messages}\n{advice(compilation.hints)}".strip()

    def _result(
        self,
        call: ToolCall,
        outcome: Outcome,
        message: str,
        notes: tuple[str, ...],
        *,
        bonus: Bonus | None = None,
        partial_share: float = 0.0,
        found: Mapping[str, Any] | None = None,
    ) -> StepResult:
        self.counts.steps += 1
        components = self._ledger.step(bonus, partial_share=partial_share)
        return StepResult(
            call=call,
            outcome=outcome,
            message=message,
            reward=self._ledger.last,
            reward_components=components,
            done=self.done,
            observation=self.observation(),
            notes=notes,
            facts=found or {},
        )


def _cost(compilation: Compilation) -> dict[str, Any]:
    cost: dict[str, Any] = {"ms": round(compilation.wall_s * 1000, 3), "cpu_ms": round(compilation.cpu_s * 1000, 3)}
    return {**cost, "cached": True} if compilation.cached else cost


def _quoted(name: object) -> str:
    text = repr(str(name))
    return text if len(text) <= 42 else f"{text[:40]}...'"
