"""Rollouts on a running service: faults as they are, and nothing that is no rollout."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support import KEY, MIN_MAX, rollout_request, serving, settings_in
from verilog_taskapp import __version__
from verilog_taskapp.evaluation.backend import InProcess, SampleFault, connect
from verilog_taskapp.icarus.store import JUDGE_VERSION

INFO = {"service": {"version": "1", "judge": "2", "simulator": "icarus 11.0"}, "dataset": {"version": "abc"}}


async def test_a_server_gives_what_this_process_gives(tmp_path: Path, golden_cache: Path) -> None:
    async with serving(settings_in(tmp_path, cache_dir=golden_cache)) as service:
        here = InProcess(service.services.rollouts)
        transport = httpx.ASGITransport(app=service.app)
        async with connect("http://service.test/", KEY, max_time_s=60, concurrency=2, transport=transport) as there:
            assert there.versions == here.versions
            assert (there.versions.service, there.versions.judge) == (__version__, JUDGE_VERSION)
            request = rollout_request(env=MIN_MAX, policy={"seed": 3, "stop": ["###"]})
            remote, local = await there.rollout(request), await here.rollout(request)
    assert remote.metrics.mean_return == local.metrics.mean_return > 10
    assert remote.trajectories[0].final is not None
    assert local.trajectories[0].final is not None
    assert remote.trajectories[0].final.observation == local.trajectories[0].final.observation
    assert service.model.bodies[0] == service.model.bodies[4]


async def test_a_wrong_key_is_told_at_once(tmp_path: Path, golden_cache: Path) -> None:
    async with serving(settings_in(tmp_path, cache_dir=golden_cache)) as service:
        transport = httpx.ASGITransport(app=service.app)
        with pytest.raises(SampleFault) as fault:
            async with connect("http://service.test", "no", max_time_s=60, concurrency=2, transport=transport):
                pass
    assert (fault.value.code, fault.value.fatal, fault.value.retryable) == ("unauthorized", True, False)


def answering(reply: Callable[[], httpx.Response]) -> httpx.MockTransport:
    return httpx.MockTransport(
        lambda request: httpx.Response(200, json=INFO) if request.url.path == "/info" else reply()
    )


def refusing(status: int, code: str, **extra: object) -> httpx.Response:
    headers = {"Retry-After": "7"} if status == 429 else {}
    return httpx.Response(status, json={"error": {"code": code, "message": "told", **extra}}, headers=headers)


@pytest.mark.parametrize(
    ("reply", "code", "retryable", "fatal"),
    [
        (refusing(429, "overloaded", retryable=True), "overloaded", True, False),
        (refusing(503, "draining", retryable=True), "draining", True, False),
        (refusing(500, "environment_failed", retryable=True), "environment_failed", True, False),
        (refusing(424, "inference_key_missing", retryable=False), "inference_key_missing", False, True),
        (refusing(424, "inference_rejected", retryable=False, upstream_status=401), "inference_rejected", False, True),
        (refusing(424, "inference_rejected", retryable=False, upstream_status=400), "inference_rejected", False, False),
        (refusing(409, "problem_unusable", retryable=False), "problem_unusable", False, False),
        (httpx.Response(502, text="<html>bad gateway</html>"), "http_502", True, False),
        (httpx.Response(429, text="slow down"), "overloaded", True, False),
        (httpx.Response(404, text="?"), "http_404", False, False),
        (httpx.Response(200, text="hello"), "http_200", False, False),
        (httpx.Response(200, json={"run_id": 3}), "bad_answer", False, False),
    ],
)
async def test_what_a_refusal_means(reply: httpx.Response, code: str, retryable: bool, fatal: bool) -> None:
    transport = answering(lambda: reply)
    async with connect("http://s.test", KEY, max_time_s=60, concurrency=1, transport=transport) as remote:
        with pytest.raises(SampleFault) as fault:
            await remote.rollout(rollout_request())
    assert (fault.value.code, fault.value.retryable, fault.value.fatal) == (code, retryable, fatal)
    assert fault.value.retry_after_s == (7.0 if "Retry-After" in reply.headers else None)


async def test_a_connection_that_breaks_may_be_tried_again() -> None:
    def broken() -> httpx.Response:
        raise httpx.ReadError("reset")

    async with connect("http://s.test", KEY, max_time_s=60, concurrency=1, transport=answering(broken)) as remote:
        with pytest.raises(SampleFault, match="ReadError reset") as fault:
            await remote.rollout(rollout_request())
    assert fault.value.retryable
