"""Request ids, cross-origin answers, and logs that hold no key."""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.app.conftest import Serve
from tests.support import KEY, Service, call, completion, rollout_body
from verilog_taskapp.errors import Aborted
from verilog_taskapp.http.disconnect import until_disconnect
from verilog_taskapp.http.logs import configure_logging
from verilog_taskapp.http.middleware import BodyLimit, RequestLog
from verilog_taskapp.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

GROQ_KEY = "gsk-groq-secret-0123456789"
OPENAI_KEY = "sk-openai-secret-0123456789"
OWN_KEY = "own-secret-0123456789"

Logs = Callable[[], str]


async def test_every_answer_has_a_request_id_of_its_own(service: Service) -> None:
    paths = ("/", "/health", "/info", "/nothing", "/metrics")
    ids = [(await service.client.get(path)).headers["x-request-id"] for path in paths]
    assert len(set(ids)) == len(paths)
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in ids)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("trainer-7.step_12", True),
        ("x" * 64, True),
        ("x" * 65, False),
        ("two words", False),
        ("a;b", False),
        ("", False),
    ],
)
async def test_a_plain_request_id_of_the_client_is_kept(service: Service, sent: str, kept: bool) -> None:
    answer = await service.client.get("/", headers={"X-Request-ID": sent})
    assert (answer.headers["x-request-id"] == sent) is kept
    assert answer.headers.get_list("x-request-id") == [answer.headers["x-request-id"]]


async def test_no_origin_may_call_by_default(service: Service) -> None:
    answer = await service.client.get("/", headers={"Origin": "https://page.test"})
    assert "access-control-allow-origin" not in answer.headers


