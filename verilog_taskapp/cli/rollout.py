"""``verilog-taskapp rollout``: one rollout from the shell, in this process or on a running service."""

import uuid
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verilog_taskapp.cli.console import Exit, emit_json, fail, note, read_settings, run, stderr, stdout
from verilog_taskapp.cli.options import DatasetOption, JsonOption, Split

if TYPE_CHECKING:
    from verilog_taskapp.contracts import RolloutRequest, RolloutResponse, RolloutStep
    from verilog_taskapp.settings import Settings


class HeuristicsChoice(StrEnum):
    """How much the agent loop helps the model."""

    FULL = "full"
    GUIDANCE = "guidance"
    OFF = "off"


def rollout(
    problem: Annotated[
        str | None, typer.Option("--problem", metavar="ID", help="The problem; wins over the seed.", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Chooses the problem.", show_default=False)] = None,
    split: Annotated[
        Split | None, typer.Option("--split", help="Part of the set that the seed chooses from.", show_default=False)
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Model name.", show_default=False)] = None,
    inference_url: Annotated[
        str | None,
        typer.Option("--inference-url", metavar="URL", help="Chat-completions endpoint.", show_default=False),
    ] = None,
    dataset: DatasetOption = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="URL",
            help="A running service, with ENVIRONMENT_API_KEY as the key; else this process.",
            show_default=False,
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", min=1, max=25, help="Model turns.", show_default=False)
    ] = None,
    heuristics: Annotated[
        HeuristicsChoice, typer.Option("--heuristics", help="Guidance and overrides of the agent loop.")
    ] = HeuristicsChoice.FULL,
    as_json: JsonOption = False,
) -> None:
    """Let a model work on one problem and print what happened.

    Whatever is not given comes from the settings, or with --server from those of the service. The exit status is 0 for
    an episode that ended, solved or not.
    """
    if server is not None and dataset is not None:
        fail("--server and --dataset exclude each other: the service has its own problems", Exit.USAGE)
    settings = read_settings(dataset=dataset)
    from verilog_taskapp.contracts import RolloutRequest

    request = RolloutRequest.model_validate(
        {
            "run_id": f"cli-{uuid.uuid4().hex[:12]}",
            "env": {"seed": seed, "config": {"problem": problem, "split": split and split.value}},
            "policy": {
                "config": {
                    "model": model,
                    "inference_url": inference_url,
                    "max_steps": max_steps,
                    "heuristics": heuristics.value,
                }
            },
            "ops": [],
        }
    )
    from verilog_taskapp.rubric import RubricInvalid
    from verilog_taskapp.tracing.location import TraceLocationInvalid
    from verilog_taskapp.tracing.spans import SpansUnavailable

    try:
        response = run(_run(settings, request) if server is None else _ask(server, settings, request))
    except (RubricInvalid, TraceLocationInvalid, SpansUnavailable) as error:
        fail(str(error), Exit.USAGE)
    if as_json:
        emit_json(response.model_dump(mode="json"))
    else:
        _print(response)


async def _run(settings: "Settings", request: "RolloutRequest") -> "RolloutResponse":
    from verilog_taskapp.app import open_services

    async with open_services(settings) as services:
        with stderr().status("the model is at work"):
            return await services.rollouts.run(request)


async def _ask(url: str, settings: "Settings", request: "RolloutRequest") -> "RolloutResponse":
    from verilog_taskapp.client import Client

    key = settings.server_keys[0] if settings.server_keys else None
    async with Client(url, key) as client:
        with stderr().status("the model is at work"):
            return await client.rollout(request)


def _print(response: "RolloutResponse") -> None:
    from rich.table import Table

    out = stdout()
    table = Table(box=None, pad_edge=False)
    for name in ("step", "tool", "outcome", "reward", "what the tool said"):
        table.add_column(name, no_wrap=name != "what the tool said", justify="right" if name == "reward" else "left")
    trajectory = response.trajectories[0]
    for number, step in enumerate(trajectory.steps, start=1):
        told = _told(step)
        table.add_row(
            str(number),
            ", ".join(call.tool_name for call in step.tool_calls) or "none",
            told["outcome"],
            f"{step.reward:+.2f}",
            told["said"],
        )
    out.print(table)
    details = response.metrics.details
    facts: dict[str, Any] = trajectory.final.info.model_dump() if trajectory.final else {}
    solved = "solved" if details.task_completed else "not solved"
    ended = f", truncated: {details.stop_reason}" if details.truncated else ""
    out.print(
        f"\n{facts.get('problem', 'problem')}: {solved}{ended}; return {response.metrics.mean_return:.2f} in "
        f"{response.metrics.num_steps} steps",
        soft_wrap=True,
    )
    note(f"the model was {facts.get('policy_model')} at {facts.get('inference_url')}")


def _told(step: "RolloutStep") -> dict[str, str]:
    info = step.info.model_dump()
    said = str(info.get("tool_result") or info.get("error") or "").strip()
    first, _, rest = said.partition("\n")
    return {"outcome": str(info.get("outcome") or "refused"), "said": f"{first} ..." if rest else first}
