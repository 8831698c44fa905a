"""The Modal app: what ``modal deploy`` asks Modal for, told by a stand-in for its control plane; no network."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import DEADLINE_S, KEY

if TYPE_CHECKING:
    from tests.deploy.modal_plane import ControlPlane

pytestmark = pytest.mark.skipif(find_spec("modal") is None, reason="modal is not installed: pip install '.[modal]'")
MODULE = "verilog_taskapp.deploy.modal_app"
ROOT = Path(__file__).parents[2]


@pytest.fixture
async def deployed(tmp_path: Path) -> AsyncIterator["ControlPlane"]:
    """What Modal was asked for by the real ``modal deploy``."""
    from tests.deploy.modal_plane import BUILDER_VERSION, ControlPlane

    async with ControlPlane() as plane:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MODAL_")} | {
            "HOME": str(tmp_path),
            "MODAL_SERVER_URL": plane.url,
            "MODAL_TOKEN_ID": "ak-nobody",
            "MODAL_TOKEN_SECRET": "as-nothing",
            "MODAL_IMAGE_BUILDER_VERSION": BUILDER_VERSION,
            "ENVIRONMENT_API_KEY": KEY,
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "modal", "deploy", "-m", MODULE),
            env=environment,
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await asyncio.wait_for(process.communicate(), DEADLINE_S)
        # what Modal itself would answer to the last request is not known here: the command may end badly after it
        assert plane.asked("FunctionCreate"), said.decode()
        yield plane


async def test_deploying_asks_for_the_container_that_is_documented(deployed: "ControlPlane") -> None:
    (request,) = deployed.asked("FunctionCreate")
    function = request.function
    assert (function.module_name, function.function_name) == (MODULE, "serve")
    assert (function.resources.milli_cpu, function.resources.memory_mb) == (2000, 8192)
    assert function.autoscaler_settings.max_containers == 4
    assert function.max_concurrent_inputs > function.target_concurrent_inputs > 1
    assert function.timeout_secs == 3600
    assert (
        "ASGI"
        in type(function.webhook_config)
        .DESCRIPTOR.fields_by_name["type"]
        .enum_type.values_by_number[function.webhook_config.type]
        .name
    )

    secrets = [request.deployment_name for request in deployed.asked("SecretGetOrCreate")]
    assert sorted(secrets) == ["groq-api-key", "openai-api-key", "verilog-taskapp"]
    assert len(function.secret_ids) == 3

    steps = [line for request in deployed.asked("ImageGetOrCreate") for line in request.image.dockerfile_commands]
    assert any(re.search(r"apt-get install .*\biverilog\b", step) for step in steps)
    assert "RUN python -m pip install --no-cache-dir /src" in steps
    assert "ENV VERILOG_MAX_CHILDREN=2" in steps, "a container sees all cores of its host"
    sent = {file.filename for request in deployed.asked("MountGetOrCreate") for file in request.files}
    assert {"/src/pyproject.toml", "/src/rubrics/outcome.json", "/src/verilog_taskapp/app.py"} <= sent
    assert not [name for name in sent if "__pycache__" in name or ".env" in name]
    assert not [name for name, request in deployed.requests if KEY in str(request)], "keys stay here"


def test_the_containers_can_import_it_without_the_checkout(tmp_path: Path) -> None:
    copy = tmp_path / "deep" / "in" / "a" / "container.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(ROOT / "verilog_taskapp" / "deploy" / "modal_app.py", copy)
    command = [
        sys.executable,
        "-c",
        f"import runpy; print(sorted(runpy.run_path({str(copy)!r})['app'].registered_functions))",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.stdout == "['serve']\n", done.stderr


async def test_what_it_serves_is_the_application(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from verilog_taskapp.deploy import modal_app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENVIRONMENT_API_KEY", KEY)
    monkeypatch.setenv("VERILOG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("VERILOG_SCRATCH_DIR", str(tmp_path / "scratch"))
    application: Any = modal_app.serve.local()
    with TestClient(application) as client:
        assert client.get("/ready").json()["ready"]
        assert client.get("/info", headers={"X-API-Key": KEY}).status_code == 200
        assert client.get("/info").status_code == 401
