"""Print, as JSON, what synth-ai's own models and client put on the wire.

Run with the peer's python: ``PEER_VENV/bin/python tests/peer/peer_samples.py > tests/peer/samples.json``.
"""

import asyncio
import json
import sys
from typing import Any

import httpx
from synth_ai.task import (
    RolloutEnvSpec,
    RolloutMetrics,
    RolloutPolicySpec,
    RolloutRecordConfig,
    RolloutRequest,
    RolloutResponse,
    RolloutSafetyConfig,
    RolloutStep,
    RolloutTrajectory,
    TaskAppClient,
    TaskInfo,
)

MINIMAL = RolloutRequest(run_id="r0", env=RolloutEnvSpec(), policy=RolloutPolicySpec(), ops=[])
AGENT = RolloutRequest(
    run_id="r1",
    env=RolloutEnvSpec(env_id="e1", env_name="verilog", config={"split": "train", "index": 3}, seed=3),
    policy=RolloutPolicySpec(
        policy_id="p1",
        policy_name="qwen",
        config={"model": "qwen", "inference_url": "http://127.0.0.1:8000", "max_llm_calls": 6, "stop": "</s>"},
    ),
    ops=["agent"] * 2,
    record=RolloutRecordConfig(logprobs=True, value=True, return_trace=True, trace_format="full"),
    on_done="terminate",
    safety=RolloutSafetyConfig(max_ops=12, max_time_s=60),
    training_session_id="t1",
    synth_base_url="https://example.org",
)
SCRIPTED = RolloutRequest(
    run_id="r2",
    env=RolloutEnvSpec(seed=0),
    policy=RolloutPolicySpec(),
    ops=[{"tool": "compile", "args": {}}, {"tool": "submit"}],
)
RESPONSE = RolloutResponse(
    run_id="r1",
    trajectories=[
        RolloutTrajectory(
            env_id="e1",
            policy_id="p1",
            steps=[RolloutStep(obs={}, tool_calls=[{"tool_name": "compile", "arguments": {}}])],
            length=1,
        )
    ],
    metrics=RolloutMetrics(episode_returns=[0.5], mean_return=0.5, num_steps=1),
)
TASK_INFO = TaskInfo.model_validate(
    {
        "task": {"id": "t", "name": "T"},
        "environment": "verilog",
        "dataset": {},
        "rubric": {},
        "inference": {},
        "limits": {},
    }
)


async def client_requests() -> list[dict[str, Any]]:
    """What each method of the real client sends, as (method, path with query, header names, body)."""
    sent: list[dict[str, Any]] = []

    def record(request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        names = sorted(name for name in request.headers if name.startswith("x-api") or name == "authorization")
        body = json.loads(request.content) if request.content else None
        sent.append({"method": request.method, "path": path, "auth_headers": names, "body": body})
        answer = RESPONSE if path == "/rollout" else TASK_INFO
        several = [TASK_INFO.model_dump()] * 2
        return httpx.Response(200, json=several if path.count("seed=") > 1 else answer.model_dump())

    client = TaskAppClient("http://peer", "k")
    client._client = httpx.AsyncClient(base_url="http://peer", transport=httpx.MockTransport(record))
    async with client:
        await client.health()
        await client.info()
        await client.task_info()
        await client.task_info([3])
        await client.task_info([3, 1])
        await client.rollout(MINIMAL)
        await client.env.initialize("verilog", {"seed": 1})
        await client.env.step("verilog", {"env_id": "e", "tool_calls": [{"tool": "compile", "args": {}}]})
        await client.env.terminate("verilog", {"env_id": "e"})
    return sent


def main() -> None:
    """Write the samples to standard output."""
    samples = {
        "rollout_requests": [request.model_dump(mode="json") for request in (MINIMAL, AGENT, SCRIPTED)],
        "rollout_response": RESPONSE.model_dump(mode="json"),
        "task_info": TASK_INFO.model_dump(mode="json"),
        "client_requests": asyncio.run(client_requests()),
    }
    json.dump(samples, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
