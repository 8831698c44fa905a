"""``python -m verilog_taskapp.scripted``: the scripted server as a process of its own."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from verilog_taskapp.errors import DatasetUnavailable
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted.episodes import EPISODE_NAMES, MODES
from verilog_taskapp.scripted.options import ScriptedOptions
from verilog_taskapp.scripted.server import ScriptedServer
from verilog_taskapp.settings import load_settings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m verilog_taskapp.scripted",
        description="An OpenAI-compatible server that answers from scripts. It is not a model.",
        epilog="A request changes the knobs for itself in the header x-scripted or in a model name such as "
        "scripted:mode=wrong,latency_ms=20.",
    )
    defaults = ScriptedOptions()
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="TCP port; 0: a free one (%(default)s)")
    parser.add_argument("--dataset", default=None, help="as VERILOG_DATASET: bundled, verilog-eval, dir:PATH, ...")
    parser.add_argument("--mode", choices=MODES, default=defaults.mode, help="what to play (%(default)s)")
    parser.add_argument("--episode", choices=EPISODE_NAMES, default=None, help="play this episode for every problem")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="wait before every answer")
    parser.add_argument("--error-rate", type=float, default=0.0, help="share of requests that fail, 0 to 1")
    parser.add_argument("--fail-first", type=int, default=0, help="let the first N requests fail")
    parser.add_argument("--status-code", type=int, default=defaults.status_code, help="of a failure (%(default)s)")
    parser.add_argument("--retry-after", default=None, help="Retry-After header of a failure")
    parser.add_argument("--token-ids", action="store_true", help="answer return_token_ids with synthetic ids")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit code: 1 for an unreadable problem set or a taken port, 2 for usage."""
    parser = _parser()
    given = parser.parse_args(argv)
    try:
        options = ScriptedOptions(
            mode=given.mode,
            episode=given.episode,
            latency_ms=given.latency_ms,
            error_rate=given.error_rate,
            fail_first=given.fail_first,
            status_code=given.status_code,
            retry_after=given.retry_after,
            token_ids=given.token_ids,
        )
    except ValueError as error:
        parser.error(str(error))
    try:
        problems = load_problem_set(load_settings(dataset=given.dataset)).problems
        with asyncio.Runner(loop_factory=_fast_event_loop) as runner:
            runner.run(_serve(options, problems, given.host, given.port))
    except (DatasetUnavailable, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _fast_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(options: ScriptedOptions, problems: Sequence[Problem], host: str, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    async with ScriptedServer(options, problems, host=host, port=port) as server:
        print(f"listening on {server.url}", file=sys.stderr, flush=True)
        await stop.wait()


if __name__ == "__main__":
    sys.exit(main())
