"""The network of model calls: a pool of connections to addresses that were checked.

Checking a URL's host beforehand does not help against DNS rebinding, where the name resolves to a public address for
the check and to another for the connect. Here both are the same lookup. TLS still sees the name (SNI and certificate),
and connections are pooled by name, never by address.

The wire is aiohttp's, behind httpx's interface of a transport: a call costs it a tenth of what httpx's own pool takes
with 64 calls in flight (`benchmarks/README.md`).
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import lru_cache
from ipaddress import ip_address

import aiohttp
import httpx
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from verilog_taskapp.inference.endpoint import is_never_contacted, refused

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host name and a port to its addresses, best first; raises OSError when there are none."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The system's addresses of `host`, looked up in a thread. Raises OSError when the name does not resolve."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class GuardedResolver(AbstractResolver):
    """Resolves to checked addresses only."""

    def __init__(self, resolver: Resolver = resolve) -> None:
        self._resolve = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of `host`.

        Raises InferenceHostRefused if any of them is link-local or a metadata service, OSError when there are none.
        """
        try:
            addresses = await self._resolve(host, port)
        except UnicodeError:
            raise OSError(f"the name {host} does not resolve") from None
        if not addresses:
            raise OSError(f"the name {host} has no address")
        if any(is_never_contacted(address) for address in addresses):
            raise _forbidden(host)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """There is nothing to close."""


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends requests over pooled connections; never through a proxy, never after a redirect, without cookies.

    Raises httpx's own errors: ConnectError, ConnectTimeout, ReadTimeout, ReadError, RemoteProtocolError.
    """

    def __init__(self, *, keepalive_s: float, resolver: Resolver = resolve) -> None:
        self._keepalive_s = keepalive_s
        self._resolver = resolver
        self._opened: aiohttp.ClientSession | None = None

    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            connector = aiohttp.TCPConnector(
                limit=0,  # how many rollouts there may be is decided elsewhere
                keepalive_timeout=self._keepalive_s,
                resolver=GuardedResolver(self._resolver),
                use_dns_cache=False,
                ssl=httpx.create_ssl_context(),
            )
            self._opened = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
        return self._opened

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return once status and headers are there."""
        host = request.url.host
        if _is_address(host) and is_never_contacted(host):  # aiohttp resolves names only
            raise _forbidden(host)
        limits = request.extensions.get("timeout", {})
        try:
            answer = await self._session().request(
                request.method,
                _url(str(request.url)),
                data=await request.aread() or None,
                headers=[(name, value) for name, value in request.headers.multi_items() if name != "content-length"],
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(connect=limits.get("connect"), sock_read=limits.get("read")),
            )
        except (aiohttp.ClientError, OSError) as error:
            raise _translated(error) from error
        body = _Body(answer)
        return httpx.Response(answer.status, headers=answer.raw_headers, stream=body, request=request)

    async def aclose(self) -> None:
        """Close every connection."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None


class _Body(httpx.AsyncByteStream):
    """An answer's body as it arrives."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            self._answer.close()
            raise _translated(error) from error

    async def aclose(self) -> None:
        # Not read to its end: closing the connection makes the server stop generating.
        if self._answer.content.at_eof():
            self._answer.release()
        else:
            self._answer.close()


def _translated(error: Exception) -> httpx.TransportError:
    """The same failure as httpx names it. TimeoutError is an OSError."""
    text = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return httpx.ConnectTimeout(text)
    if isinstance(error, TimeoutError):
        return httpx.ReadTimeout(text)
    if isinstance(error, aiohttp.ClientConnectorError):
        return httpx.ConnectError(text)
    if isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientResponseError)):
        return httpx.RemoteProtocolError(text)
    return httpx.ReadError(text)


@lru_cache(256)
def _url(text: str) -> yarl.URL:
    return yarl.URL(text, encoded=True)


@lru_cache(256)
def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _forbidden(host: str) -> Exception:
    return refused(host, "has a link-local or metadata address, which this server never contacts")
