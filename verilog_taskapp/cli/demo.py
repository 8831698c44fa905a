"""``verilog-taskapp demo``: whole episodes over HTTP with a scripted model; needs no key and no network."""

import asyncio
import json
import os
import secrets
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verilog_taskapp.cli.console import Exit, fail, progress, read_settings, run, stdout

if TYPE_CHECKING:
    import httpx

    from verilog_taskapp.settings import Settings

SOLVED_RETURN = 10.0
"""An episode that is solved returns more than this (10 for the submission), one that is not stays below."""
MAX_STEPS = 12
"""Longer than the longest script."""
REQUEST_TIMEOUT_S = 300.0
SCRIPTED = (
    "The model in this demonstration is scripted: it is no language model, but a small server that plays eight fixed "
    "episodes\nmade from each problem's reference. Problems, simulator, verdicts, rewards and HTTP are the real ones."
)
HOW_TO_GO_ON = """\
To serve it yourself (any OpenAI-compatible endpoint can be the model):

  export ENVIRONMENT_API_KEY=$(openssl rand -hex 16)
  verilog-taskapp serve

  curl -s 'http://127.0.0.1:8103/task_info?seed=0' -H "X-API-Key: $ENVIRONMENT_API_KEY"
  curl -s http://127.0.0.1:8103/rollout -H "X-API-Key: $ENVIRONMENT_API_KEY" -H "Content-Type: application/json" -d '{
    "run_id": "first", "env": {"seed": 0}, "ops": [],
    "policy": {"config": {"model": "MODEL", "inference_url": "http://127.0.0.1:8000/v1/chat/completions"}}}'"""


@dataclass(frozen=True)
class Played:
    """One rollout of the demonstration."""

    problem: str
    episode: str
    body: Mapping[str, Any]
    """The response, or the error."""
    status: int
    ms: float
    tools: Mapping[str, str] = field(default_factory=dict)
    """What happened to each tool, in order."""

    @property
    def total(self) -> float | None:
        """The return; None when the rollout failed."""
        return self.body["metrics"]["mean_return"] if self.status == 200 else None

    @property
    def as_it_must(self) -> bool:
        """Whether the episode came out as its script must."""
        if self.total is None:
            return False
        return (self.total > SOLVED_RETURN) == (self.episode != "wrong_submitted")


def demo(
    rollouts: Annotated[int, typer.Option("--rollouts", min=1, help="How many rollouts.")] = 16,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Rollouts at once.")] = 4,
    out: Annotated[Path, typer.Option("--out", help="Folder for the full responses.")] = Path("demo-rollouts"),
) -> None:
    """Run rollouts over HTTP against the bundled problems, with a scripted model."""
    settings = _demo_settings(read_settings())
    try:
        out.mkdir(parents=True, exist_ok=True)
        played = run(_play(settings, rollouts, concurrency))
        for number, one in enumerate(played, start=1):
            _write_atomically(out / f"{number:02}-{one.problem}.json", one.body)
    except OSError as error:
        fail(f"{error.filename or out}: {error.strerror}", Exit.FAILED)
    _print(played, out)
    if not all(one.as_it_must for one in played):
        fail("not every episode came out as it must", Exit.FAILED)


def _demo_settings(settings: "Settings") -> "Settings":
    """The settings, with everything that could send the demonstration elsewhere or change its rewards put back."""
    from pydantic import SecretStr

    kept = {name for name in type(settings).model_fields if name.startswith("reward_")}
    kept |= {"dataset", "dataset_columns", "max_instances", "no_auth", "inference_hosts", "host"}
    kept |= {"environment_api_key_aliases", "feedback", "max_rollouts", "outcome_rubric", "events_rubric"}
    defaults = {name: field.default for name, field in type(settings).model_fields.items() if name in kept}
    return settings.model_copy(update={**defaults, "environment_api_key": SecretStr(secrets.token_urlsafe(24))})


async def _play(settings: "Settings", count: int, concurrency: int) -> list[Played]:
    import httpx

    from verilog_taskapp.cli.embedded import serving
    from verilog_taskapp.problems.load import load_problem_set
    from verilog_taskapp.scripted import EPISODE_NAMES, ScriptedOptions, ScriptedServer

    problems = (await asyncio.to_thread(load_problem_set, settings)).problems
    turn = asyncio.Semaphore(concurrency)
    async with (
        ScriptedServer(ScriptedOptions(mode="demo"), problems) as model,
        serving(settings) as url,
        httpx.AsyncClient(
            base_url=url,
            headers={"X-API-Key": settings.server_keys[0]},
            timeout=REQUEST_TIMEOUT_S,
            trust_env=False,
            limits=httpx.Limits(max_connections=None),
        ) as client,
    ):
        with progress() as bar:
            counted = bar.add_task("rollouts", total=count)

            async def play(number: int) -> Played:
                position = number % len(problems)
                async with turn:
                    played = await _rollout(
                        client,
                        problems[position].id,
                        EPISODE_NAMES[position % len(EPISODE_NAMES)],
                        f"demo-{number + 1}",
                        model.url,
                    )
                bar.advance(counted)
                return played

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(play(number)) for number in range(count)]
    return [task.result() for task in tasks]


async def _rollout(client: "httpx.AsyncClient", problem: str, episode: str, run_id: str, inference_url: str) -> Played:
    request = {
        "run_id": run_id,
        "env": {"config": {"split": "all", "problem": problem}},
        "policy": {"config": {"model": "scripted", "inference_url": inference_url, "max_steps": MAX_STEPS}},
        "ops": ["agent"],
    }
    started = time.perf_counter()
    answer = await client.post("/rollout", json=request)
    ms = (time.perf_counter() - started) * 1000
    body = answer.json()
    tools = _tools(body["trajectories"][0]["steps"]) if answer.status_code == 200 else {}
    return Played(problem, episode, body, answer.status_code, ms, tools)


def _tools(steps: list[dict[str, Any]]) -> dict[str, str]:
    happened: dict[str, list[str]] = {}
    for step in steps:
        for call in step["tool_calls"]:
            happened.setdefault(call["tool_name"], []).append(step["info"].get("outcome", "ok"))
    return {tool: ", ".join(outcomes) for tool, outcomes in happened.items()}


def _write_atomically(path: Path, value: Mapping[str, Any]) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=2, ensure_ascii=False)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _print(played: list[Played], out_dir: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    out = stdout()
    out.print(SCRIPTED, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name in ("problem", "episode", "steps", "compile", "simulate", "submit", "return", "ms"):
        table.add_column(
            name, no_wrap=name == "problem", justify="right" if name in ("steps", "return", "ms") else "left"
        )
    for one in played:
        if one.total is None:
            message = str(one.body.get("error", {}).get("message", one.status))
            table.add_row(one.problem, one.episode, "", Text(message, style="red"), "", "", "none", f"{one.ms:.0f}")
            continue
        table.add_row(
            one.problem,
            one.episode,
            str(one.body["metrics"]["num_steps"]),
            *(one.tools.get(tool, "") for tool in ("compile", "simulate", "submit")),
            Text(f"{one.total:.2f}", style="" if one.as_it_must else "red"),
            f"{one.ms:.0f}",
        )
    out.print()
    out.print(table)
    right = sum(one.as_it_must for one in played)
    out.print(
        f"\n{right} of {len(played)} episodes came out as they must (wrong_submitted has to fail, the rest to pass)."
    )
    out.print(f"The full responses are in {out_dir}{os.sep}", soft_wrap=True)
    out.print(f"\n{HOW_TO_GO_ON}", soft_wrap=True)
