"""The service on Modal: ``modal deploy -m verilog_taskapp.deploy.modal_app`` from a checkout.

Secrets that the Modal workspace has to hold, by name:

    groq-api-key        GROQ_API_KEY
    openai-api-key      OPENAI_API_KEY
    verilog-taskapp     ENVIRONMENT_API_KEY, VERILOG_STIMULUS_KEY, and further settings of the service if wanted

Containers share nothing: see ``docs/deployment.md``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import modal

if TYPE_CHECKING:
    from fastapi import FastAPI

CHECKOUT = Path(__file__).resolve().parents[2]
"""Read where the app is deployed from, not in the containers."""
SOURCES = "/src"
"""Where the image has them."""
CACHE = "/var/cache/verilog-taskapp"
"""A container's own, gone with it."""
CPUS = 2
MEMORY_MIB = 8192
MAX_CONTAINERS = 4
MAX_REQUESTS = 256
"""In one container at once; rollouts mostly wait for the model."""
TARGET_REQUESTS = 64
"""Per container, before another one is started."""
REQUEST_S = 3600
"""The longest rollout there is: the default of ``safety.max_time_s``."""
STARTUP_S = 120
"""Until a container must be ready; it takes a few seconds with the bundled problems."""

image = (
    modal.Image.debian_slim(python_version="3.12")
    .apt_install("iverilog")
    .add_local_file(CHECKOUT / "pyproject.toml", f"{SOURCES}/pyproject.toml", copy=True)
    .add_local_file(CHECKOUT / "README.md", f"{SOURCES}/README.md", copy=True)
    .add_local_file(CHECKOUT / "LICENSE", f"{SOURCES}/LICENSE", copy=True)
    .add_local_dir(CHECKOUT / "rubrics", f"{SOURCES}/rubrics", copy=True)
    .add_local_dir(CHECKOUT / "verilog_taskapp", f"{SOURCES}/verilog_taskapp", copy=True, ignore=["**/__pycache__"])
    .run_commands(f"python -m pip install --no-cache-dir {SOURCES}")
    .env({"VERILOG_CACHE_DIR": CACHE, "VERILOG_MAX_CHILDREN": str(CPUS)})
)
app = modal.App("verilog-taskapp")


@app.function(
    image=image,
    secrets=[modal.Secret.from_name(name) for name in ("groq-api-key", "openai-api-key", "verilog-taskapp")],
    cpu=CPUS,
    memory=MEMORY_MIB,
    max_containers=MAX_CONTAINERS,
    timeout=REQUEST_S,
    startup_timeout=STARTUP_S,
    include_source=False,
)
@modal.concurrent(max_inputs=MAX_REQUESTS, target_inputs=TARGET_REQUESTS)
@modal.asgi_app()
def serve() -> "FastAPI":
    """The application of one container; Modal runs its lifespan."""
    from verilog_taskapp.app import create_app

    return create_app()
