"""Many rollouts at once, what became of each, and what a server process holds open."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.running import Server
from tests.support import DEADLINE_S, KEY

SOLVED = 0.1 + 1 + 10 - 4 * 0.01
"""What the scripted solution of any problem is paid: write, compile, simulate, submit."""


@dataclass(frozen=True)
class Outcome:
    """How one rollout ended."""

    status: int
    code: str
    """The error's code; empty for an answer."""
    body: dict[str, Any]

    @property
    def reward(self) -> float:
        """What an answered rollout was paid."""
        return float(self.body["metrics"]["details"]["total_reward"])

    @property
    def error(self) -> dict[str, Any]:
        """The error object of a failed one."""
        error: dict[str, Any] = self.body["error"]
        return error


@dataclass(frozen=True)
class Batch:
    """Rollouts that ran together."""

    outcomes: tuple[Outcome, ...]
    elapsed_s: float

    @property
    def answered(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.status == 200]

    @property
    def failed(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.status != 200]

    def __str__(self) -> str:
        counts = Counter(f"{one.status} {one.code}".strip() for one in self.outcomes)
        return f"{', '.join(f'{n} x {what}' for what, n in sorted(counts.items()))} in {self.elapsed_s:.1f} s"


def new_client() -> httpx.AsyncClient:
    """A caller that keeps no connection open between its requests."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx.AsyncClient(headers={"X-API-Key": KEY}, timeout=DEADLINE_S, limits=limits, trust_env=False)


async def run(server: Server, bodies: Sequence[dict[str, Any]]) -> Batch:
    """Post all of `bodies` at once and wait for every answer."""
    started = time.monotonic()
    async with new_client() as client:
        answers = await asyncio.gather(*(client.post(f"{server.url}/rollout", json=body) for body in bodies))
    outcomes = [Outcome(one.status_code, one.json().get("error", {}).get("code", ""), one.json()) for one in answers]
    return Batch(tuple(outcomes), time.monotonic() - started)


async def get(server: Server, path: str) -> httpx.Response:
    """The answer of one GET, on a connection of its own."""
    async with new_client() as client:
        return await client.get(f"{server.url}{path}")


async def in_line_and_in_flight(server: Server) -> tuple[int, int]:
    """How many rollouts wait and how many run, as the server says."""
    capacity = (await get(server, "/health")).json()["capacity"]
    return capacity["rollouts_queued"], capacity["rollouts_in_flight"]


def check_solved(batch: Batch) -> None:
    """Every rollout was answered and paid as a solution."""
    assert [one.code for one in batch.failed] == []
    assert [one.reward for one in batch.outcomes] == [pytest.approx(SOLVED)] * len(batch.outcomes)


def check_environment_failed(outcome: Outcome) -> None:
    """A failure that is the service's own, and says so: no reward, no verdict."""
    assert (outcome.status, outcome.code) == (500, "environment_failed"), outcome.body
    assert outcome.error["stage"] in ("initialize", "tool", "verdict"), outcome.error
    assert outcome.error["retryable"] is True, outcome.error
    assert "metrics" not in outcome.body


def descriptors(server: Server, kept_port: int) -> int:
    """How many files, pipes and sockets the server process holds open, beside connections kept to `kept_port`."""
    return len(os.listdir(f"/proc/{server.process.pid}/fd")) - connections_to(server, kept_port)


def connections_to(server: Server, port: int) -> int:
    """How many open sockets of the server process lead to `port`."""
    held = set()
    for entry in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            held.add(os.readlink(entry))
        except FileNotFoundError:  # closed since it was listed
            continue
    lines = Path(f"/proc/{server.process.pid}/net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return sum(int(row[2].rpartition(":")[2], 16) == port and f"socket:[{row[9]}]" in held for row in rows)
