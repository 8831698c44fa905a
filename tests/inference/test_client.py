"""Model calls: what is tried again and when, whose fault the rest is, and that a key goes nowhere else."""

import asyncio
import contextlib
import gzip
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import orjson
import pytest
from pydantic import SecretStr

from verilog_taskapp.errors import (
    ContextLengthExceeded,
    InferenceFailed,
    InferenceHostRefused,
    InferenceRejected,
    InvalidRequest,
    TaskAppError,
)
from verilog_taskapp.inference.client import ChatClient, Completion, DeadlineReached, ToolCallUnparsable
from verilog_taskapp.inference.endpoint import Endpoint
from verilog_taskapp.inference.forwarded import MAX_ANSWER_BYTES
from verilog_taskapp.inference.retry import Attempt, backoff_s, is_retryable, retry_after_s
from verilog_taskapp.settings import Settings

KEY = "sk-proj-abcdefgh12345678"
TARGET = Endpoint("https://model.example/v1/chat/completions?cid=7", SecretStr(KEY))
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "id": "c1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "done"}, "finish_reason": "stop"}],
    "usage": {"total_tokens": 3},
}
WALL = 1_000_000_000.0

Reply = httpx.Response | Exception


def ok() -> httpx.Response:
    return httpx.Response(200, json=ANSWER)


def error(status: int, message: str = "no", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message}}, headers=headers)


