"""Model servers that misbehave: a failure is told as theirs and never scored, and nothing of it stays."""

from pathlib import Path

import pytest

from tests.app.running import server_in, until
from tests.faults.model_servers import (
    Answer,
    bad_server,
    flaps,
    is_limited,
    is_slow,
    never_ends,
    truncates,
)
from tests.faults.outcomes import Batch, check_solved, connections_to, descriptors, in_line_and_in_flight, run
from tests.support import MIN_MAX, rollout_body
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.scripted import ScriptedOptions, ScriptedServer
from verilog_taskapp.settings import Settings

ROLLOUTS = 8
RETRIES = 2
QUICK = {"VERILOG_INFERENCE_RETRIES": str(RETRIES), "VERILOG_INFERENCE_BACKOFF_S": "0.01"}
IMPATIENT = {**QUICK, "VERILOG_INFERENCE_TIMEOUT_S": "1.5"}
STUBBORN = {"VERILOG_INFERENCE_RETRIES": "40", "VERILOG_INFERENCE_BACKOFF_S": "0.001"}
"""Eight rollouts share the server that flaps: one alone may well meet the cut connections ten times in a row."""

FAILING: dict[str, tuple[Answer | None, dict[str, str], str, int | None]] = {
    "is down": (None, QUICK, "connection", None),
    "answers 429": (is_limited, QUICK, "status", 429),
    "truncates its body": (truncates, QUICK, "connection", None),
    "never ends its body": (never_ends, IMPATIENT, "timeout", None),
    "is slow": (is_slow, IMPATIENT, "timeout", None),
}


def asking(url: str, name: str) -> list[dict[str, object]]:
    """Rollouts whose model is at `url`."""
    return [
        rollout_body(policy={"inference_url": url}, env=MIN_MAX, run_id=f"{name}-{number}")
        for number in range(ROLLOUTS)
    ]


def check_failed(batch: Batch, reason: str, status: int | None) -> None:
    """Every rollout says that its model server failed, how often and how, and holds no reward."""
    for outcome in batch.outcomes:
        assert (outcome.status, outcome.code) == (502, "inference_failed"), outcome.body
        error = outcome.error
        assert (error["stage"], error["retryable"], error["upstream_status"]) == ("inference", True, status)
        told = [(attempt["reason"], attempt["status"]) for attempt in error["attempts"]]
        assert told == [(reason, status)] * (RETRIES + 1)
        assert "metrics" not in outcome.body
        assert error["partial_trajectory"]["length"] == 0


@pytest.mark.parametrize("how", FAILING)
async def test_a_model_server_that_fails_is_named_with_its_attempts_and_leaves_no_connection(
    tmp_path: Path, how: str
) -> None:
    answer, variables, reason, status = FAILING[how]
    problems = load_problem_set(Settings()).problems
    async with (
        ScriptedServer(ScriptedOptions(), problems) as good,
        bad_server(answer, good.url) as bad,
        server_in(tmp_path, **variables) as server,
    ):
        good_port = int(good.url.rpartition(":")[2])
        check_solved(await run(server, asking(good.url, "before")))
        before = descriptors(server, good_port)

        failed = await run(server, asking(bad.url, "bad"))
        check_failed(failed, reason, status)
        if status == 429:
            waits = [one["wait_s"] for outcome in failed.outcomes for one in outcome.error["attempts"][:-1]]
            assert min(waits) >= 1, "at least what the server asked for"
        if answer is not None:
            assert bad.requests == ROLLOUTS * (RETRIES + 1)

        after = await run(server, asking(good.url, "after"))
        check_solved(after)
        await until(lambda: connections_to(server, bad.port) == 0, "no connection to the bad server stays")
        await until(lambda: not bad.open, "which sees it as well")
        await until(lambda: descriptors(server, good_port) <= before, "the descriptors are back to what they were")
        assert await in_line_and_in_flight(server) == (0, 0)
    print(f"\nmodel server {how}: {failed}; a good one after it: {after}")


async def test_a_model_server_that_flaps_costs_retries_and_no_reward(tmp_path: Path) -> None:
    problems = load_problem_set(Settings()).problems
    async with (
        ScriptedServer(ScriptedOptions(), problems) as good,
        bad_server(flaps, good.url) as bad,
        server_in(tmp_path, **STUBBORN) as server,
    ):
        good_port = int(good.url.rpartition(":")[2])
        check_solved(await run(server, asking(good.url, "before")))
        before = descriptors(server, good_port)

        flapping = await run(server, asking(bad.url, "flapping"))
        check_solved(flapping)
        steps = [step for one in flapping.outcomes for step in one.body["trajectories"][0]["steps"]]
        retries = [retry for step in steps for retry in step["info"].get("retries", ())]
        assert {(retry["reason"], retry["status"]) for retry in retries} == {("connection", None)}
        assert len(retries) == bad.cut > 0

        await until(lambda: connections_to(server, bad.port) == 0, "no connection to the bad server stays")
        await until(lambda: descriptors(server, good_port) <= before, "the descriptors are back to what they were")
    print(f"\nmodel server flaps: {flapping}, {bad.cut} of {bad.requests} connections cut")
