"""What the service tells about itself, and the small routes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.app.conftest import Serve
from tests.support import KEY, Service, call, settings_in
from verilog_taskapp import __version__
from verilog_taskapp.app import create_app
from verilog_taskapp.contracts import ServiceInfo, TaskInfo

pytestmark = pytest.mark.asyncio(loop_scope="module")


def empty_values(value: Any, path: str = "") -> Iterator[str]:
    """Where a JSON value holds null or the text ``None``."""
    if value is None or (isinstance(value, str) and value in ("None", "")):
        yield path
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from empty_values(item, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from empty_values(item, f"{path}[]")


async def get(service: Service, path: str, status: int = 200, **params: Any) -> Any:
    answer = await service.client.get(path, params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_the_root_answers_get_and_head(service: Service) -> None:
    answer = await service.client.get("/")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "service": "grpo-verilog"})
    head = await service.client.head("/")
    assert (head.status_code, head.content) == (200, b"")


async def test_health_gives_facts_to_those_with_a_key(service: Service) -> None:
    health = await get(service, "/health")
    assert health["toolchain"] == {"name": "icarus", "version": health["toolchain"]["version"], "supported": True}
    assert "seccomp" in health["sandbox"], "what is in force"
    assert health["dataset"]["instances"] == len(service.problems)
    assert health["capacity"]["rollouts_in_flight"] == 0
    assert health["capacity"]["max_rollouts"] == service.settings.max_rollouts
    assert health["capacity"]["max_sessions"] == service.settings.max_sessions


async def test_rollout_health_says_whether_a_rollout_would_be_admitted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = await get(service, "/health/rollout")
    assert (free["ok"], free["authorized"], "reason" in free) == (True, True, False)
    monkeypatch.setattr(service.services.rollouts.admission, "capacity", 0)
    assert (await get(service, "/health/rollout"))["ok"], "there is room in line"
    monkeypatch.setattr(service.services.rollouts.admission, "queue", 0)
    full = await get(service, "/health/rollout")
    reason = "0 rollouts are in flight and 0 wait, the most that this server takes"
    assert (full["ok"], full["reason"]) == (False, reason)
    assert (await get(service, "/ready"))["ready"] is True, "full is not broken"


async def test_a_server_with_its_tools_is_ready(service: Service) -> None:
    del service.client.headers["X-API-Key"]
    assert await get(service, "/ready") == {"ready": True, "reasons": []}


async def test_info_is_complete(service: Service) -> None:
    info = await get(service, "/info")
    ServiceInfo.model_validate(info)
    assert set(info) == {"service", "dataset", "rubrics", "inference", "limits"}
    task = info["service"]["task"]
    assert (task["id"], task["name"]) == ("verilog_eval_v2", "VerilogEval Spec-to-RTL")
    assert (task["app_id"], task["app_name"]) == ("grpo-verilog", "GRPO Verilog Task App")
    assert task["aliases"] == ["verilog", "verilog-task"]
    assert info["service"]["version"] == __version__
    assert info["dataset"]["instance_count"] == len(service.problems)
    assert info["dataset"]["splits"] == ["train", "val", "test"]
    assert info["dataset"]["default_split"] == "val"
    assert [one["id"] for one in info["rubrics"]["outcome"]["criteria"]] == ["tests_pass"]
    assert [one["id"] for one in info["rubrics"]["events"]["criteria"]] == ["efficient_iterations"]
    assert info["inference"]["tool"] == {"name": "verilog_tools", "parallel_tool_calls": False}
    assert info["inference"]["endpoints"] == {
        "openai": "/proxy/v1/chat/completions",
        "groq": "/proxy/groq/v1/chat/completions",
    }
    assert info["limits"] == {
        "max_turns": 25,
        "max_response_tokens": 768,
        "timeout_seconds": 90,
        "max_ops": 100000,
        "max_time_s": 3600.0,
    }
    assert set(empty_values(info)) == {".dataset.instance_id", ".dataset.metadata"}, "only an instance has those"


async def test_limits_are_the_configured_ones(serve: Serve) -> None:
    async with serve(max_tokens=99, inference_timeout_s=17.0, default_model="own/model") as service:
        info = await get(service, "/info")
    assert (info["limits"]["max_response_tokens"], info["limits"]["timeout_seconds"]) == (99, 17)
    assert info["inference"]["model"] == "own/model"


async def test_task_info_without_seeds_describes_the_whole_set(service: Service) -> None:
    info = await get(service, "/task_info")
    assert info["taskset"]["instance_ids"] == [problem.id for problem in service.problems][:50]
    assert info["taskset"]["default_seed"] == 0
    assert sum(info["taskset"]["split_counts"].values()) == len(service.problems)
    assert {place.rpartition(".")[2] for place in empty_values(info)} == {
        "instance_id",
        "metadata",
        "problem_name",
        "difficulty",
    }, "only an instance has those"


async def test_task_info_describes_the_problem_that_a_rollout_of_the_seed_gets(service: Service) -> None:
    info = await get(service, "/task_info", seed=3)
    problem = service.problems.select("val", 3)
    TaskInfo.model_validate(info)
    assert info["environment"] == "verilog"
    assert info["action_space"]["tools"] == ["write_file", "compile", "simulate", "submit"]
    assert info["action_space"]["type"] == "tool_calls"
    assert info["observation"]["keys"] == ["files", "compile_status", "simulate_status", "reward_last"]
    assert (info["observation"]["problem_name"], info["observation"]["format"]) == (problem.id, "dict")
    assert info["dataset"]["instance_id"] == problem.id
    assert info["dataset"]["metadata"]["files_provided"] == ["TopModule.v"]
    assert info["rubric"]["criteria_count"] == 2
    assert info["task_metadata"]["judge"] == "golden"
    assert list(empty_values({**info, "task_metadata": info["task_metadata"] | {"judge_reason": "-"}})) == []
    ran = await service.rollout(seed=3, ops=[call("submit")])
    assert ran["metrics"]["details"]["problem"] == problem.id


@pytest.mark.parametrize(
    ("query", "seeds"),
    [
        ({"seed": 3}, [3]),
        ({"seeds": 3}, [3]),
        ({"seed": [5, 0, 5]}, [5, 0, 5]),
        ({"seeds": [2, 1]}, [2, 1]),
        ({"seed": 4, "seeds": [2, 1000003]}, [4, 2, 1000003]),
    ],
)
async def test_seeds_are_answered_in_the_order_asked(service: Service, query: dict[str, Any], seeds: list[int]) -> None:
    answer = await get(service, "/task_info", **query)
    assert isinstance(answer, list) == (len(seeds) > 1)
    answers = answer if isinstance(answer, list) else [answer]
    assert [one["dataset"]["instance_id"] for one in answers] == [
        service.problems.select("val", seed).id for seed in seeds
    ]
    assert [one["task_metadata"]["seed"] for one in answers] == seeds


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": "x"}, "seed.0"),
        ({"seeds": "1.5"}, "seeds.0"),
        ({"split": "dev", "seed": 0}, "split"),
    ],
)
async def test_a_bad_seed_or_split_is_named(service: Service, query: dict[str, Any], field: str) -> None:
    error = (await get(service, "/task_info", 422, **query))["error"]
    assert [one["field"] for one in error["errors"]] == [field]


async def test_too_many_seeds_are_refused(service: Service) -> None:
    error = (await get(service, "/task_info", 422, seed=list(range(1001))))["error"]
    assert error["code"] == "invalid_request"
    assert "1000" in error["message"]


async def test_a_split_can_be_asked_for(service: Service) -> None:
    answer = await get(service, "/task_info", seed=0, split="all")
    assert answer["dataset"]["instance_id"] == next(iter(service.problems)).id
    assert answer["task_metadata"]["split"] == "all"


async def test_debug_env_does_not_exist_until_it_is_switched_on(service: Service) -> None:
    error = (await get(service, "/debug/env", 404))["error"]
    assert error["code"] == "not_found"


async def test_debug_env_shows_booleans_only(serve: Serve) -> None:
    keys = {"OWN_KEY": "value-of-own"}
    async with serve(
        debug_env=True, groq_api_key="value-of-groq", inference_key_envs=("OWN_KEY", "NO_KEY"), named_keys=keys
    ) as service:
        shown = await get(service, "/debug/env")
    assert shown == {
        "ENVIRONMENT_API_KEY": True,
        "ENVIRONMENT_API_KEY_ALIASES": False,
        "GROQ_API_KEY": True,
        "OPENAI_API_KEY": False,
        "OWN_KEY": True,
        "NO_KEY": False,
    }


async def metrics_of(service: Service) -> dict[str, float]:
    """Samples by name and labels (``name tool=compile outcome=ok``), as Prometheus's own parser reads them."""
    answer = await service.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        " ".join([sample.name, *(f"{name}={sample.labels[name]}" for name in sorted(sample.labels))]): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def test_metrics_count_what_happened(serve: Serve) -> None:
    async with serve() as service:
        await service.rollout()
        await service.rollout(ops=[call("write_file", path="../x", content=""), call("compile")])
        await service.rollout(model="scripted:mode=empty", policy={"heuristics": "off", "max_steps": 1})
        await service.rollout(status=404, env={"problem": "nothing"})
        await service.post("/env/verilog/initialize", {})
        seen = await metrics_of(service)
    assert seen["verilog_rollouts_total status=completed"] == 1
    assert seen["verilog_rollouts_total status=truncated"] == 2
    assert seen["verilog_rollouts_total status=problem_not_found"] == 1
    assert seen["verilog_steps_total outcome=ok tool=write_file"] == 1
    assert seen["verilog_steps_total outcome=refused tool=write_file"] == 1
    assert seen["verilog_steps_total outcome=failed tool=compile"] == 1
    assert seen["verilog_steps_total outcome=ok tool=submit"] == 1
    assert seen["verilog_steps_total outcome=refused tool=none"] == 1
    assert seen["verilog_rollout_seconds_count"] == 3
    assert seen["verilog_sessions_open"] == 1
    assert seen["verilog_rollouts_in_flight"] == 0
    assert seen["verilog_children_busy"] == 0
    assert seen["verilog_rollouts_limit"] == service.settings.max_rollouts
    assert seen["verilog_verdicts_total reason=match result=pass"] == 2, "simulate and submit of the first rollout"
    assert seen["verilog_inference_seconds_count"] == 5
    assert seen["verilog_rollout_wait_seconds_count"] == 4
    assert seen["verilog_child_cpu_seconds_count stage=run"] >= 2
    assert seen["verilog_child_wait_seconds_count"] >= 4