class Bench:
    """A client over scripted replies, in a time of its own: waiting moves the clock and takes none."""

    def __init__(self, *replies: Reply, jitter: float = 1.0, **settings: Any) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []
        self.now = 100.0
        self.client = ChatClient(
            Settings(**settings),
            httpx.MockTransport(self._reply),
            sleep=self._sleep,
            clock=lambda: self.now,
            wall_clock=lambda: WALL,
            jitter=lambda: jitter,
        )

    def _reply(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    async def complete(self, target: Endpoint = TARGET, deadline: float | None = None) -> Completion:
        async with self.client:
            return await self.client.complete(target, BODY, deadline=deadline)

    async def fault(self, deadline: float | None = None) -> TaskAppError:
        with pytest.raises(TaskAppError) as caught:
            await self.complete(deadline=deadline)
        return caught.value


class TestAnswer:
    async def test_a_completion_comes_back_whole(self) -> None:
        bench = Bench(ok())
        done = await bench.complete()
        assert done.response == ANSWER
        assert done.message == {"role": "assistant", "content": "done"}
        assert (done.finish_reason, done.usage) == ("stop", {"total_tokens": 3})
        assert (done.attempts, done.elapsed_s) == ((), 0.0)

    async def test_the_request_is_the_body_with_the_key_of_the_endpoint(self) -> None:
        bench = Bench(ok())
        await bench.complete()
        (request,) = bench.requests
        assert (request.method, str(request.url)) == ("POST", TARGET.url)
        assert orjson.loads(request.content) == BODY
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["content-type"] == "application/json"

    async def test_an_endpoint_without_a_key_gets_no_credentials(self) -> None:
        bench = Bench(ok())
        await bench.complete(Endpoint("http://localhost:8000/v1/chat/completions"))
        assert "authorization" not in bench.requests[0].headers

    async def test_a_completion_is_never_streamed(self) -> None:
        bench = Bench(ok())
        await bench.client.complete(TARGET, {**BODY, "stream": True, "stream_options": {"include_usage": True}})
        assert orjson.loads(bench.requests[0].content) == BODY
        await bench.client.aclose()

    async def test_odd_optional_fields_are_none(self) -> None:
        done = await Bench(
            httpx.Response(200, json={"choices": [{"message": {}, "finish_reason": 3}], "usage": []})
        ).complete()
        assert (done.message, done.finish_reason, done.usage) == ({}, None, None)

    async def test_nan_logprobs_and_half_a_surrogate_pair_are_survived(self) -> None:
        logprobs = b'{"content": [{"logprob": -Infinity}, NaN]}'
        raw = b'{"choices": [{"message": {"content": "a\\ud83d"}, "logprobs": %b}]}' % logprobs
        done = await Bench(httpx.Response(200, content=raw)).complete()
        assert done.message["content"] == "a?"
        assert done.response["choices"][0]["logprobs"] == {"content": [{"logprob": None}, None]}

    async def test_half_a_surrogate_pair_in_the_conversation_can_be_sent(self) -> None:
        bench = Bench(ok())
        await bench.client.complete(TARGET, {"messages": [{"content": "\ud83d"}], "seed": 2**70})
        assert bench.requests[0].content == b'{"messages": [{"content": "\\ud83d"}], "seed": 1180591620717411303424}'
        with pytest.raises(InvalidRequest):
            await bench.client.complete(TARGET, {"seed": object()})
        with pytest.raises(InvalidRequest):
            await bench.client.complete(TARGET, {"seed": 2**70, "temperature": float("nan")})
        await bench.client.aclose()

    async def test_an_endpoint_that_is_no_url_is_refused(self) -> None:
        with pytest.raises(InvalidRequest):
            await Bench(ok()).complete(Endpoint("http://h:port/v1"))

    async def test_cookies_are_not_carried_from_one_call_to_the_next(self) -> None:
        bench = Bench(httpx.Response(200, json=ANSWER, headers={"set-cookie": "who=first; Path=/"}))
        await bench.client.complete(TARGET, BODY)
        await bench.client.complete(TARGET, BODY)
        assert [request.headers.get("cookie") for request in bench.requests] == [None, None]
        await bench.client.aclose()


class TestRetries:
    @pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
    async def test_a_passing_failure_is_tried_again(self, status: int) -> None:
        bench = Bench(error(status), ok())
        done = await bench.complete()
        assert done.attempts == (Attempt("status", status, 0.5),)
        assert (bench.waits, done.elapsed_s) == ([0.5], 0.5)

    @pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 422, 451])
    async def test_any_other_refusal_is_final(self, status: int) -> None:
        bench = Bench(error(status, "unknown model"), ok())
        fault = await bench.fault()
        assert isinstance(fault, InferenceRejected)
        assert (fault.status, fault.retryable) == (424, False)
        assert fault.extras == {"upstream_status": status, "upstream_error": "unknown model"}
        assert fault.message == f"model.example answered {status}: unknown model"
        assert len(bench.requests) == 1

    @pytest.mark.parametrize(
        ("broken", "reason"),
        [
            (httpx.ConnectError("refused"), "connection"),
            (httpx.ReadError("reset"), "connection"),
            (httpx.RemoteProtocolError("peer closed connection"), "connection"),
            (httpx.ConnectTimeout("slow"), "timeout"),
            (httpx.ReadTimeout("slow"), "timeout"),
            (httpx.PoolTimeout("full"), "timeout"),
        ],
    )
    async def test_a_broken_connection_is_tried_again(self, broken: Exception, reason: Any) -> None:
        done = await Bench(broken, ok()).complete()
        assert done.attempts == (Attempt(reason, None, 0.5),)

    async def test_waits_double_up_to_the_cap(self) -> None:
        bench = Bench(error(503), inference_retries=7)
        fault = await bench.fault()
        assert bench.waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0]
        assert len(bench.requests) == 8
        assert isinstance(fault, InferenceFailed)
        assert (fault.status, fault.retryable, fault.extras["upstream_status"]) == (502, True, 503)
        assert fault.extras["attempts"][0] == {"reason": "status", "status": 503, "wait_s": 0.5}
        assert fault.extras["attempts"][7] == {"reason": "status", "status": 503, "wait_s": 0.0}
        assert fault.message == "model.example failed (8 attempts), last: 503: no"

    async def test_jitter_is_full(self) -> None:
        bench = Bench(error(503), jitter=0.25, inference_retries=3)
        await bench.fault()
        assert bench.waits == [0.125, 0.25, 0.5]
        assert backoff_s(0.5, 10_000, 0.5) == 10.0

    async def test_no_retries_means_one_attempt(self) -> None:
        bench = Bench(httpx.ConnectError("refused"), inference_retries=0)
        fault = await bench.fault()
        assert fault.message == "model.example failed (1 attempt), last: ConnectError refused"
        assert (bench.waits, fault.extras["upstream_status"]) == ([], None)

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            ("7", 7.0),
            ("0.25", 0.25),
            ("0", 0.0),
            ("Sun, 09 Sep 2001 01:46:49 GMT", 9.0),
            ("Sun, 09 Sep 2001 01:46:49 -0000", 9.0),
            ("Sun, 09 Sep 2001 01:00:00 GMT", 0.0),
            ("-3", None),
            ("nan", None),
            ("inf", None),
            ("soon", None),
            ("", None),
            (None, None),
        ],
    )
    def test_retry_after_is_seconds_or_a_date(self, header: str | None, expected: float | None) -> None:
        assert retry_after_s(header, WALL) == expected

    async def test_what_the_server_asks_for_is_waited_with_jitter_on_top(self) -> None:
        bench = Bench(
            error(429, **{"retry-after": "30"}), error(503, **{"retry-after": "Sun, 09 Sep 2001 01:46:49 GMT"}), ok()
        )
        done = await bench.complete()
        assert bench.waits == [30.5, 10.0]
        assert [attempt.wait_s for attempt in done.attempts] == [30.5, 10.0]

    async def test_an_hour_is_not_waited_without_a_deadline(self) -> None:
        bench = Bench(error(429, **{"retry-after": "3600"}))
        fault = await bench.fault()
        assert (bench.waits, fault.retry_after_s, fault.status) == ([], 3600.0, 502)

    def test_the_statuses_worth_another_try(self) -> None:
        assert [status for status in range(100, 600) if is_retryable(status)] == [408, 409, 425, 429, *range(500, 600)]


