"""``verilog-taskapp eval``: many samples of one or more models on a problem set, with numbers that can be trusted."""

import asyncio
import signal
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verilog_taskapp.cli.console import Exit, fail, note, read_settings, run
from verilog_taskapp.cli.options import DatasetOption, Split
from verilog_taskapp.cli.rollout import HeuristicsChoice

if TYPE_CHECKING:
    from verilog_taskapp.evaluation.config import EvalConfig
    from verilog_taskapp.evaluation.run import Outcome
    from verilog_taskapp.settings import Settings


class ModeChoice(StrEnum):
    """How a model is asked."""

    AGENT = "agent"
    SINGLE_SHOT = "single-shot"


class JudgesChoice(StrEnum):
    """Who judges; of both, golden decides."""

    GOLDEN = "golden"
    CLASSIC = "classic"
    BOTH = "both"


class ToolModeChoice(StrEnum):
    """How a model calls tools."""

    JSON = "json"
    NATIVE = "native"
    AUTO = "auto"


def _maybe(*names: str, **given: Any) -> Any:
    """An option without a default of its own: what is not given is as in the file, else as documented there."""
    return typer.Option(*names, show_default=False, **given)


FileArgument = Annotated[
    Path | None, typer.Argument(metavar="[FILE.toml]", help="Options as [eval], [policy], [env].", show_default=False)
]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory of the results.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with what the directory holds.")]
Model = Annotated[list[str] | None, _maybe("--model", metavar="M", help="Model name; repeatable.")]
Endpoint = Annotated[str | None, _maybe("--inference-url", metavar="URL", help="Chat-completions endpoint.")]
KeyName = Annotated[str | None, _maybe("--api-key-env", metavar="NAME", help="Variable that holds the endpoint's key.")]
Part = Annotated[Split | None, _maybe("--split", help="Part of the set; all unless given.")]
Problems = Annotated[list[str] | None, _maybe("--problem", metavar="ID", help="Only this one; repeatable.")]
N = Annotated[int | None, _maybe("--n", "-n", min=1, help="Samples of each problem; 1 unless given.")]
K = Annotated[str | None, _maybe("--k", "-k", metavar="K,K", help="The k of pass@k, such as 1,5,10.")]
Mode = Annotated[
    ModeChoice | None, _maybe("--mode", help="agent: tools, several turns. single-shot: one answer is the design.")
]
Judges = Annotated[JudgesChoice | None, _maybe("--judge", help="Who judges; of both, golden decides.")]
Seed = Annotated[int | None, _maybe("--seed", min=0, help="All sampling seeds are derived from it.")]
Server = Annotated[
    str | None, _maybe("--server", metavar="URL", help="A running service, with ENVIRONMENT_API_KEY as the key.")
]
Concurrency = Annotated[int | None, _maybe("--concurrency", min=1, help="Samples at once; 8 unless given.")]
Retries = Annotated[int | None, _maybe("--retries", min=0, help="After infrastructure errors; 3 unless given.")]
Temperature = Annotated[float | None, _maybe("--temperature", min=0, help="Sampling temperature.")]
TopP = Annotated[float | None, _maybe("--top-p", min=0, max=1, help="Nucleus sampling mass.")]
MaxTokens = Annotated[int | None, _maybe("--max-tokens", min=0, help="Per model call; 0: no limit.")]
MaxSteps = Annotated[int | None, _maybe("--max-steps", min=1, max=25, help="Model turns of an episode.")]
Heuristics = Annotated[HeuristicsChoice | None, _maybe("--heuristics", help="Guidance and overrides.")]
ToolMode = Annotated[ToolModeChoice | None, _maybe("--tool-mode", help="How the model calls tools.")]
PriceIn = Annotated[float | None, _maybe("--price-in", min=0, help="Per million prompt tokens.")]
PriceOut = Annotated[float | None, _maybe("--price-out", min=0, help="Per million completion tokens.")]


