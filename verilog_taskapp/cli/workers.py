"""``serve --workers N``: N processes on one socket, and one that starts, watches and stops them."""

import logging
import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from prometheus_client.multiprocess import mark_process_dead
from uvicorn import Config
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from verilog_taskapp.icarus.scratch import Scratch

if TYPE_CHECKING:
    from verilog_taskapp.settings import Settings

KILL_MARGIN_S = 15.0
"""After the time for draining, for stopping simulators and removing directories; then a worker is killed."""
START_S = 60.0
"""For a new worker that is to replace a running one."""
RESTART_PAUSE_S = 5.0
"""Before a worker that could not start is tried again, once the service has been up."""
METRICS_DIR = "PROMETHEUS_MULTIPROC_DIR"
"""Where the processes of one service put their numbers together: prometheus-client knows it by this variable."""

log = logging.getLogger(__name__)


@contextmanager
def shared(settings: "Settings", workers: int) -> Iterator["Settings"]:
    """The settings of each of `workers` processes, and a private directory for what they share.

    The directory goes at the end, or after a kill with the next start. Raises OSError when it cannot be made.
    """
    scratch = Scratch.open(settings.scratch_dir)
    metrics = scratch.path / "metrics"
    given = os.environ.get(METRICS_DIR)
    try:
        metrics.mkdir(mode=0o700)
        os.environ[METRICS_DIR] = given or str(metrics)
        cores = os.cpu_count() or 1
        yield settings.model_copy(
            update={
                "session_dir": settings.session_dir or scratch.path / "sessions",
                "max_children": settings.max_children or math.ceil(cores / workers),
            }
        )
    finally:
        if given is None:
            os.environ.pop(METRICS_DIR, None)
        scratch.close()


class Worker(Process):
    """One server process. It stops gracefully when the supervisor is gone, however that went."""

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """What runs in the new process."""
        threading.Thread(target=_end_with_the_supervisor, args=(_patience_s(self.config),), daemon=True).start()
        super().target([_own(one) for one in sockets or ()])


def _own(bound: socket.socket) -> socket.socket:
    """A worker's own socket on the supervisor's address, so that the kernel spreads the connections.

    On a common one the worker that wakes first accepts all that came at the same instant: a whole batch of rollouts.
    Only Linux spreads them.
    """
    if not sys.platform.startswith("linux"):
        return bound
    own = socket.socket(bound.family, bound.type)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    own.bind(bound.getsockname())
    bound.close()
    return own


class Supervisor(Multiprocess):
    """Starts workers again that die or hang; gives up only if none could ever start."""

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self.interrupted = False
        """By SIGINT."""
        self.failed = False
        """The service could not start."""
        self._served = False
        self._restart_after = 0.0

    def init_processes(self) -> None:
        """Start all workers."""
        self.processes.extend(self._started() for _ in range(self.processes_num))

    def _started(self) -> Worker:
        worker = Worker(self.config, self.sockets)
        worker.start()
        return worker

    def keep_subprocess_alive(self) -> None:
        """Replace the workers that died or do not answer."""
        for index, worker in enumerate(self.processes):
            if worker.is_alive(timeout=self.config.timeout_worker_healthcheck):
                self._served = self._served or worker.is_ready(timeout=self.config.timeout_worker_healthcheck)
                continue
            if self.should_exit.is_set() or time.monotonic() < self._restart_after:
                continue
            _buried(worker)
            if worker.exitcode == STARTUP_FAILURE and not self._served:
                self.failed = True
                self.should_exit.set()
                return
            log.error("worker %s ended (status %s): starting another", worker.pid, worker.exitcode)
            self.processes[index] = self._started()
            if worker.exitcode == STARTUP_FAILURE:
                self._restart_after = time.monotonic() + RESTART_PAUSE_S

    def restart_all(self) -> None:
        """Replace each worker by a new one that is ready; what the old one does may finish."""
        for index, old in enumerate(self.processes):
            new = self._started()
            if not new.wait_until_ready(START_S, self.should_exit):
                _buried(new)
                log.error("worker %s was not ready in time: keeping worker %s", new.pid, old.pid)
                return
            self.processes[index] = new
            old.terminate()
            old.process.join(_patience_s(self.config))
            _buried(old)

    def join_all(self) -> None:
        """Wait for the workers, and kill those that do not end."""
        deadline = time.monotonic() + _patience_s(self.config)
        for worker in self.processes:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                log.error("worker %s does not end: killing it", worker.pid)
                worker.process.kill()
                worker.process.join()

    def handle_int(self) -> None:
        """Stop, and remember that it was by the keyboard."""
        self.interrupted = True
        super().handle_int()

    def handle_ttin(self) -> None:
        """The number of workers is fixed: the cores are divided over them."""

    def handle_ttou(self) -> None:
        """See `handle_ttin`."""


def _patience_s(config: Config) -> float:
    """How long a worker may take to end."""
    return (config.timeout_graceful_shutdown or 0) + KILL_MARGIN_S


def _buried(worker: Process) -> None:
    """See a worker to its end, and take its live numbers out of the metrics."""
    worker.kill()
    worker.process.join()
    if worker.pid is not None and METRICS_DIR in os.environ:
        mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def _end_with_the_supervisor(patience_s: float) -> None:
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        return
    wait([supervisor.sentinel])
    log.error("the supervisor of the workers is gone: stopping")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(patience_s)
    os.kill(os.getpid(), signal.SIGKILL)