class TestDeadline:
    async def test_a_wait_that_would_pass_it_is_not_begun(self) -> None:
        bench = Bench(error(503), inference_retries=20)
        fault = await bench.fault(deadline=104.0)
        assert isinstance(fault, InferenceFailed)
        assert bench.waits == [0.5, 1.0, 2.0]
        assert bench.now < 104.0

    async def test_a_long_retry_after_is_waited_within_it_and_not_beyond(self) -> None:
        assert (await Bench(error(429, **{"retry-after": "300"}), ok()).complete(deadline=500.0)).attempts[
            0
        ].wait_s == 300.5
        bench = Bench(error(429, **{"retry-after": "300"}), ok())
        assert (await bench.fault(deadline=350.0)).retry_after_s == 300.0
        assert bench.waits == []

    async def test_after_it_nothing_is_sent(self) -> None:
        bench = Bench(ok())
        with pytest.raises(DeadlineReached):
            await bench.complete(deadline=100.0)
        assert bench.requests == []

    async def test_a_call_that_is_still_running_then_is_told_from_a_failure(self) -> None:
        async def never(request: httpx.Request) -> httpx.Response:
            await asyncio.Event().wait()
            raise AssertionError

        async with ChatClient(Settings(), httpx.MockTransport(never), jitter=lambda: 0.0) as client:
            deadline = asyncio.get_running_loop().time() + 0.02
            with pytest.raises(DeadlineReached) as caught:
                await client.complete(TARGET, BODY, deadline=deadline)
        assert not isinstance(caught.value, TaskAppError)
        assert caught.value.attempts == ()

    async def test_what_failed_before_it_is_known(self) -> None:
        calls = 0

        async def first_fails(request: httpx.Request) -> httpx.Response:
            nonlocal calls
            calls += 1
            if calls == 1:
                return error(500)
            await asyncio.Event().wait()
            raise AssertionError

        async with ChatClient(Settings(), httpx.MockTransport(first_fails), jitter=lambda: 0.0) as client:
            with pytest.raises(DeadlineReached) as caught:
                await client.complete(TARGET, BODY, deadline=asyncio.get_running_loop().time() + 0.05)
        assert caught.value.attempts == (Attempt("status", 500, 0.0),)

    async def test_the_time_of_one_attempt_is_not_the_deadline(self) -> None:
        async def never(request: httpx.Request) -> httpx.Response:
            await asyncio.Event().wait()
            raise AssertionError

        settings = Settings(inference_timeout_s=0.01, inference_retries=2)
        async with ChatClient(settings, httpx.MockTransport(never), jitter=lambda: 0.0) as client:
            with pytest.raises(InferenceFailed) as caught:
                await client.complete(TARGET, BODY, deadline=asyncio.get_running_loop().time() + 60)
        assert [attempt["reason"] for attempt in caught.value.extras["attempts"]] == ["timeout"] * 3