def evaluate(
    context: typer.Context,
    config_file: FileArgument = None,
    out: OutOption = Path("eval-results"),
    resume: ResumeOption = False,
    model: Model = None,
    inference_url: Endpoint = None,
    api_key_env: KeyName = None,
    dataset: DatasetOption = None,
    split: Part = None,
    problem: Problems = None,
    n: N = None,
    k: K = None,
    mode: Mode = None,
    judge: Judges = None,
    seed: Seed = None,
    server: Server = None,
    concurrency: Concurrency = None,
    retries: Retries = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    max_tokens: MaxTokens = None,
    max_steps: MaxSteps = None,
    heuristics: Heuristics = None,
    tool_mode: ToolMode = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
) -> None:
    """Sample every problem n times and write pass@k with intervals, categories of failures and a report.

    Interrupt once to finish the samples in flight and save, twice to stop now; --resume goes on after either, and
    after a crash. Infrastructure errors are retried and counted apart. Exit status 0: every sample has a result.
    """
    from verilog_taskapp.evaluation.options_file import WrongOptions, read_config

    try:
        config = read_config(config_file, _by_section(context.params))
    except WrongOptions as error:
        fail(str(error), Exit.USAGE)
    raise typer.Exit(_run(config, _settings(config), out, resume))


def _by_section(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The command's options, by their names, as the keys of a file."""
    from verilog_taskapp.evaluation.options_file import SECTIONS

    values = {
        **given,
        "models": given["model"] or None,
        "problems": given["problem"] or None,
        "k": _numbers(given["k"]),
    }
    return {
        section: {name: _plain(values[name]) for name in keys.model_fields if name in values}
        for section, keys in SECTIONS.items()
    }


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(one) for one in text.split(",") if one.strip()]
    except ValueError:
        fail(f"--k {text}: write numbers with commas between them, such as 1,5,10", Exit.USAGE)


def _settings(config: "EvalConfig") -> "Settings":
    """The settings, with the keys that the evaluation names: whoever runs it owns them."""
    settings = read_settings(dataset=config.eval.dataset)
    named = {config.policy.api_key_env, *(one.api_key_env for one in config.policy.models)} - {None}
    if named <= set(settings.inference_key_envs):
        return settings
    wanted = (*settings.inference_key_envs, *sorted(str(one) for one in named))
    return read_settings(dataset=config.eval.dataset, inference_key_envs=wanted)


def _run(config: "EvalConfig", settings: "Settings", out: Path, resume: bool) -> int:
    from verilog_taskapp.cli.results import print_summary
    from verilog_taskapp.evaluation.backend import SampleFault
    from verilog_taskapp.evaluation.directory import WrongDirectory
    from verilog_taskapp.evaluation.journal import JournalFault

    try:
        outcome, stopped = run(_evaluate(config, settings, out, resume))
    except (WrongDirectory, JournalFault) as error:
        fail(str(error), Exit.USAGE)
    except SampleFault as fault:
        fail(fault.message, Exit.NO_ANSWER if fault.retryable else Exit.USAGE)
    except OSError as error:
        fail(f"{error.filename or out}: {error.strerror or error}", Exit.NO_ANSWER)
    if outcome is not None:
        print_summary(outcome.summary)
        note(f"results are in {out}")
        if outcome.fatal is not None:
            fail(outcome.fatal.message, Exit.USAGE)
    if stopped is not None:
        note("stopped before the end; --resume goes on")
        return 128 + stopped
    return Exit.OK if outcome is not None and outcome.summary.complete else Exit.NO_ANSWER


async def _evaluate(
    config: "EvalConfig", settings: "Settings", out: Path, resume: bool
) -> "tuple[Outcome | None, int | None]":
    """The outcome, None when it was cut off, and the signal that ended it early."""
    from verilog_taskapp.cli.eval_progress import shown
    from verilog_taskapp.evaluation.run import evaluate as evaluated
    from verilog_taskapp.evaluation.run import opened

    stopping = asyncio.Event()
    received: list[int] = []
    loop = asyncio.get_running_loop()

    async def whole() -> "Outcome":
        async with opened(config, settings) as ready:
            with shown(config) as show:
                return await evaluated(ready, out, resume=resume, stopping=stopping, show=show)

    task = asyncio.ensure_future(whole())

    def stop(number: int) -> None:
        received.append(number)
        if number == signal.SIGINT and len(received) == 1:
            note("finishing the samples in flight; interrupt again to stop now")
            stopping.set()
        else:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        outcome = await task
    except asyncio.CancelledError:
        if not received:
            raise
        return None, received[-1]
    return outcome, received[-1] if received else None