async def test_allowed_origins_may_call_and_ask_before(serve: Serve) -> None:
    async with serve(cors_origins=("https://page.test",)) as service:
        answer = await service.client.get("/health", headers={"Origin": "https://page.test"})
        assert answer.headers["access-control-allow-origin"] == "https://page.test"
        other = await service.client.get("/health", headers={"Origin": "https://other.test"})
        assert "access-control-allow-origin" not in other.headers
        del service.client.headers["X-API-Key"]
        asked = await service.client.options(
            "/rollout",
            headers={
                "Origin": "https://page.test",
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "x-api-key,content-type",
            },
        )
        assert asked.status_code == 200
        assert "POST" in asked.headers["access-control-allow-methods"]
        assert "x-api-key" in asked.headers["access-control-allow-headers"]
        refused = await service.client.post("/rollout", json={}, headers={"Origin": "https://page.test"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
        assert refused.headers["access-control-allow-origin"] == "https://page.test"


@pytest.fixture
def logs(capsys: pytest.CaptureFixture[str]) -> Iterator[Logs]:
    """Reads what went to stderr; the logging of the test run comes back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    named = [logging.getLogger(name) for name in ("httpx", "httpcore", "uvicorn", "uvicorn.error", "uvicorn.access")]
    before = [(one, one.level, one.propagate, one.handlers[:]) for one in named]
    yield lambda: capsys.readouterr().err
    root.handlers[:] = handlers
    root.setLevel(level)
    for one, was, propagate, own in before:
        one.setLevel(was)
        one.propagate = propagate
        one.handlers[:] = own


async def exercise(serve: Serve, settings: Settings) -> None:
    """Requests of every kind that touches a key."""
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    async with serve(**given) as service:
        for headers in ({}, {"X-API-Key": "wrong-secret"}, {"Authorization": "Bearer wrong-secret"}):
            await service.client.get("/info", headers=headers)
        await service.client.get("/info", params={"api_key": "query-secret"})
        await service.rollout(ops=[call("submit")])
        service.model.answer = lambda _: completion("no call", refusal=None)
        await service.client.post("/proxy/v1/chat/completions", json={"model": "m", "messages": []})
        await service.rollout(policy={"inference_url": "https://api.groq.com/openai/v1", "max_steps": 1})
        service.model.answer = lambda body: httpx.ConnectError(f"broken {GROQ_KEY}")
        await service.client.post("/rollout", json=rollout_body(policy={"inference_url": "https://api.groq.com"}))
        await service.client.post("/rollout", content=f'{{"run_id": "{KEY}"')
        assert any(GROQ_KEY in request.headers.get("authorization", "") for request in service.model.requests)


@pytest.mark.parametrize("log_format", ["json", "text"])
async def test_logs_hold_no_key_and_no_content(serve: Serve, logs: Logs, log_format: str) -> None:
    settings = Settings.model_validate(
        {
            "environment_api_key_aliases": "alias-secret-0123456789",
            "groq_api_key": GROQ_KEY,
            "openai_api_key": OPENAI_KEY,
            "inference_key_envs": ("OWN_KEY",),
            "named_keys": {"OWN_KEY": OWN_KEY},
            "inference_retries": 0,
            "log_format": log_format,
            "log_level": "debug",
        }
    )
    configure_logging(settings)
    await exercise(serve, settings)
    written = logs()
    assert "/rollout" in written
    for secret in (KEY, GROQ_KEY, OPENAI_KEY, OWN_KEY, "alias-secret", "wrong-secret", "query-secret"):
        assert secret not in written
        assert secret[-8:] not in written
    assert "module TopModule" not in written


async def test_a_log_line_is_one_json_object_with_the_request_id(serve: Serve, logs: Logs) -> None:
    configure_logging(Settings(log_format="json"))
    async with serve() as service:
        await service.client.get("/info", headers={"X-Request-ID": "abc"})
        await service.client.get("/health")
        await service.client.get("/nothing")
    lines = [json.loads(line) for line in logs().splitlines()]
    requests = [line for line in lines if line["logger"] == "verilog_taskapp.access"]
    assert [(line["method"], line["path"], line["status"]) for line in requests] == [
        ("GET", "/info", 200),
        ("GET", "/nothing", 404),
    ], "health probes that succeed are not worth a line"
    assert (requests[0]["request_id"], requests[0]["level"]) == ("abc", "info")
    assert requests[0]["ms"] >= 0


async def test_an_exception_is_logged_with_its_traceback(logs: Logs) -> None:
    for log_format in ("json", "text"):
        configure_logging(Settings.model_validate({"log_format": log_format}))
        try:
            raise ZeroDivisionError("once")
        except ZeroDivisionError:
            logging.getLogger("verilog_taskapp.test").exception("it broke")
    first, _, rest = logs().partition("\n")
    assert "ZeroDivisionError: once" in json.loads(first)["exception"]
    assert "it broke" in rest
    assert "ZeroDivisionError: once" in rest


async def test_debug_logs_of_the_http_client_are_dropped(logs: Logs) -> None:
    configure_logging(Settings(log_level="debug"))
    logging.getLogger("httpx").info("HTTP Request: POST http://model.test/v1?key=secret")
    logging.getLogger("httpcore.http11").debug("send_request_headers key=secret")
    logging.getLogger("verilog_taskapp.x").debug("kept")
    written = logs()
    assert "secret" not in written
    assert "kept" in written


# --- the parts by themselves

SCOPE: Scope = {"type": "http", "method": "GET", "path": "/info", "headers": []}


async def never() -> Message:
    """A client that waits for its answer."""
    await asyncio.Event().wait()
    raise AssertionError


class Sent:
    """What an application sends."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def __call__(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


async def test_what_is_cancelled_by_a_stopping_server_is_answered_as_draining() -> None:
    async def hangs(*_: object) -> None:
        await asyncio.Event().wait()

    sent = Sent()
    request = asyncio.create_task(RequestLog(hangs)(SCOPE, never, sent))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert sent.status == 503
    assert json.loads(sent.body)["error"]["code"] == "draining"
    assert b"retry-after" in dict(sent.messages[0]["headers"])


async def test_a_bug_in_the_middle_of_an_answer_cuts_it_off() -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    sent = Sent()
    with pytest.raises(ZeroDivisionError):
        await RequestLog(breaks)(SCOPE, never, sent)
    assert len(sent.messages) == 1


@pytest.mark.parametrize("wrapped", [RequestLog, lambda app: BodyLimit(app, 1)])
async def test_what_is_no_request_passes_through(wrapped: Callable[[ASGIApp], ASGIApp]) -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    await wrapped(app)({"type": "lifespan"}, never, Sent())
    assert seen == ["lifespan"]


async def test_work_goes_on_while_its_client_waits() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert await until_disconnect(Request(SCOPE, never), work()) == 7


async def test_work_stops_and_cleans_up_when_its_client_goes() -> None:
    cleaned: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    async def goes() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(Aborted):
        await until_disconnect(Request(SCOPE, goes), work())
    assert cleaned == [True]


async def test_work_stops_and_cleans_up_when_it_is_cancelled_from_outside() -> None:
    cleaned: list[bool] = []

    async def work() -> Response:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)
        return Response()

    waiting = asyncio.create_task(until_disconnect(Request(SCOPE, never), work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cleaned == [True]


async def test_a_fault_of_the_work_is_raised_as_it_is() -> None:
    async def work() -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await until_disconnect(Request(SCOPE, never), work())
