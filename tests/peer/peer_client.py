"""Drive a running task app with synth-ai's real client and print, as one JSON line, what it saw.

Run by the peer's own python, where nothing of this project is installed::

    PEER_VENV/bin/python tests/peer/peer_client.py BASE_URL API_KEY INFERENCE_URL

`INFERENCE_URL` is a chat-completions endpoint. Exits with 1, and says in which part, as soon as something fails.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import traceback
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from synth_ai.task import (
    RolloutEnvSpec,
    RolloutPolicySpec,
    RolloutRecordConfig,
    RolloutRequest,
    RolloutResponse,
    TaskAppClient,
    TaskInfo,
    task_app_health,
    validate_task_app_endpoint,
    validate_task_app_url,
)

ENV = "verilog"
SEEDS = [3, 1, 3]


class Unexpected(Exception):
    """The service answered, but not what the contract says."""


def expect(condition: object, what: str) -> None:
    """Raise `Unexpected` unless `condition` holds."""
    if not condition:
        raise Unexpected(what)


def task_of(info: TaskInfo) -> str:
    """The problem id that a `TaskInfo` is about."""
    return str(info.dataset.model_extra and info.dataset.model_extra.get("instance_id"))


async def health(client: TaskAppClient) -> dict[str, Any]:
    """Reachable, healthy, and our key is accepted."""
    answer = await client.health()
    reachable = await task_app_health(client.base_url)
    expect(answer.get("healthy") is True, f"healthy is {answer.get('healthy')!r}")
    expect(answer.get("authorized") is True, f"authorized is {answer.get('authorized')!r}")
    expect(reachable.get("ok") is True, f"HEAD / said {reachable}")
    return {"status": answer.get("status"), "authorized": answer["authorized"], "head_status": reachable["status"]}


async def info(client: TaskAppClient) -> dict[str, Any]:
    """The parts that trainers read from ``/info``."""
    answer = await client.info()
    for part in ("service", "dataset", "rubrics", "inference", "limits"):
        expect(isinstance(answer.get(part), dict), f"info.{part} is {answer.get(part)!r}")
    return {
        "task": answer["service"]["task"]["id"],
        "version": answer["service"]["version"],
        "dataset": answer["dataset"].get("id"),
        "rubrics": sorted(name for name, rubric in answer["rubrics"].items() if rubric),
    }


async def task_info(client: TaskAppClient) -> dict[str, Any]:
    """No seeds: the task set; one seed: one task; several: as many, in the order asked."""
    whole = await client.task_info()
    expect(isinstance(whole, TaskInfo), "no seeds: not a TaskInfo")
    assert isinstance(whole, TaskInfo)
    taskset = (whole.model_extra or {}).get("taskset")
    expect(isinstance(taskset, dict) and taskset, "no seeds: no taskset")
    one = await client.task_info([SEEDS[0]])
    expect(isinstance(one, TaskInfo), "one seed: not a TaskInfo")
    assert isinstance(one, TaskInfo)
    several = await client.task_info(SEEDS)
    expect(isinstance(several, list) and len(several) == len(SEEDS), f"{len(SEEDS)} seeds: not that many tasks")
    assert isinstance(several, list)
    expect(task_of(one) == task_of(several[0]), "the same seed named two problems")
    return {
        "taskset": taskset,
        "environment": whole.environment,
        "one": task_of(one),
        "several": [task_of(item) for item in several],
        "limits": one.limits.model_dump(),
    }


def summary(response: RolloutResponse) -> dict[str, Any]:
    """The numbers of a rollout that must agree with each other, and what is interesting besides."""
    trajectory = response.trajectories[0]
    final = trajectory.final or {}
    return {
        "run_id": response.run_id,
        "episode_returns": response.metrics.episode_returns,
        "mean_return": response.metrics.mean_return,
        "outcome_score": response.metrics.outcome_score,
        "events_score": response.metrics.events_score,
        "final_reward": final.get("reward"),
        "step_rewards": [step.reward for step in trajectory.steps],
        "tools": [call.get("tool_name") for step in trajectory.steps for call in step.tool_calls],
        "done": [step.done for step in trajectory.steps],
        "length": trajectory.length,
        "num_steps": response.metrics.num_steps,
        "num_episodes": response.metrics.num_episodes,
        "ops_executed": response.ops_executed,
        "aborted": response.aborted,
        "inference_url": trajectory.inference_url,
        "details": response.metrics.details,
        "trace_keys": sorted(response.trace or {}),
    }


async def rollout(client: TaskAppClient, inference_url: str) -> dict[str, Any]:
    """One episode in which the model at `inference_url` acts."""
    request = RolloutRequest(
        run_id=f"peer-{uuid.uuid4()}",
        env=RolloutEnvSpec(env_name=ENV, config={"split": "all"}, seed=0),
        policy=RolloutPolicySpec(
            policy_name="scripted", config={"model": "scripted", "inference_url": inference_url, "max_llm_calls": 10}
        ),
        ops=["agent"],
        record=RolloutRecordConfig(return_trace=True, trace_format="full"),
    )
    response = await client.rollout(request)
    expect(response.run_id == request.run_id, "another run's id")
    expect(response.trajectories, "no trajectory")
    expect(response.trace, "no trace although it was asked for")
    return summary(response)


async def script(client: TaskAppClient) -> dict[str, Any]:
    """One episode of given tool calls: a syntax error is compiled and handed in."""
    broken = {"path": "TopModule.v", "content": "module TopModule (input a, output b;\nendmodule\n"}
    calls = [("write_file", broken), ("compile", {}), ("submit", {})]
    request = RolloutRequest(
        run_id=f"peer-{uuid.uuid4()}",
        env=RolloutEnvSpec(env_name=ENV, config={"split": "all"}, seed=0),
        policy=RolloutPolicySpec(policy_name="nobody"),
        ops=[{"tool": tool, "args": args} for tool, args in calls],
    )
    return summary(await client.rollout(request))


async def session(client: TaskAppClient) -> dict[str, Any]:
    """A session from start to end, every request sent twice."""
    opening = {"seed": 0, "config": {"split": "all"}, "session_id": f"peer-{uuid.uuid4()}"}
    opened = await client.env.initialize(ENV, opening)
    again = await client.env.initialize(ENV, opening)
    env_id = opened["env_id"]
    expect(again["env_id"] == env_id, "the same session_id opened two sessions")
    expect(opened["done"] is False, "done before the first step")

    openai_call = {"id": "call_1", "type": "function", "function": {"name": "compile", "arguments": "{}"}}
    compiling = {"env_id": env_id, "tool_calls": [openai_call], "step_id": "1"}
    compiled = await client.env.step(ENV, compiling)
    expect(await client.env.step(ENV, compiling) == compiled, "a repeated step answered something else")
    submitting = {"env_id": env_id, "tool_calls": [{"tool": "submit", "args": {}}], "step_id": "2"}
    submitted = await client.env.step(ENV, submitting)
    expect(submitted["done"] is True, "not done after a submit")

    closed = await client.env.terminate(ENV, {"env_id": env_id})
    closed_again = await client.env.terminate(ENV, {"env_id": env_id})
    expect(closed["ok"] is True, f"terminate said {closed}")
    expect(closed_again["ok"] is True, f"the second terminate said {closed_again}")
    return {
        "roles": [message["role"] for message in opened["prompt"]],
        "tools": sorted(tool["function"]["name"] for tool in opened["tools"]),
        "observation_keys": sorted(opened["observation"]),
        "rewards": [compiled["reward"], submitted["reward"]],
        "truncated": submitted["truncated"],
    }


async def refusal(call: Callable[[], Awaitable[object]]) -> dict[str, Any]:
    """Status and error object of a call that must be refused."""
    try:
        await call()
    except httpx.HTTPStatusError as fault:
        body = fault.response.json()
        expect(body.get("error") == body.get("detail"), f"error and detail differ: {body}")
        return {"status": fault.response.status_code, **body["error"]}
    raise Unexpected("the call was not refused")


async def refusals(client: TaskAppClient) -> dict[str, Any]:
    """A wrong key, a wrong type and an unknown session."""
    hot = RolloutRequest(
        run_id="peer-hot", env=RolloutEnvSpec(), policy=RolloutPolicySpec(config={"temperature": "hot"}), ops=[]
    )
    async with TaskAppClient(client.base_url, "not-the-key", retries=1) as stranger:
        return {
            "wrong_key": await refusal(stranger.info),
            "wrong_type": await refusal(lambda: client.rollout(hot)),
            "unknown_session": await refusal(
                lambda: client.env.step(ENV, {"env_id": f"peer-{uuid.uuid4()}", "tool_calls": []})
            ),
        }


async def validator(client: TaskAppClient) -> dict[str, Any]:
    """The peer's own verdict on the service."""
    url = validate_task_app_url(client.base_url)
    with contextlib.redirect_stdout(sys.stderr):
        passed, results = await validate_task_app_endpoint(url, client.api_key, min_instances=10, verbose=True)
    expect(passed, f"validate_task_app_endpoint: {results}")
    return {
        "endpoints": {name: facts["passed"] for name, facts in results["endpoints"].items()},
        "auth": results["auth"],
        "instances": results["task_instances"],
    }