class TestRefusals:
    @pytest.mark.parametrize(
        ("status", "body"),
        [
            (
                400,
                {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}},
            ),
            (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}),
            (
                400,
                {"error": {"message": "This model's maximum context length is 4096 tokens. However, ...", "code": 400}},
            ),
            (400, {"message": "The input (61709 tokens) is longer than the model's context length (40960 tokens)."}),
            (400, {"error": {"message": "the request exceeds the available context size.", "code": 400}}),
            (400, {"error": {"message": "x", "type": "exceed_context_size_error", "n_ctx": 256}}),
            (500, {"error": {"message": "x", "type": "exceed_context_size_error", "n_ctx": 256}}),
            (400, {"error": {"message": "Please reduce the length of the messages or completion."}}),
            (400, {"error": "The decoder prompt (length 9) is longer than the maximum model length of 8."}),
            (413, {"detail": "the maximum context length was passed"}),
        ],
    )
    async def test_a_full_context_is_no_fault(self, status: int, body: dict[str, Any]) -> None:
        bench = Bench(httpx.Response(status, json=body))
        with pytest.raises(ContextLengthExceeded, match=r"model\.example answered"):
            await bench.complete()
        assert len(bench.requests) == 1

    @pytest.mark.parametrize(
        ("status", "message", "kind"),
        [
            (401, "maximum context length", InferenceRejected),
            (400, "max_tokens must be positive", InferenceRejected),
            (400, "context is a reserved word", InferenceRejected),
            (503, "maximum context length service is down", InferenceFailed),
        ],
    )
    async def test_other_refusals_are_not_mistaken_for_it(
        self, status: int, message: str, kind: type[Exception]
    ) -> None:
        with pytest.raises(kind):
            await Bench(error(status, message)).complete()

    async def test_a_native_tool_call_that_the_server_could_not_parse_is_given_back(self) -> None:
        said = {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<tool>{"}
        fault = await Bench(httpx.Response(400, json={"error": said})).fault()
        assert isinstance(fault, ToolCallUnparsable)
        assert isinstance(fault, InferenceRejected)
        assert fault.generation == "<tool>{"
        assert fault.extras["upstream_code"] == "tool_use_failed"

    async def test_the_excerpt_is_cut_and_on_one_line(self) -> None:
        fault = await Bench(httpx.Response(403, text="<html>\n" + "word " * 90_000)).fault()
        assert len(fault.extras["upstream_error"]) == 500
        assert fault.extras["upstream_error"].startswith("<html> word word")
        assert "\n" not in fault.message

    @pytest.mark.parametrize(
        "said",
        [
            f"Incorrect API key provided: {KEY}. You can find yours on the site.",
            "Incorrect API key provided: sk-proj-********5678.",
            f"x{'y' * 470} Bearer {KEY}",
            f"{'y ' * 1990}{KEY}{'z' * 400}",
            f"you sent 'Bearer {KEY[:12]}' and more",
        ],
    )
    @pytest.mark.parametrize("status", [400, 401, 500, 200])
    async def test_no_part_of_a_key_is_in_an_exception(self, said: str, status: int) -> None:
        for reply in (
            httpx.Response(status, text=said),
            httpx.Response(status, json={"error": {"message": said, "code": said}}),
        ):
            fault = await Bench(reply, inference_retries=1).fault()
            shown = "".join(traceback.format_exception(fault)) + repr(fault) + str(vars(fault)) + str(fault.extras)
            assert "abcd" not in shown
            assert "5678" not in shown

    async def test_no_part_of_a_key_is_in_a_network_error(self) -> None:
        fault = await Bench(httpx.RemoteProtocolError(f"illegal header 'Bearer {KEY}'")).fault()
        assert KEY not in repr(fault) + str(fault) + str(fault.extras)

    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    @pytest.mark.parametrize("location", ["https://evil.com/v1/chat/completions", "https://model.example/other"])
    async def test_a_redirect_is_not_followed_so_no_key_goes_along(self, status: int, location: str) -> None:
        bench = Bench(httpx.Response(status, headers={"location": location}))
        fault = await bench.fault()
        assert isinstance(fault, InferenceRejected)
        assert fault.extras["upstream_status"] == status
        assert [request.url.host for request in bench.requests] == ["model.example"]


class TestMalformed:
    @pytest.mark.parametrize(
        "body", [b"", b"<html>hello</html>", b'{"choices": [{"mess', b"\xff\xfe", b"data: {}\n\n", b"[" * 100_000]
    )
    async def test_a_body_that_is_not_json_is_asked_for_once_more(self, body: bytes) -> None:
        bench = Bench(httpx.Response(200, content=body))
        fault = await bench.fault()
        assert isinstance(fault, InferenceFailed)
        assert len(bench.requests) == 2
        assert [attempt["reason"] for attempt in fault.extras["attempts"]] == ["malformed", "malformed"]
        assert (await Bench(httpx.Response(200, content=body), ok()).complete()).response == ANSWER

    @pytest.mark.parametrize(
        "body",
        [
            {},
            [],
            "text",
            None,
            {"choices": []},
            {"choices": None},
            {"choices": {}},
            {"choices": ["x"]},
            {"choices": [{}]},
            {"choices": [{"text": "a legacy completion"}]},
            {"choices": [{"message": "text"}]},
            {"error": {"message": "upstream provider is down", "code": 502}},
        ],
    )
    async def test_json_that_is_no_chat_completion_is_the_model_servers_fault(self, body: Any) -> None:
        bench = Bench(httpx.Response(200, content=orjson.dumps(body)))
        fault = await bench.fault()
        assert isinstance(fault, InferenceFailed)
        assert "not a chat completion" in fault.message
        assert len(bench.requests) == 1

    async def test_an_answer_without_end_is_cut_off(self) -> None:
        sent = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal sent
            while True:
                sent += 1
                yield b"x" * 1024**2

        def reply(request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, content=endless())

        async with ChatClient(Settings(inference_retries=0), httpx.MockTransport(reply)) as client:
            with pytest.raises(InferenceFailed, match=f"more than {MAX_ANSWER_BYTES} bytes"):
                await client.complete(TARGET, BODY)
        assert sent == 17

    async def test_a_compressed_answer_is_read_and_a_broken_one_is_malformed(self) -> None:
        packed = gzip.compress(orjson.dumps(ANSWER))
        good = httpx.Response(200, stream=httpx.ByteStream(packed), headers={"content-encoding": "gzip"})
        broken = httpx.Response(200, stream=httpx.ByteStream(b"not gzip"), headers={"content-encoding": "gzip"})
        done = await Bench(broken, good).complete()
        assert done.response == ANSWER
        assert done.attempts == (Attempt("malformed", None, 0.5),)


Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(*scripts: Script) -> AsyncIterator[str]:
    """A real server on a real port; each connection plays the next script after reading one request."""
    left = list(scripts)
    running: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = left.pop(0) if len(left) > 1 else left[0]
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
            )
            await reader.readexactly(length)
            await script(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(play(reader, writer))
        running[task] = writer

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat/completions"
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for writer in running.values():
            writer.close()  # a task that was cancelled before it began has not done so
        await asyncio.sleep(0)


async def answers_well(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    body = orjson.dumps(ANSWER)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


async def closes_mid_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"choices": [')
    await writer.drain()


async def closes_mid_chunk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"cho\r\nff\r\nices')
    await writer.drain()


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    return


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


def quick(**settings: Any) -> ChatClient:
    return ChatClient(Settings(**settings), jitter=lambda: 0.0)


class TestRealServer:
    async def test_broken_connections_are_got_over(self) -> None:
        async with serving(hangs_up, closes_mid_body, closes_mid_chunk, answers_well) as url, quick() as client:
            done = await client.complete(Endpoint(url), BODY)
        assert done.response == ANSWER
        assert [attempt.reason for attempt in done.attempts] == ["connection"] * 3

    async def test_a_server_that_says_nothing_is_a_time_out(self) -> None:
        async with serving(says_nothing) as url, quick(inference_timeout_s=0.05, inference_retries=1) as client:
            with pytest.raises(InferenceFailed) as caught:
                await client.complete(Endpoint(url), BODY)
        assert [attempt["reason"] for attempt in caught.value.extras["attempts"]] == ["timeout", "timeout"]

    async def test_a_server_that_drips_is_a_time_out_too(self) -> None:
        async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)

        async with serving(drips) as url, quick(inference_timeout_s=0.1, inference_retries=0) as client:
            with pytest.raises(InferenceFailed) as caught:
                await client.complete(Endpoint(url), BODY)
        assert caught.value.extras["attempts"][0]["reason"] == "timeout"

    async def test_a_port_where_nobody_listens_is_a_failed_connection(self) -> None:
        async with serving(answers_well) as url:
            pass
        async with quick(inference_retries=1) as client:
            with pytest.raises(InferenceFailed) as caught:
                await client.complete(Endpoint(url), BODY)
        assert [attempt["reason"] for attempt in caught.value.extras["attempts"]] == ["connection"] * 2

    async def test_the_network_of_a_client_refuses_metadata_addresses(self) -> None:
        async with quick() as client:
            with pytest.raises(InferenceHostRefused):
                await client.complete(Endpoint("http://169.254.169.254/v1/chat/completions"), BODY)
            with pytest.raises(InferenceHostRefused):
                await client.forward(Endpoint("http://[::ffff:169.254.169.254]/v1/chat/completions"), BODY)

    async def test_a_cancelled_call_hangs_up_on_the_server(self) -> None:
        asked, hung_up = asyncio.Event(), asyncio.Event()

        async def waits(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.set()
            assert await reader.read() == b""
            hung_up.set()

        async with serving(waits) as url, quick() as client:
            call = asyncio.create_task(client.complete(Endpoint(url), BODY))
            await asyncio.wait_for(asked.wait(), 5)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.wait_for(hung_up.wait(), 5)

    async def test_a_huge_error_is_not_read_to_its_end(self) -> None:
        hung_up = asyncio.Event()

        async def complains(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 999999999\r\n\r\n" + b"no " * 100_000)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            hung_up.set()

        async with serving(complains) as url, quick() as client:
            with pytest.raises(InferenceRejected):
                await client.complete(Endpoint(url), BODY)
            await asyncio.wait_for(hung_up.wait(), 5)

    async def test_many_calls_run_at_once_and_do_not_mix(self) -> None:
        everyone = asyncio.Barrier(200)

        async def echoes(request: httpx.Request) -> httpx.Response:
            await everyone.wait()
            asked = orjson.loads(request.content)["n"]
            said = {"key": request.headers["authorization"], "n": asked}
            return httpx.Response(200, json={"choices": [{"message": said}]})

        async with ChatClient(Settings(), httpx.MockTransport(echoes)) as client:
            calls = [client.complete(Endpoint(TARGET.url, SecretStr(f"k{n}")), {"n": n}) for n in range(200)]
            done = await asyncio.wait_for(asyncio.gather(*calls), 20)
        assert [each.message for each in done] == [{"key": f"Bearer k{n}", "n": n} for n in range(200)]

    async def test_calls_over_real_connections_run_at_once(self) -> None:
        everyone = asyncio.Barrier(50)

        async def meets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await everyone.wait()
            await answers_well(reader, writer)

        async with serving(meets) as url, quick(max_rollouts=50) as client:
            calls = (client.complete(Endpoint(url), BODY) for _ in range(50))
            done = await asyncio.wait_for(asyncio.gather(*calls), 20)
        assert all(each.response == ANSWER for each in done)


class TestForward:
    async def test_a_refusal_is_handed_over_as_it_is_after_one_attempt(self) -> None:
        bench = Bench(error(429, "slow down", **{"retry-after": "3"}))
        async with bench.client, await bench.client.forward(TARGET, BODY) as upstream:
            assert upstream.status == 429
            assert upstream.headers["retry-after"] == "3"
            assert orjson.loads(await upstream.read()) == {"error": {"message": "slow down"}}
        assert len(bench.requests) == 1
        assert bench.requests[0].headers["authorization"] == f"Bearer {KEY}"

    async def test_a_get_has_no_body(self) -> None:
        bench = Bench(httpx.Response(200, json={"data": []}))
        upstream = await bench.client.forward(TARGET, method="GET")
        assert await upstream.read() == b'{"data":[]}'
        assert (bench.requests[0].method, bench.requests[0].content) == ("GET", b"")
        await bench.client.aclose()

    async def test_no_answer_is_the_model_servers_fault(self) -> None:
        bench = Bench(httpx.ConnectError("refused"))
        with pytest.raises(InferenceFailed, match=r"model\.example did not answer: ConnectError refused"):
            await bench.client.forward(TARGET, BODY)
        await bench.client.aclose()

    async def test_a_body_over_the_limit_is_not_kept(self) -> None:
        bench = Bench(httpx.Response(200, content=b"x" * 101))
        upstream = await bench.client.forward(TARGET, BODY)
        with pytest.raises(InferenceFailed, match="more than 100 bytes"):
            await upstream.read(100)
        await bench.client.aclose()

    async def test_a_stream_arrives_piece_by_piece(self) -> None:
        first_was_read = asyncio.Event()

        async def streams(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(b"9\r\ndata: 1\n\n\r\n")
            await writer.drain()
            await first_was_read.wait()
            writer.write(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")
            await writer.drain()

        pieces = []
        async with serving(streams) as url, quick() as client:
            upstream = await client.forward(Endpoint(url), {**BODY, "stream": True})
            assert upstream.headers["content-type"] == "text/event-stream"
            async for piece in upstream.chunks():
                pieces.append(piece)
                first_was_read.set()
        assert pieces == [b"data: 1\n\n", b"data: 2\n\n"]

    async def test_a_stream_that_breaks_off_says_so(self) -> None:
        async with serving(closes_mid_chunk) as url, quick() as client:
            upstream = await client.forward(Endpoint(url), BODY)
            with pytest.raises(InferenceFailed, match="broke off its answer"):
                await upstream.read()

    @pytest.mark.parametrize("how", ["cancelled", "closed unread", "left half-way"])
    async def test_a_reader_that_leaves_hangs_up_on_the_server(self, how: str) -> None:
        hung_up = asyncio.Event()

        async def streams_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
            await writer.drain()
            assert await reader.read() == b""
            hung_up.set()

        async with serving(streams_on) as url, quick() as client:
            upstream = await client.forward(Endpoint(url), BODY)
            if how == "cancelled":
                arrived = asyncio.Event()

                async def reads() -> None:
                    async for _ in upstream.chunks():
                        arrived.set()

                reading = asyncio.create_task(reads())
                await asyncio.wait_for(arrived.wait(), 5)
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
            elif how == "left half-way":
                pieces = upstream.chunks()
                assert await anext(pieces) == b"x"
                await pieces.aclose()
            else:
                await upstream.aclose()
            await asyncio.wait_for(hung_up.wait(), 5)
