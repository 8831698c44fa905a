"""The parts of the service without HTTP, with a scripted model."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support import Model, forget_settings, settings_in
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.rollout.service import RolloutService
from verilog_taskapp.scripted import ScriptedOptions
from verilog_taskapp.services import Services, open_services


@dataclass
class Parts:
    """The services and the model that they ask."""

    services: Services
    model: Model


OpenParts = Callable[..., AbstractAsyncContextManager[Parts]]


@pytest.fixture(scope="module", autouse=True)
def _no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        forget_settings(patch)
        yield


@pytest.fixture
def open_parts(tmp_path: Path, golden_cache: Path) -> OpenParts:
    """``async with open_parts(**settings) as parts``."""

    def start(**changes: Any) -> AbstractAsyncContextManager[Parts]:
        return parts_in(tmp_path, **{"cache_dir": golden_cache} | changes)

    return start


@asynccontextmanager
async def parts_in(folder: Path, **changes: Any) -> AsyncIterator[Parts]:
    settings = settings_in(folder, **changes)
    model = Model(load_problem_set(settings))
    async with open_services(settings, transport=model) as services:
        yield Parts(services, model)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory, golden_cache: Path) -> AsyncIterator[Parts]:
    async with parts_in(tmp_path_factory.mktemp("parts"), cache_dir=golden_cache) as parts:
        yield parts


@pytest.fixture
def parts(shared: Parts) -> Parts:
    """The module's parts with a service of rollouts that has run none, and a model that knows every answer.

    Modules whose tests use it say ``pytestmark = pytest.mark.asyncio(loop_scope="module")``.
    """
    shared.model.forget(ScriptedOptions())
    had = shared.services
    return Parts(replace(had, rollouts=RolloutService(had.world, had.chat, had.rubrics, had.traces)), shared.model)