async def drive(base_url: str, api_key: str, inference_url: str, seen: dict[str, Any]) -> None:
    """Run every part in order, noting in `seen` what each one saw and which one is running."""
    async with TaskAppClient(base_url, api_key, timeout=300.0, retries=1) as client:
        parts: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
            "health": lambda: health(client),
            "info": lambda: info(client),
            "task_info": lambda: task_info(client),
            "rollout": lambda: rollout(client, inference_url),
            "script": lambda: script(client),
            "session": lambda: session(client),
            "refusals": lambda: refusals(client),
            "validator": lambda: validator(client),
        }
        for name, part in parts.items():
            seen["part"] = name
            seen[name] = await part()
    del seen["part"]


def main() -> int:
    """Exit status 0 if every part went well."""
    parser = argparse.ArgumentParser(description="Drive a task app with synth-ai's own client.")
    parser.add_argument("base_url")
    parser.add_argument("api_key")
    parser.add_argument("inference_url")
    given = parser.parse_args()
    seen: dict[str, Any] = {"ok": False}
    try:
        asyncio.run(drive(given.base_url, given.api_key, given.inference_url, seen))
        seen["ok"] = True
    except Exception as fault:  # noqa: BLE001  whatever it is, the caller gets it as JSON
        traceback.print_exc()
        seen["error"] = f"{type(fault).__name__}: {fault}"
        if isinstance(fault, httpx.HTTPStatusError):
            seen["answer"] = fault.response.text[:2000]
    print(json.dumps(seen))
    return 0 if seen["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
