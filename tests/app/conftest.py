"""The application in this process: one for the tests of a module, or one's own where its settings or state matter."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support import KEY, Service, forget_settings, serving, settings_in
from verilog_taskapp.scripted import ScriptedOptions

Serve = Callable[..., AbstractAsyncContextManager[Service]]


@pytest.fixture(scope="module", autouse=True)
def _no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        forget_settings(patch)
        yield


@pytest.fixture
def serve(tmp_path: Path, golden_cache: Path) -> Serve:
    """``async with serve(**settings) as service``; `model` are options of the scripted model."""

    def start(*, model: dict[str, Any] | None = None, **changes: Any) -> AbstractAsyncContextManager[Service]:
        return serving(settings_in(tmp_path, **{"cache_dir": golden_cache} | changes), **(model or {}))

    return start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory, golden_cache: Path) -> AsyncIterator[Service]:
    async with serving(settings_in(tmp_path_factory.mktemp("service"), cache_dir=golden_cache)) as service:
        yield service


@pytest.fixture
def service(shared: Service) -> Service:
    """The module's service with a client that has its key and a model that knows every answer.

    Modules whose tests use it say ``pytestmark = pytest.mark.asyncio(loop_scope="module")``.
    """
    shared.client.headers["X-API-Key"] = KEY
    shared.client.cookies.clear()
    shared.model.forget(ScriptedOptions())
    assert shared.services.rollouts.in_flight == 0
    return shared
