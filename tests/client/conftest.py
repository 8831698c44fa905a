"""The client against the real application: in this process, and on a socket."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.support import KEY, Service, forget_settings, serving, settings_in
from verilog_taskapp.client import Client
from verilog_taskapp.scripted import ScriptedOptions

URL = "http://service.test"
Serve = Callable[..., AbstractAsyncContextManager[Service]]
Answer = Callable[[httpx.Request], httpx.Response | Exception | None]


class Network(httpx.AsyncBaseTransport):
    """The way to the application, where answers get lost: `before` and `after` its work they may be replaced.

    Each is a list of what happens to the next requests; None lets one through. `seen` are the paths that were asked.
    """

    def __init__(self, service: Service) -> None:
        self._app = httpx.ASGITransport(app=service.app, raise_app_exceptions=False)
        self.before: list[httpx.Response | Exception | None] = []
        self.after: list[httpx.Response | Exception | None] = []
        self.seen: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request.url.path)
        replaced = self.before.pop(0) if self.before else None
        if replaced is None:
            response = await self._app.handle_async_request(request)
            replaced = self.after.pop(0) if self.after else None
            if replaced is None:
                return response
        if isinstance(replaced, Exception):
            raise replaced
        return replaced


@pytest.fixture(scope="module", autouse=True)
def _no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        forget_settings(patch)
        yield


@pytest.fixture
def serve(tmp_path: Path, golden_cache: Path) -> Serve:
    """``async with serve(**settings) as service``."""

    def start(**changes: Any) -> AbstractAsyncContextManager[Service]:
        return serving(settings_in(tmp_path, **{"cache_dir": golden_cache} | changes))

    return start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory, golden_cache: Path) -> AsyncIterator[Service]:
    async with serving(settings_in(tmp_path_factory.mktemp("service"), cache_dir=golden_cache)) as service:
        yield service


@pytest.fixture
def service(shared: Service) -> Service:
    """The module's service; modules that use it say ``pytestmark = pytest.mark.asyncio(loop_scope="module")``."""
    shared.model.forget(ScriptedOptions())
    return shared


@pytest.fixture
def network(service: Service) -> Network:
    return Network(service)


def client_over(network: httpx.AsyncBaseTransport, retries: int = 6) -> Client:
    """A client that hardly waits between two attempts."""
    return Client(URL, KEY, first_backoff_s=0.001, retries=retries, transport=network)


@pytest_asyncio.fixture(loop_scope="module")
async def client(network: Network) -> AsyncIterator[Client]:
    async with client_over(network) as client:
        yield client
