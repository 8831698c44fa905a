"""Who may call: every protected route, every way to send a key, and servers without one."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest

from tests.app.conftest import Serve
from tests.support import KEY, Service, settings_in
from verilog_taskapp.app import create_app
from verilog_taskapp.http.auth import Keyring, is_loopback
from verilog_taskapp.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROTECTED = [
    ("GET", "/info"),
    ("GET", "/task_info"),
    ("POST", "/rollout"),
    ("POST", "/rollout/batch"),
    ("POST", "/env/verilog/initialize"),
    ("POST", "/env/verilog/step"),
    ("POST", "/env/verilog/terminate"),
    ("POST", "/done"),
    ("GET", "/debug/env"),
    ("POST", "/proxy/v1/chat/completions"),
    ("POST", "/proxy/groq/v1/chat/completions"),
    ("GET", "/proxy/v1/models"),
    ("GET", "/metrics"),
]
OPEN = {"/", "/health", "/health/rollout", "/ready", "/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc"}


async def ask(service: Service, method: str, path: str, headers: Mapping[str, str]) -> httpx.Response:
    """A request with these headers and no key of its own."""
    del service.client.headers["X-API-Key"]
    try:
        return await service.client.request(method, path, headers=headers)
    finally:
        service.client.headers["X-API-Key"] = KEY


async def test_every_route_is_either_open_by_contract_or_in_the_list_of_protected_ones(tmp_path: Path) -> None:
    app = create_app(settings_in(tmp_path))
    schema = app.openapi()["paths"]
    described = {(method.upper(), path) for path, methods in schema.items() for method in methods}
    assert {(method, path) for method, path in described if path not in OPEN} == set(PROTECTED)


async def test_a_server_without_a_key_closes_its_protected_routes(serve: Serve) -> None:
    async with serve(environment_api_key=None) as service:
        for method, path in PROTECTED:
            answer = await ask(service, method, path, {"X-API-Key": "anything"})
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (503, "missing_environment_api_key"), path
            assert "ENVIRONMENT_API_KEY" in error["message"]


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer wrong"}])
async def test_a_missing_or_wrong_key_is_refused_before_anything_else(
    service: Service, headers: dict[str, str]
) -> None:
    for method, path in PROTECTED:
        answer = await ask(service, method, path, headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized"), path
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "wrong" not in answer.text


@pytest.mark.parametrize("content", [b"{broken", b"\xff", b'{"run_id": 7}'])
async def test_without_a_key_no_body_is_read(service: Service, content: bytes) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        read += 1
        yield content

    del service.client.headers["X-API-Key"]
    for path in ("/rollout", "/env/verilog/step", "/proxy/v1/chat/completions"):
        answer = await service.client.post(path, content=body(), headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
    assert read == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"X-API-Key": KEY},
        {"x-api-key": f"  {KEY} "},
        {"X-API-Keys": KEY},
        {"X-API-Keys": f"first, {KEY},,third"},
        {"Authorization": f"Bearer {KEY}"},
        {"Authorization": f"bearer   {KEY}"},
        {"X-API-Key": "wrong", "X-API-Keys": "wrong,too", "Authorization": f"Bearer {KEY}"},
    ],
)
async def test_any_of_three_headers_opens_the_door(service: Service, headers: dict[str, str]) -> None:
    answer = await ask(service, "POST", "/done", headers)
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "service": "grpo-verilog"})


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": KEY},
        {"X-API-Key": f"{KEY},wrong"},
        {"X-API-Key": KEY[:-1]},
        {"X-API-Key": KEY.upper()},
        {"X-API-Key": ""},
        {"X-API-Keys": " , ,"},
        {"X-API-Keys": KEY.replace("-", ",")},
        {"X-API-Key": "\xff\xfe"},
    ],
)
async def test_nothing_else_does(service: Service, headers: dict[str, str]) -> None:
    encoded = {name: value.encode("latin-1") for name, value in headers.items()}
    assert (await ask(service, "POST", "/done", encoded)).status_code == 401  # type: ignore[arg-type]


async def test_every_alias_is_a_key(serve: Serve) -> None:
    async with serve(environment_api_key_aliases="second-key, third-key ,") as service:
        statuses = {
            key: (await ask(service, "POST", "/done", {"X-API-Key": key})).status_code
            for key in (KEY, "second-key", "third-key", "fourth-key", "second-key, third-key ,")
        }
    assert statuses == {KEY: 200, "second-key": 200, "third-key": 200, "fourth-key": 401} | {
        "second-key, third-key ,": 401
    }


@pytest.mark.parametrize("variable", ["DEV_ENVIRONMENT_API_KEY", "dev_environment_api_key"])
async def test_development_variables_stand_in_for_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "dev-key")
    assert Settings(cache_dir=tmp_path).server_keys == ("dev-key",)
    assert settings_in(tmp_path).server_keys == (KEY,), "only while the key itself is unset"


async def test_health_tells_three_states_apart(serve: Serve) -> None:
    async with serve() as service:
        stranger = await ask(service, "GET", "/health", {})
        wrong = await ask(service, "GET", "/health", {"X-API-Key": "wrong"})
        known = await ask(service, "GET", "/health", {"X-API-Key": KEY})
    body = {"status": "healthy", "healthy": True, "authorized": False, "auth": {"required": True}}
    assert (stranger.status_code, stranger.json()) == (200, body)
    assert (wrong.status_code, wrong.json()) == (200, body)
    assert known.status_code == 200
    assert known.json() == known.json() | body | {"authorized": True}
    assert {"toolchain", "dataset", "capacity"} <= set(known.json())
    async with serve(environment_api_key=None) as service:
        for path in ("/health", "/health/rollout"):
            keyless = await ask(service, "GET", path, {"X-API-Key": KEY})
            assert keyless.status_code == 503
            assert keyless.json() == {"status": "unhealthy", "detail": "Missing ENVIRONMENT_API_KEY"}


async def test_without_keys_on_loopback_everything_is_open(serve: Serve) -> None:
    async with serve(environment_api_key=None, no_auth=True) as service:
        assert (await ask(service, "POST", "/done", {})).status_code == 200
        health = (await ask(service, "GET", "/health", {})).json()
        assert (health["authorized"], health["auth"]) == (True, {"required": False})


async def test_without_keys_callers_from_elsewhere_are_refused_even_if_the_server_was_bound_to_more(
    serve: Serve,
) -> None:
    async with serve(environment_api_key=None, no_auth=True) as service:
        for address, status in (("192.168.1.4", 401), ("10.0.0.1", 401), ("::ffff:10.0.0.1", 401), ("::1", 200)):
            transport = httpx.ASGITransport(app=service.app, client=(address, 1234))
            async with httpx.AsyncClient(transport=transport, base_url="http://service.test") as caller:
                assert (await caller.post("/done")).status_code == status, address


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com", "", "127.0.0.1.example.com"])  # noqa: S104
async def test_without_keys_no_other_host_is_served(tmp_path: Path, host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ValueError, match="loopback"):
        create_app(settings_in(tmp_path, no_auth=True, host=host))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "[::1]", "localhost"])
async def test_loopback_hosts_are_recognised(tmp_path: Path, host: str) -> None:
    assert is_loopback(host)
    assert Keyring(settings_in(tmp_path, no_auth=True, host=host)).open