async def test_equal_designs_are_judged_once_and_say_so(serve: Serve) -> None:
    async with serve(verdict_cache="memory") as service:
        first, second = [await service.rollout(run_id=name) for name in ("first", "second")]
        seen = await metrics_of(service)
    steps = [answer["trajectories"][0]["steps"] for answer in (first, second)]
    for before, after in zip(*steps, strict=True):
        assert after["reward"] == before["reward"]
        assert after["info"].get("tool_result") == before["info"].get("tool_result")
        if after["tool_calls"][0]["tool_name"] != "write_file":
            assert "cached" not in before["info"]["facts"]
            assert after["info"]["facts"]["cached"] is True
    assert seen["verilog_verdict_cache_total event=hits"] == seen["verilog_verdict_cache_total event=misses"] == 3


async def test_metrics_count_steps_that_the_caller_does_not_want_back(serve: Serve) -> None:
    async with serve() as service:
        await service.rollout(record={"trajectories": False})
        assert (await metrics_of(service))["verilog_steps_total outcome=ok tool=submit"] == 1


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            yield from references(item)


async def test_the_openapi_document_is_made_and_every_model_in_it_is_there(tmp_path: Path) -> None:
    document = create_app(settings_in(tmp_path)).openapi()
    json.dumps(document)
    named = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= named
    assert {"RolloutRequest", "RolloutResponse", "TaskInfo", "StepRequest", "ErrorBody"} <= {
        name.rpartition("/")[2] for name in named
    }


async def test_the_openapi_document_and_its_pages_are_served(service: Service) -> None:
    document = await get(service, "/openapi.json")
    assert document["info"]["title"] == "GRPO Verilog Task App"
    assert (await service.client.get("/docs")).status_code == 200
    assert KEY not in json.dumps(document)
