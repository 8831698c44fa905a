"""Asks ``/health`` again and again, in a process of its own that nothing else keeps busy.

    python -m benchmarks.prober PORT SECONDS

Prints the latencies in seconds as one JSON list.
"""

import asyncio
import json
import sys
import time

from benchmarks.load import Connection

EVERY_S = 0.02


async def probe(port: int, seconds: float) -> list[float]:
    """Latencies of one request after the other, a new one every `EVERY_S` at most. Raises OSError."""
    connection = await Connection.open(port)
    latencies: list[float] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = await connection.ask("GET", "/health")
        if answer.status != 200:
            raise ConnectionError(answer.said)
        latencies.append(answer.latency_s)
        await asyncio.sleep(EVERY_S)
    await connection.close()
    return latencies


if __name__ == "__main__":
    print(json.dumps(asyncio.run(probe(int(sys.argv[1]), float(sys.argv[2])))))
