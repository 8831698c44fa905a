"""The connection itself: a name is resolved once, every address is checked, and a checked one is connected to.

Checking a URL's host beforehand does not help against DNS rebinding, where the name resolves to a public address for
the check and to another for the connect. Here both are the same lookup. TLS still sees the name (SNI and certificate),
and connections are pooled by name, never by address.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore
import httpx

from verilog_taskapp.inference.endpoint import is_never_contacted, refused

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host name and a port to its addresses, best first; raises OSError when there are none."""

_SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


async def resolve(host: str, port: int) -> Sequence[str]:
    """The system's addresses of `host`, looked up in a thread. Raises OSError when the name does not resolve."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Opens TCP connections to checked addresses only."""

    def __init__(self, resolver: Resolver = resolve, inner: httpcore.AsyncNetworkBackend | None = None) -> None:
        self._resolve = resolver
        self._inner = inner or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[_SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to `host` within `timeout` seconds, trying its addresses in turn.

        Raises InferenceHostRefused if any address of the host is link-local or a metadata service,
        httpcore.ConnectTimeout, or httpcore.ConnectError.
        """
        options = list(socket_options or ())
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._checked_addresses(host, port)
                return await self._connect_any(addresses, port, timeout, local_address, options)
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"no connection to {host} within {timeout} s") from None

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[_SocketOption] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Never: models are reached over TCP."""
        raise httpcore.ConnectError("Unix sockets are not used for inference")

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        await self._inner.sleep(seconds)

    async def _checked_addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise httpcore.ConnectError(f"the name {host} does not resolve") from None
        if not addresses:
            raise httpcore.ConnectError(f"the name {host} has no address")
        if any(is_never_contacted(address) for address in addresses):
            raise refused(host, "has a link-local or metadata address, which this server never contacts")
        return addresses

    async def _connect_any(
        self,
        addresses: Sequence[str],
        port: int,
        timeout: float | None,
        local_address: str | None,
        options: list[_SocketOption],
    ) -> httpcore.AsyncNetworkStream:
        last: Exception | None = None
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            # One address that swallows packets must not use up the time of the ones after it.
            share = None if timeout is None else timeout / left
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout=share, local_address=local_address, socket_options=options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
        raise last or httpcore.ConnectError("no address to connect to")


class GuardedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport on a pool whose connections go through `GuardedBackend`; proxies are never used."""

    def __init__(
        self,
        limits: httpx.Limits,
        *,
        resolver: Resolver = resolve,
        backend: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        context = httpx.create_ssl_context()
        super().__init__(verify=context, limits=limits)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=GuardedBackend(resolver, backend),
        )
