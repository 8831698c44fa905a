"""Rollouts that cannot be brought to an end: whose fault it is, what the caller is told, and what is kept."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve
from tests.support import KEY, Reply, Service, call, call_text, completion, rollout_body, traces_in, turn_of
from verilog_taskapp.errors import EnvironmentFailed

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUICK = {"inference_retries": 2}


def failing_at(turn: int, reply: Callable[[], Reply]) -> Callable[[dict[str, Any]], Reply]:
    """A model that compiles up to a turn, at which it gives this reply for ever."""
    return lambda body: completion(call_text("compile")) if turn_of(body) < turn else reply()


async def check_kept(service: Service, error: dict[str, Any], steps: int) -> None:
    """What every failed rollout says, and that its stored trace holds as much."""
    assert error["run_id"] == "run-1"
    partial = error["partial_trajectory"]
    assert len(partial["steps"]) == partial["length"] == steps
    assert partial["final"]["reward"] == pytest.approx(-0.01 * steps)
    stored = await service.services.traces.load(error["trace_id"])
    assert stored is not None
    trace = stored["session_trace"]
    assert trace["metadata"]["status"] == "failed"
    assert trace["metadata"]["error"] == {
        "code": error["code"],
        "message": error["message"],
        "stage": error["stage"],
    }
    assert len(trace["session_time_steps"]) == steps


RETRIED: dict[str, tuple[Callable[[], Reply], int | None]] = {
    "500": (lambda: httpx.Response(500, text="oops"), 500),
    "503": (lambda: httpx.Response(503, json={"error": {"message": "warming up"}}), 503),
    "429": (lambda: httpx.Response(429, json={"error": {"message": "slow down"}}), 429),
    "408": (lambda: httpx.Response(408), 408),
    "unreachable": (lambda: httpx.ConnectError("connection refused"), None),
    "cut off": (lambda: httpx.RemoteProtocolError("peer closed connection"), None),
    "silent": (lambda: httpx.ReadTimeout("nothing"), None),
}


@pytest.mark.parametrize("name", RETRIED)
async def test_a_model_server_that_keeps_failing_is_an_inference_failure(serve: Serve, name: str) -> None:
    reply, status = RETRIED[name]
    async with serve(**QUICK) as service:
        service.model.answer = failing_at(2, reply)
        error = await service.error(502)
        assert (error["code"], error["stage"], error["retryable"]) == ("inference_failed", "inference", True)
        assert error["upstream_status"] == status
        assert len(error["attempts"]) == 3
        assert len(service.model.requests) == 2 + 3
        await check_kept(service, error, 2)


MALFORMED: dict[str, Callable[[], Reply]] = {
    "html": lambda: httpx.Response(200, text="<html>busy</html>"),
    "nothing": lambda: httpx.Response(200),
    "a list": lambda: httpx.Response(200, json=[]),
    "no choices": lambda: httpx.Response(200, json={"choices": []}),
    "no message": lambda: httpx.Response(200, json={"choices": [{"text": "hi"}]}),
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_an_answer_that_is_no_chat_completion_is_one_too(serve: Serve, name: str) -> None:
    async with serve(**QUICK) as service:
        service.model.answer = failing_at(1, MALFORMED[name])
        error = await service.error(502)
        assert (error["code"], error["stage"], error["retryable"]) == ("inference_failed", "inference", True)
        await check_kept(service, error, 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418, 422])
async def test_a_refusal_is_the_caller_s_configuration(service: Service, status: int) -> None:
    reply = httpx.Response(status, json={"error": {"message": "bad key sk-abcdefgh12345678", "code": "nope"}})
    service.model.answer = failing_at(1, lambda: reply)
    error = await service.error(424)
    assert (error["code"], error["stage"], error["retryable"]) == ("inference_rejected", "inference", False)
    assert (error["upstream_status"], error["upstream_code"]) == (status, "nope")
    assert "sk-abcdefgh" not in json.dumps(error)
    assert len(service.model.requests) == 2, "never tried again"
    await check_kept(service, error, 1)


async def test_a_redirect_is_not_followed(service: Service) -> None:
    service.model.answer = lambda _: httpx.Response(307, headers={"Location": "http://elsewhere.test/v1"})
    error = await service.error(424)
    assert (error["code"], error["upstream_status"]) == ("inference_rejected", 307)
    assert {request.url.host for request in service.model.requests} == {"model.test"}


async def test_a_model_server_that_recovers_costs_time_only(service: Service) -> None:
    answer = await service.rollout(model="scripted:fail_first=3,status_code=503")
    assert answer["metrics"]["details"]["task_completed"] is True
    retries = answer["trajectories"][0]["steps"][0]["info"]["retries"]
    assert [(one["reason"], one["status"]) for one in retries] == [("status", 503)] * 3
    assert "retries" not in answer["trajectories"][0]["steps"][1]["info"]


async def test_a_missing_key_names_its_variable(service: Service) -> None:
    for url, variable in (
        ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    ):
        error = await service.error(424, policy={"inference_url": url})
        assert (error["code"], error["stage"], error["variable"]) == ("inference_key_missing", "inference", variable)
        assert variable in error["message"]
    error = await service.error(424, policy={"api_key_env": "HOME"})
    assert "VERILOG_INFERENCE_KEY_ENVS" in error["message"]
    assert not service.model.requests


async def test_a_host_that_may_not_be_contacted_is_refused(serve: Serve) -> None:
    async with serve(inference_hosts=("model.test",)) as service:
        for url in ("http://other.test/v1", "http://169.254.169.254/latest", "http://[fe80::1]/v1"):
            error = await service.error(424, policy={"inference_url": url})
            assert error["code"] == "inference_host_refused"
        assert not service.model.requests
        assert (await service.rollout())["metrics"]["details"]["task_completed"] is True


async def test_the_time_limit_during_failures_is_the_model_server_s_fault(serve: Serve) -> None:
    async with serve(inference_retries=50, inference_backoff_s=0.02) as service:
        service.model.answer = lambda _: httpx.Response(500)
        error = await service.error(502, safety={"max_time_s": 0.3})
        assert error["code"] == "inference_failed"
        assert error["attempts"]


async def test_an_unparsable_native_call_is_the_policy_s_fault(service: Service) -> None:
    refusal = {"message": "Failed to call a function", "code": "tool_use_failed", "failed_generation": "<function=x"}

    def reply(body: dict[str, Any]) -> Reply:
        if turn_of(body) == 0:
            return httpx.Response(400, json={"error": refusal})
        return completion(call_text("submit"))

    service.model.answer = reply
    answer = await service.rollout(policy={"tool_mode": "native", "heuristics": "off"})
    first, last = answer["trajectories"][0]["steps"]
    assert (first["tool_calls"], first["reward"]) == ([], pytest.approx(-0.01))
    assert (first["info"]["assistant_message"], first["info"]["model_response"]) == ("<function=x", None)
    assert last["done"] is True


async def test_more_rollouts_than_the_server_takes_are_sent_away(serve: Serve) -> None:
    async with serve(max_rollouts=1, rollout_queue=0, model={"mode": "hang"}) as service:
        first = asyncio.create_task(service.rollout(safety={"max_time_s": 30}))
        while service.model.app.stats.in_flight != 1:  # noqa: ASYNC110 - a count of another task's
            await asyncio.sleep(0.001)
        answer = await service.client.post("/rollout", json=rollout_body())
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "overloaded")
        assert int(answer.headers["Retry-After"]) > 0
        assert (answer.json()["error"]["run_id"], answer.json()["error"]["retryable"]) == ("run-1", True)
        health = (await service.client.get("/health/rollout")).json()
        assert (health["ok"], health["capacity"]["rollouts_in_flight"]) == (False, 1)
        service.model.app.closing.set()  # the hanging request fails, and is tried again in vain
        service.model.app.options = type(service.model.app.options)(mode="http500", status_code=400)
        with pytest.raises(AssertionError, match="inference_rejected"):
            await first
        assert service.services.rollouts.in_flight == 0
        scripted = await service.rollout(ops=[call("submit")])
        assert scripted["metrics"]["details"]["status"] == "completed"


async def test_one_failure_told_to_several_rollouts_keeps_their_names_apart(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = EnvironmentFailed("the simulator is gone")

    async def fail(*_: object, **__: object) -> None:
        await asyncio.sleep(0)
        raise shared

    names = [f"run-{number}" for number in range(4)]
    for where in ("choose", "judge.compile"):
        target, _, attribute = where.rpartition(".")
        owner = service.services.world.judge if target else service.services.world
        with monkeypatch.context() as patch:
            patch.setattr(owner, attribute, fail)
            bodies = [rollout_body(run_id=name, ops=[call("compile")]) for name in names]
            answers = await asyncio.gather(*(service.client.post("/rollout", json=body) for body in bodies))
        errors = [answer.json()["error"] for answer in answers]
        assert [error["run_id"] for error in errors] == names
        assert len({error.get("trace_id") for error in errors}) == (4 if target else 1)
    assert shared.extras == {}


# --- what must never leave the server


def secret_lines(service: Service) -> set[str]:
    """Lines of references and testbenches that are in no prompt and that nobody writes by chance."""
    prompts = "\n".join(problem.prompt for problem in service.problems)
    lines = {
        line.strip()
        for problem in service.problems
        for text in (problem.reference, problem.testbench)
        for line in text.splitlines()
    }
    return {line for line in lines if len(line) >= 20 and line not in prompts}


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


PORTS = "(input [7:0] a, input [7:0] b, input is_signed, output [7:0] min, output [7:0] max, output equal)"
CURIOUS = (
    "module TopModule (input nothing); endmodule",
    f"module TopModule {PORTS}; assign undeclared_thing = ; endmodule",
    f"module TopModule {PORTS}; RefModule ref(.a(a), .b(b)); endmodule",
    f"module TopModule {PORTS}; assign min = tb.good1.min; endmodule",
    f'module TopModule {PORTS}; `include "/etc/passwd"\nendmodule',
    f'module TopModule {PORTS}; `include "tb.sv"\nendmodule',
    f'module TopModule {PORTS}; initial $display("%m %s", `__FILE__); endmodule',
    f"module TopModule {PORTS}; initial $dumpvars; initial $finish; endmodule",
    f"module TopModule {PORTS}; assign min = 0; assign max = 1'bx; assign equal = 1; endmodule",
    f"module RefModule {PORTS}; endmodule\nmodule tb; endmodule\nmodule TopModule {PORTS}; endmodule",
    f"module TopModule {PORTS}; initial begin : b integer i; for (i = 0; i < 9; i = i + 1) $display(i); end endmodule",
    "not verilog at all",
)


def named(opened: dict[str, Any]) -> dict[str, Any]:
    """What a request to an open session begins with."""
    return {"env_id": opened["env_id"]}


async def test_reference_bench_paths_and_keys_are_never_shown(serve: Serve, tmp_path: Path) -> None:
    secret_key = "sk-upstream-secret-0123456789"
    settings: dict[str, Any] = {"inference_key_envs": ("OWN_KEY",), "named_keys": {"OWN_KEY": secret_key}}
    async with serve(**settings, inference_retries=0, cache_dir=tmp_path / "own") as service:
        shown: list[str] = []
        problem = {"problem": "vt001_min_max", "feedback": "waveform"}
        policy = {"max_steps": 25, "heuristics": "off", "api_key_env": "OWN_KEY"}
        texts = [
            text
            for design in CURIOUS
            for text in (call_text("write_file", path="TopModule.v", content=design), call_text("simulate"))
        ]
        service.model.answer = lambda body: completion([*texts, call_text("submit")][turn_of(body)])
        record = {"return_trace": True, "trace_format": "full"}
        shown.append(json.dumps(await service.rollout(env=problem, policy=policy, record=record)))
        service.model.answer = failing_at(3, lambda: httpx.Response(500, text=f"your key is {secret_key}"))
        shown.append(json.dumps(await service.error(502, env=problem, policy=policy)))
        for design in CURIOUS:
            write = call("write_file", path="TopModule.v", content=design)
            ops = [write, call("compile"), call("simulate"), call("submit")]
            shown.append(json.dumps(await service.rollout(ops=ops, env=problem, record=record)))
        opened = await service.post("/env/verilog/initialize", {"config": problem})
        shown.append(json.dumps(opened))
        for design in CURIOUS[1:4]:
            calls = [call("write_file", path="TopModule.v", content=design), call("simulate")]
            shown.append(json.dumps(await service.post("/env/verilog/step", {**named(opened), "tool_calls": calls})))
        for path in ("/info", "/task_info?seed=0", "/task_info", "/health", "/metrics", "/openapi.json"):
            shown.append((await service.client.get(path)).text)
        shown += [request.content.decode() for request in service.model.requests]
        await service.post("/env/verilog/terminate", named(opened))
        traces = traces_in(service.settings.cache_dir)
        assert {trace["metadata"]["status"] for trace in traces} >= {"completed", "failed", "terminated"}
        shown += [json.dumps(trace) for trace in traces]
        secrets = secret_lines(service)
        scratch = str(service.services.world.runner.scratch)
    assert len(secrets) > 500
    assert any("waveform" in text for text in shown)
    everything = "\n".join(text for one in shown for text in (strings(json.loads(one)) if one[0] == "{" else [one]))
    assert "module TopModule" in everything
    assert [line for line in secrets if line in everything] == []
    for private in (scratch, str(service.settings.cache_dir), "root:x:0", KEY, secret_key):
        assert private not in everything, private
    sent = {request.headers.get("authorization") for request in service.model.requests}
    assert sent == {f"Bearer {secret_key}"}, "where it belongs"
