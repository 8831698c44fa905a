"""A Ray cluster of a test's own that serves the application, started by ``serve run`` as a user would."""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import KEY, processes_in

ROOT = Path(__file__).parents[2]
START_S = 180.0
"""For a cluster to come up or down on a machine that is busy; never reached by a test that passes."""


async def until(condition: Callable[[], Any], what: str, deadline_s: float = START_S) -> None:
    """Wait for what nobody signals: the state of other processes."""
    try:
        async with asyncio.timeout(deadline_s):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"it never happened: {what}")


@dataclass
class RayCluster:
    """A running cluster."""

    process: subprocess.Popen[bytes]
    url: str
    folder: Path

    @property
    def scratch(self) -> Path:
        """Where the jobs of all replicas run."""
        return self.folder / "scratch"

    @property
    def directories(self) -> dict[int, Path]:
        """Those of replicas, by process id."""
        # not those that are only being made: `verilog_taskapp.icarus.scratch.NEW`
        return {int(path.name.partition("-")[0]): path for path in self.scratch.glob("*/[0-9]*") if path.is_dir()}

    @property
    def processes(self) -> dict[int, str]:
        """All that were started, by process id: those of Ray are one session, simulators work below the folder."""
        found = processes_in(self.folder)
        for path in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if path.name.isdigit() and os.getsid(int(path.name)) == self.process.pid:
                    command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    state = (path / "stat").read_text().rpartition(")")[2].split()[0]
                    if state != "Z":
                        found[int(path.name)] = command
        return found

    @property
    def replicas(self) -> list[int]:
        """Process ids of the replicas that have opened the service."""
        serving = [pid for pid, command in self.processes.items() if "ServeReplica" in command]
        return [pid for pid in serving if pid in self.directories]

    def logs(self) -> Iterator[tuple[str, str]]:
        """Name and text of everything that Ray and the replicas wrote."""
        for path in [self.folder / "output", *(self.folder / "ray").rglob("*")]:
            if path.is_file():
                yield path.name, path.read_text("utf-8", errors="replace")

    def output(self) -> str:
        """The end of what ``serve run`` printed."""
        return (self.folder / "output").read_text("utf-8", errors="replace")[-4000:]

    async def stop(self) -> None:
        """What Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        await until(lambda: self.process.poll() is not None, "serve run ends")
        await until(lambda: not self.processes, "all processes of the cluster end")


def config_in(folder: Path, port: int, **arguments: Any) -> Path:
    """The config file of the repository with other arguments, on a port of this machine."""
    config = yaml.safe_load((ROOT / "deploy/ray/serve.yaml").read_text("utf-8"))
    config["http_options"] = {"host": "127.0.0.1", "port": port}
    config["applications"][0]["args"] |= arguments
    path = folder / "serve.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def environment_in(folder: Path, **variables: str) -> dict[str, str]:
    """Where Ray and the replicas find their settings: nothing of the developer's own."""
    foreign = ("VERILOG_", "TASKAPP_", "RAY_")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(foreign)}
    return kept | {
        "ENVIRONMENT_API_KEY": KEY,
        "VERILOG_SCRATCH_DIR": str(folder / "scratch"),
        "VERILOG_CACHE_DIR": str(folder / "cache"),
        "RAY_TMPDIR": str(folder / "ray"),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "verilog_taskapp.deploy.ray_proxy:middlewares",
        **variables,
    }


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def started(command: list[str], folder: Path, variables: dict[str, str]) -> "subprocess.Popen[bytes]":
    """A process in a session of its own: by that all that it starts is found again."""
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            command,
            env=environment_in(folder, **variables),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@contextlib.asynccontextmanager
async def ray_cluster(*, replicas: int, variables: dict[str, str], **arguments: Any) -> AsyncIterator[RayCluster]:
    """Serve with so many replicas; when the context is left, nothing of it runs any more and its folder is gone."""
    # not pytest's folder: the paths of Ray's sockets may have 107 characters
    folder = Path(tempfile.mkdtemp(prefix="vt-ray-"))
    (folder / "ray").mkdir()
    port = free_port()
    config = config_in(folder, port, min_replicas=replicas, max_replicas=replicas, **arguments)
    process = started([sys.executable, "-m", "ray.serve.scripts", "run", str(config)], folder, variables)
    cluster = RayCluster(process, f"http://127.0.0.1:{port}", folder)
    try:
        await until(lambda: len(cluster.replicas) == replicas or process.poll() is not None, "the replicas start")
        assert process.poll() is None, cluster.output()
        yield cluster
        await cluster.stop()
    except BaseException:
        print(cluster.output())  # pytest shows it with the failure
        raise
    finally:
        for pid in cluster.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
