"""Two hundred clients that post a rollout and vanish: nothing of theirs goes on, and the next one is served."""

import asyncio
import json
import socket
import struct
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.app.running import Server, server_in, until
from tests.faults.outcomes import check_solved, descriptors, in_line_and_in_flight, run
from tests.support import DEADLINE_S, HANGS, KEY, MIN_MAX, call, files_in, rollout_body, simulators_in
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.scripted import ScriptedOptions, ScriptedServer
from verilog_taskapp.settings import Settings

CLIENTS = 200
LAUNCHERS_MORE = 8
"""Descriptors of the processes that were started because designs ran for long; they stay for the next ones."""
HANG = [call("write_file", path="TopModule.v", content=HANGS), call("simulate")]
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds: closing sends RST instead of FIN."""


def posted(server: Server, body: dict[str, Any]) -> socket.socket:
    """A connection on which a rollout was posted and nothing was read."""
    host, port = server.url.removeprefix("http://").split(":")
    content = json.dumps(body).encode()
    head = f"POST /rollout HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nContent-Type: application/json\r\n"
    connection = socket.create_connection((host, int(port)), DEADLINE_S)
    connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return connection


def vanish(connection: socket.socket, *, reset: bool) -> None:
    """Close at once, with or without an RST."""
    if reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    connection.close()


async def counted(server: Server, expected: tuple[int, int]) -> None:
    """Wait until so many rollouts are in line and in flight."""
    async with asyncio.timeout(DEADLINE_S):
        while await in_line_and_in_flight(server) != expected:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_two_hundred_clients_that_vanish_leave_nothing_running_and_nothing_open(tmp_path: Path) -> None:
    problems = load_problem_set(Settings()).problems
    async with (
        ScriptedServer(ScriptedOptions(), problems) as model,
        server_in(tmp_path, VERILOG_MAX_CHILDREN="2", VERILOG_VERDICT_CACHE="off") as server,
    ):
        port = int(model.url.rpartition(":")[2])
        healthy = rollout_body(policy={"inference_url": model.url}, env=MIN_MAX, run_id="healthy")
        check_solved(await run(server, [healthy] * 8))
        before = descriptors(server, port)

        started = time.monotonic()
        policy = {"inference_url": model.url}
        simulating = [rollout_body(ops=HANG, env=MIN_MAX, run_id=f"simulating-{n}") for n in range(CLIENTS // 2)]
        asking = [
            rollout_body(model="scripted:mode=hang", policy=policy, env=MIN_MAX, run_id=f"asking-{n}")
            for n in range(CLIENTS // 2)
        ]
        bodies = [body for pair in zip(simulating, asking, strict=True) for body in pair]
        connections = [await asyncio.to_thread(posted, server, body) for body in bodies]
        await counted(server, (0, CLIENTS))
        await until(lambda: model.stats.in_flight == CLIENTS // 2, "half of them wait for the model")
        await until(server.simulating, "designs of the others are simulated")
        for number, connection in enumerate(connections):
            vanish(connection, reset=number % 4 < 2)  # of each half, half
        vanished = time.monotonic()

        await counted(server, (0, 0))
        await until(lambda: model.stats.in_flight == 0, "the model is no longer asked")
        await until(lambda: not simulators_in(server.scratch), "the simulations are stopped")
        await until(
            lambda: descriptors(server, port) <= before + LAUNCHERS_MORE, "the descriptors are back to what they were"
        )
        cleared = time.monotonic()
        assert files_in(server.scratch) == []

        after = await run(server, [{**healthy, "run_id": "after"}])
        check_solved(after)
    stored = Counter((one["metadata"]["run_id"].partition("-")[0], one["metadata"]["status"]) for one in server.traces)
    half = CLIENTS // 2
    assert stored == {
        ("healthy", "completed"): 8,
        ("simulating", "aborted"): half,
        ("asking", "aborted"): half,
        ("after", "completed"): 1,
    }
    assert sum(line.get("status") == 499 for line in server.log) == CLIENTS
    assert [line for line in server.log if line["level"] in ("warning", "error")] == []
    print(
        f"\n{CLIENTS} clients: all at work in {vanished - started:.1f} s, "
        f"all gone {cleared - vanished:.1f} s after they vanished; next: {after}"
    )
