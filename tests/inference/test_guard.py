"""The network of model calls, against real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest

from verilog_taskapp.errors import InferenceHostRefused
from verilog_taskapp.inference.endpoint import is_never_contacted
from verilog_taskapp.inference.guard import GuardedResolver, GuardedTransport, Resolver, resolve

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
DEADLINE_S = 30.0


class Names:
    """A resolver that gives another answer each time, as a rebinding name server does; the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Server:
    """A TCP server on the loopback address that answers every request head with `answer`."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.heads: list[bytes] = []
        self.gone = asyncio.Event()
        self.answer: Callable[[asyncio.StreamWriter], Awaitable[None]] = self.fine

    async def fine(self, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                await self.answer(writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone.set()
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    found = Server()
    listening = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield found


@asynccontextmanager
async def network(names: Resolver = resolve) -> AsyncIterator[GuardedTransport]:
    transport = GuardedTransport(keepalive_s=4.0, resolver=names)
    try:
        yield transport
    finally:
        await transport.aclose()


async def get(
    transport: GuardedTransport, url: str, *, connect_s: float = DEADLINE_S, read_s: float = DEADLINE_S
) -> httpx.Response:
    """The whole answer."""
    limits = {"connect": connect_s, "read": read_s}
    response = await transport.handle_async_request(httpx.Request("GET", url, extensions={"timeout": limits}))
    await response.aread()
    await response.aclose()
    return response


# --- addresses


async def test_the_address_that_was_checked_is_the_one_connected_to(server: Server) -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])

    async def close(writer: asyncio.StreamWriter) -> None:
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))

    server.answer = close
    async with network(names) as transport:
        assert (await get(transport, f"http://rebind.example:{server.port}/v1")).json() == {}
        with pytest.raises(InferenceHostRefused) as caught:
            await get(transport, f"http://rebind.example:{server.port}/v1")
    assert names.asked == ["rebind.example"] * 2
    assert server.connections == 1
    assert caught.value.status == 424
    assert caught.value.extras == {"host": "rebind.example"}
    assert f"host: rebind.example:{server.port}".encode() in server.heads[0].lower()


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "fd00:ec2::254", "100.100.100.200"]
)
async def test_one_forbidden_address_among_several_refuses_the_name(address: str) -> None:
    with pytest.raises(InferenceHostRefused):
        await GuardedResolver(Names(["203.0.113.7", address])).resolve("mixed.example", 80)


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"])
async def test_a_forbidden_address_is_refused_though_nothing_is_resolved(host: str) -> None:
    async with network() as transport:
        with pytest.raises(InferenceHostRefused):
            await get(transport, f"http://{host}/latest/meta-data")


async def test_the_next_address_is_tried_when_one_does_not_answer(server: Server) -> None:
    async with network(Names(["127.0.0.2", "127.0.0.1"])) as transport:  # the server listens on the second alone
        assert (await get(transport, f"http://dual.example:{server.port}/")).status_code == 200


async def test_a_name_without_an_address_is_a_connect_error() -> None:
    async def fails(host: str, port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    async def cannot_be_encoded(host: str, port: int) -> Sequence[str]:
        raise UnicodeError("label too long")

    for names in (fails, cannot_be_encoded, Names([])):
        async with network(names) as transport:
            with pytest.raises(httpx.ConnectError, match=r"nowhere\.example"):
                await get(transport, "http://nowhere.example/")


async def test_a_name_server_that_does_not_answer_is_a_connect_time_out() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async with network(never) as transport:
        with pytest.raises(httpx.ConnectTimeout):
            await get(transport, "http://slow.example/", connect_s=0.01)


async def test_the_systems_resolver_knows_localhost_and_odd_spellings_of_addresses() -> None:
    assert {"127.0.0.1", "::1"} & set(await resolve("localhost", 80))
    assert is_never_contacted((await resolve("0xa9fea9fe", 80))[0])


async def test_tls_is_made_for_the_name_though_the_connection_is_to_an_address() -> None:
    hello: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello.append(await reader.read(4096))
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with network(Names(["127.0.0.1"])) as transport:
            for name in ("one.example", "two.example"):
                with pytest.raises(httpx.TransportError):
                    await get(transport, f"https://{name}:{port}/v1/models")
    assert [b"one.example" in hello[0], b"two.example" in hello[-1]] == [True, True]


# --- connections


async def test_a_connection_is_used_again_and_names_share_none(server: Server) -> None:
    async with network(Names(["127.0.0.1"])) as transport:
        for _ in range(3):
            await get(transport, f"http://one.example:{server.port}/")
        assert server.connections == 1
        await get(transport, f"http://two.example:{server.port}/")
        assert server.connections == 2


async def test_as_many_connections_as_calls_are_made(server: Server) -> None:
    everybody = asyncio.Event()

    async def together(writer: asyncio.StreamWriter) -> None:
        if server.connections == 200:
            everybody.set()
        await everybody.wait()
        writer.write(OK)

    server.answer = together
    async with network() as transport, asyncio.timeout(DEADLINE_S):
        answers = await asyncio.gather(*(get(transport, f"http://127.0.0.1:{server.port}/") for _ in range(200)))
    assert {answer.status_code for answer in answers} == {200}


async def test_giving_up_an_answer_closes_the_connection_so_that_the_server_stops(server: Server) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nfirst")

    server.answer = endless
    async with network() as transport, asyncio.timeout(DEADLINE_S):
        request = httpx.Request("GET", f"http://127.0.0.1:{server.port}/")
        response = await transport.handle_async_request(request)
        async for chunk in response.aiter_bytes():
            assert chunk == b"first"
            break
        await response.aclose()
        await server.gone.wait()


async def test_a_cancelled_call_closes_its_connection(server: Server) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        return

    server.answer = silent
    async with network() as transport, asyncio.timeout(DEADLINE_S):
        call = asyncio.create_task(get(transport, f"http://127.0.0.1:{server.port}/"))
        while not server.heads:  # noqa: ASYNC110 - the server sets no event of ours
            await asyncio.sleep(0.001)
        call.cancel()
        await server.gone.wait()


async def test_redirects_and_cookies_are_left_to_the_caller(server: Server) -> None:
    async def redirect(writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 307 Moved\r\nLocation: http://other.example/\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
        )

    server.answer = redirect
    async with network() as transport:
        for _ in range(2):
            answer = await get(transport, f"http://127.0.0.1:{server.port}/a%2Fb?c=%20d")
            assert (answer.status_code, answer.headers["location"]) == (307, "http://other.example/")
    assert server.heads[0].startswith(b"GET /a%2Fb?c=%20d HTTP/1.1\r\n")
    assert b"cookie" not in server.heads[1].lower()


# --- failures


def says(text: bytes, *, then_close: bool = True) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        if then_close:
            await writer.drain()
            writer.close()

    return answer


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (says(b""), httpx.RemoteProtocolError),
        (says(b"220 smtp.example ESMTP\r\n\r\n"), httpx.RemoteProtocolError),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), httpx.RemoteProtocolError),
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), httpx.RemoteProtocolError),
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab"), httpx.RemoteProtocolError),
        (says(b"", then_close=False), httpx.ReadTimeout),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", then_close=False), httpx.ReadTimeout),
    ],
    ids=["nothing", "another protocol", "cut off", "cut off chunk", "broken chunk", "silence", "silence in the body"],
)
async def test_what_goes_wrong_on_the_wire_has_httpx_s_name(
    server: Server, answer: Callable[[asyncio.StreamWriter], Awaitable[None]], error: type[Exception]
) -> None:
    server.answer = answer
    async with network() as transport:
        with pytest.raises(error) as caught:
            await get(transport, f"http://127.0.0.1:{server.port}/", read_s=0.2)
        assert type(caught.value) is error


async def test_a_port_that_nobody_listens_on_is_a_connect_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with network() as transport:
        with pytest.raises(httpx.ConnectError):
            await get(transport, f"http://127.0.0.1:{port}/")
