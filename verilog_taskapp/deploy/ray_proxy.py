"""What Ray Serve's HTTP proxies answer when no replica does, in the service's own shape of errors.

By itself a proxy answers a plain 500 when the replica that worked on a request dies, and a line of text when its queue
is full. Every node of the cluster needs, before Ray starts on it:

    RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=verilog_taskapp.deploy.ray_proxy:middlewares
"""

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verilog_taskapp.errors import Overloaded, ServiceFault
from verilog_taskapp.http.error_bodies import fault_response

RETRY_AFTER_S = 5.0
"""What a caller is told to wait: about as long as Ray needs to see that a replica is gone and to start another."""


OF_RAY = "/-/"
"""Where the proxies' own health check and list of routes are."""


class ReplicaLost(ServiceFault):
    """The replica died, or was stopped after its drain, while it worked on the request: nothing was decided."""

    code = "replica_lost"
    status = 503
    default_retryable = True


class NoReplica(ServiceFault):
    """No replica is there to take the request."""

    code = "no_replica"
    status = 503
    default_retryable = True


def middlewares() -> list[Middleware]:
    """What the proxies put around themselves."""
    return [Middleware(OwnErrors)]


class OwnErrors:
    """Replaces the proxy's own answers to what a replica did not answer; those of replicas pass untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"].startswith(OF_RAY):
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(send)
        await self._app(scope, receive, exchange.send)
        fault = exchange.fault()
        if fault is not None:
            await fault_response(fault)(scope, receive, send)


class _Exchange:
    """One request's answer on its way to the client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._refusal: Message | None = None
        self._started = False

    async def send(self, message: Message) -> None:
        """Pass on what a replica says, and hold the proxy's own refusals back."""
        if message["type"] == "http.response.start":
            if _by_the_proxy(message):
                self._refusal = message
                return
            self._started = True
            message["headers"] = _without_repetition(message["headers"])
        if self._refusal is None:
            await self._send(message)

    def fault(self) -> ServiceFault | None:
        """What has to be told once the proxy is done; None if the client has its answer."""
        if self._refusal is not None:
            waits = [value for name, value in self._refusal["headers"] if name.lower() == b"retry-after"]
            retry_after_s = float(waits[0]) if waits else RETRY_AFTER_S
            if self._refusal["status"] == Overloaded.status:
                return Overloaded("all replicas are busy and the queue is full", retry_after_s=retry_after_s)
            return NoReplica("no replica can take the request now", retry_after_s=retry_after_s)
        if not self._started:
            return ReplicaLost("the replica stopped in the middle of the request", retry_after_s=RETRY_AFTER_S)
        return None


def _by_the_proxy(start: Message) -> bool:
    """Whether a refusal is the proxy's: those of replicas are JSON."""
    kinds = [value for name, value in start["headers"] if name.lower() == b"content-type"]
    return start["status"] in {429, 503} and not any(kind.startswith(b"application/json") for kind in kinds)


def _without_repetition(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Proxy and replica both name the request's id, which is the same."""
    return list(dict.fromkeys((bytes(name).lower(), bytes(value)) for name, value in headers))
