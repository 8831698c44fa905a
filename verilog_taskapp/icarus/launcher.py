"""The launcher: a lean process that runs one job at a time for the server and owns the job's directory.

Started by `verilog_taskapp.icarus.runner` with the arguments ``FD SCRATCH CONFINEMENT`` and spoken to over the socket
``FD``; ``CONFINEMENT`` says in JSON how children are sandboxed, null for not at all. A job is a set of files, a
list of steps (child processes, run one after the other while they succeed) and the names of the files to hand back.
It has imported almost nothing, and no thread of the server ever waits for a child.

What holds whatever happens: each child leads its own process group, and the whole group gets SIGKILL when its step
ends, is cancelled or runs over a limit; the job's directory is removed before the answer is sent; when the server
dies (end of file on the socket), the running group is killed, the directory removed, and the launcher exits.

One frame each way: two big-endian 32-bit lengths, then a JSON header and the blobs that it lists, concatenated.
Only the standard library and modules that keep to this rule may be imported here, and as little as possible.
"""

import errno
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from verilog_taskapp.icarus.sandbox import Bubblewrap, Confined, Landlock
from verilog_taskapp.icarus.spawn import Spawner, SpawnFailed, available

FRAME = struct.Struct(">II")
CANCEL = b"\x00" * FRAME.size
"""A frame with an empty header: stop the running job."""
SLOT_DIRECTORY = "slot-{pid}"
"""A launcher's own directory: ``job`` in it is fresh for each job, ``out`` takes result files that exist beforehand."""
OUT_PREFIX = "../out/"
"""How a job names a result file: seen from its ``job`` directory."""
READ_CHUNK = 65536
RESET_SIGNALS = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
"""Ignored by Python, by `main` or by whoever started the server (a shell's background job): children start afresh."""
OUTPUT_KILL_FACTOR = 256
"""A child that writes this many times its output cap is stopped; up to there the surplus is read and dropped."""
EXEC_FAILED = "exec "
"""How the error of a job begins whose child could not be made from its program."""
FULL_BYTES = 65536
"""Less room than this on the scratch disk after a job, and its results are not trusted: several pages, a few files."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def _load_prctl() -> Any:
    """libc's prctl, or None where there is none (macOS)."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    return ctypes.CDLL(None, use_errno=True).prctl


class Gone(Exception):
    """The server closed the socket."""


class LaunchFailed(Exception):
    """A child or its directory could not be set up: the message says at which stage and why."""


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes; raises Gone at end of file."""
    buffer = bytearray()
    while len(buffer) < size:
        chunk = connection.recv(min(size - len(buffer), 1 << 20))
        if not chunk:
            raise Gone
        buffer += chunk
    return bytes(buffer)


def receive_job(connection: socket.socket) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next job, or None for a late cancellation of a job that has already been answered."""
    header_size, blobs_size = FRAME.unpack(receive(connection, FRAME.size))
    if header_size == 0:
        return None
    header = json.loads(receive(connection, header_size))
    data = receive(connection, blobs_size)
    blobs, start = [], 0
    for size in header["blob_sizes"]:
        blobs.append(data[start : start + size])
        start += size
    return header, blobs


def answer(connection: socket.socket, header: dict[str, Any], blobs: list[bytes]) -> None:
    """Send the job's answer."""
    header["blob_sizes"] = [len(blob) for blob in blobs]
    encoded = json.dumps(header).encode()
    data = b"".join(blobs)
    connection.sendall(FRAME.pack(len(encoded), len(data)) + encoded + data)


class Slot:
    """The launcher's own directory and what its children may do.

    ``job`` is made for each job and removed after it. ``out`` stays, so that a sandbox can be prepared once; its files
    are made empty for each job and removed after it.
    """

    def __init__(self, path: str, confinement: dict[str, Any] | None, prctl: Any) -> None:
        self.path = path
        self.job = os.path.join(path, "job")
        self.out = os.path.join(path, "out")
        self.prctl = prctl
        os.mkdir(path, 0o700)
        os.mkdir(self.out, 0o700)
        self.results: list[str] = []
        self.sandbox = _sandbox(confinement, path)
        self.spawner = _spawner()
        self.null = os.open(os.devnull, os.O_RDONLY)

    def confined(self, step: dict[str, Any]) -> Confined:
        """How a step's child is started."""
        if self.sandbox is None:
            return Confined(step["argv"], ())
        return self.sandbox.confine(step["stage"], step["argv"], self.results)

    def prepare(self, header: dict[str, Any], blobs: list[bytes]) -> None:
        """Make the job's directory with its files, its links to shared files, and room for files to come."""
        os.mkdir(self.job, 0o700)
        self.results = [self.place(name) for name in header["collect"] if name.startswith(OUT_PREFIX)]
        awaited = [step["required"] for step in header["steps"] if step["required"] is not None]
        for name in (*header["names"], *header["links"], *header["collect"], *awaited):
            if name.startswith(OUT_PREFIX):
                os.close(os.open(self.place(name), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
            elif "/" in name:
                os.makedirs(os.path.dirname(self.place(name)), exist_ok=True)
        for name, blob in zip(header["names"], blobs, strict=True):
            with open(self.place(name), "wb") as file:
                file.write(blob)
        for name, source in header["links"].items():
            try:
                os.link(source, self.place(name))
            except OSError:
                shutil.copyfile(source, self.place(name))

    def place(self, name: str) -> str:
        """Where a file of the job lies."""
        if name.startswith(OUT_PREFIX):
            return os.path.join(self.out, name[len(OUT_PREFIX) :])
        return os.path.join(self.job, name)

    def clear(self) -> None:
        """Remove everything of the job."""
        remove_tree(self.job)
        with os.scandir(self.out) as left:
            for entry in left:
                if entry.is_dir(follow_symlinks=False):
                    remove_tree(entry.path)
                else:
                    os.unlink(entry.path)

    def remove(self) -> None:
        """Remove the slot itself."""
        remove_tree(self.path)


def remove_tree(path: str) -> None:
    """Remove a folder with all that is in it: folders without permissions too, which only root could just delete."""
    shutil.rmtree(path, ignore_errors=True)
    if os.path.isdir(path):
        with suppress(OSError):
            os.chmod(path, 0o700)
            for folder, names, _ in os.walk(path):
                for name in names:  # before the walk goes into them
                    place = os.path.join(folder, name)
                    if not os.path.islink(place):
                        os.chmod(place, 0o700)
        shutil.rmtree(path, ignore_errors=True)


def _sandbox(confinement: dict[str, Any] | None, slot: str) -> Landlock | Bubblewrap | None:
    if confinement is None:
        return None
    if confinement["bwrap"] is not None:
        return Bubblewrap(confinement["bwrap"], confinement["paths"], slot)
    return Landlock(confinement["paths"], slot)


def _spawner() -> Spawner | None:
    """None where children have to be forked."""
    if not available():
        return None
    try:
        return Spawner()
    except OSError:  # a policy against executable memory
        return None


def limits_of(step: dict[str, Any]) -> list[tuple[int, int, int]]:
    """A step's resource limits: which, soft, hard."""
    cpu = max(1, int(step["cpu_s"] + 0.999))
    limits = [
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_FSIZE, step["file_size_bytes"], step["file_size_bytes"]),
        (resource.RLIMIT_NOFILE, step["open_files"], step["open_files"]),
        (resource.RLIMIT_CORE, 0, 0),
    ]
    if sys.platform.startswith("linux"):
        limits.append((resource.RLIMIT_AS, step["address_space_bytes"], step["address_space_bytes"]))
    return limits


def start_child(step: dict[str, Any], slot: "Slot", out: int, err: int) -> int:
    """Start a step's child with `out` and `err` as its output; returns its process id. Raises LaunchFailed."""
    confined = slot.confined(step)
    name = os.path.basename(confined.argv[0])
    given = slot.null if step["stdin"] is None else os.open(slot.place(step["stdin"]), os.O_RDONLY | os.O_NOFOLLOW)
    descriptors = (given, out, err)
    try:
        if slot.spawner is None:
            return fork_child(step, slot, confined, descriptors)
        environment = [f"{key}={value}" for key, value in step["env"].items()]
        return slot.spawner.spawn(confined.argv, environment, slot.job, descriptors, limits_of(step), confined.calls)
    except SpawnFailed as failure:
        what = "fork" if failure.number < 0 else f"{EXEC_FAILED}{name}"
        raise LaunchFailed(f"{what}: {os.strerror(failure.code)}") from failure
    finally:
        for descriptor in (*confined.descriptors, *({given} - {slot.null})):
            os.close(descriptor)


def fork_child(step: dict[str, Any], slot: "Slot", confined: Confined, descriptors: tuple[int, int, int]) -> int:
    """What `Spawner.spawn` does, with a fork: for machines that it is not made for."""
    failed_read, failed_write = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(failed_read)
        raise LaunchFailed(f"fork: {error.strerror}") from error
    else:
        if pid == 0:
            exec_child(step, slot, confined, descriptors, failed_write)
    finally:
        os.close(failed_write)
    code = os.read(failed_read, 16)  # end of file as soon as exec has closed the other end
    os.close(failed_read)
    if code:
        os.waitpid(pid, 0)
        raise SpawnFailed(0, int(code) or errno.EINVAL)
    return pid


def exec_child(
    step: dict[str, Any], slot: "Slot", confined: Confined, descriptors: tuple[int, int, int], failed: int
) -> None:
    """Become the child; on failure write the errno to `failed` and leave. Never returns."""
    try:
        os.setpgid(0, 0)
        if slot.prctl is not None:
            slot.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.chdir(slot.job)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        for number in RESET_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        for which, soft, hard in limits_of(step):
            resource.setrlimit(which, (soft, hard))
        for call in confined.calls:
            call.make()
        os.execve(confined.argv[0], confined.argv, step["env"])  # noqa: S606
    except OSError as error:
        os.write(failed, str(error.errno or 0).encode())
    except BaseException:  # noqa: BLE001 - a forked copy of the launcher must never come back as a launcher
        os.write(failed, b"0")
    finally:
        os._exit(127)


def interruption(connection: socket.socket) -> str:
    """Why the server spoke up in the middle of a job: it cancels, or it is gone."""
    try:
        receive(connection, FRAME.size)
    except (Gone, OSError):
        return "gone"
    return "cancelled"


class Child:
    """One running step: its group, its output so far."""

    def __init__(self, step: dict[str, Any], slot: "Slot") -> None:
        self.cap = step["output_bytes"]
        self.started = time.monotonic()
        self.deadline = self.started + step["wall_s"]
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.seen = 0
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        try:
            self.pid = start_child(step, slot, out_write, err_write)
        except LaunchFailed:
            os.close(out_read)
            os.close(err_read)
            raise
        finally:
            os.close(out_write)
            os.close(err_write)
        self.pipes = {out_read: self.output["stdout"], err_read: self.output["stderr"]}
        for descriptor in self.pipes:
            os.set_blocking(descriptor, False)

    def kill(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def drain(self, descriptor: int) -> bool:
        """Read what is there; False at end of file."""
        try:
            chunk = os.read(descriptor, READ_CHUNK)
        except BlockingIOError:
            return True
        self.seen += len(chunk)
        kept = self.pipes[descriptor]
        kept += chunk[: max(0, self.cap - len(kept))]
        return bool(chunk)

    def exited(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def run(self, connection: socket.socket) -> str:
        """Wait for the end; returns why it ended: exited, wall_limit, output_limit, cancelled or gone."""
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        for descriptor in self.pipes:
            poll.register(descriptor, select.POLLIN | select.POLLHUP)
        exit_seen = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        if exit_seen is not None:
            poll.register(exit_seen, select.POLLIN)
        try:
            while not self.exited():
                left = self.deadline - time.monotonic()
                if left <= 0:
                    return "wall_limit"
                for descriptor, _ in poll.poll((left if exit_seen is not None else min(left, 0.005)) * 1000):
                    if descriptor == connection.fileno():
                        return interruption(connection)
                    if descriptor in self.pipes and not self.drain(descriptor):
                        poll.unregister(descriptor)
                if self.seen > self.cap * OUTPUT_KILL_FACTOR:
                    return "output_limit"
            return "exited"
        finally:
            if exit_seen is not None:
                os.close(exit_seen)

    def drain_rest(self) -> None:
        """Read what a finished child left in its pipes (at most their capacity)."""
        for descriptor in self.pipes:
            before = -1
            while self.seen != before:
                before = self.seen
                self.drain(descriptor)

    def finish(self) -> tuple[int, float, int]:
        """Kill what is left of the group, reap the child and every orphan of it, and close the pipes.

        Returns the child's wait status, the CPU seconds of all of them, and the largest of their resident sets.
        """
        self.kill()
        _, status, usage = os.wait4(self.pid, 0)
        cpu_s, max_rss = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
        for usage in reap_orphans():
            cpu_s += usage.ru_utime + usage.ru_stime
            max_rss = max(max_rss, usage.ru_maxrss)
        self.drain_rest()
        for descriptor in self.pipes:
            os.close(descriptor)
        return status, cpu_s, max_rss * (1 if sys.platform == "darwin" else 1024)


def reap_orphans() -> Iterator[resource.struct_rusage]:
    """Wait for all that a killed group left to this process, and kill what left the group; yields what each used."""
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:  # there are some, still alive or about to die
                if not kill_children():
                    return
                _, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return
        yield usage


def kill_children() -> bool:
    """Send SIGKILL to every child of this process; False where the kernel does not list them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            children = [int(pid) for pid in file.read().split()]
    except OSError:
        return False
    for pid in children:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return True


def run_step(step: dict[str, Any], slot: "Slot", connection: socket.socket) -> dict[str, Any]:
    """Run one child to its end and describe it."""
    child = Child(step, slot)
    end = child.run(connection)
    status, cpu_s, max_rss_bytes = child.finish()
    return {
        "end": end,
        "exit_code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        "cpu_s": cpu_s,
        "wall_s": time.monotonic() - child.started,
        "max_rss_bytes": max_rss_bytes,
        "stdout": child.output["stdout"].decode("utf-8", "replace"),
        "stderr": child.output["stderr"].decode("utf-8", "replace"),
        "output_cut": child.seen > len(child.output["stdout"]) + len(child.output["stderr"]),
    }


def is_full(path: str) -> bool:
    """Whether a file system has next to no room: what was written to it may have been cut off without a word."""
    there = os.statvfs(path)
    return there.f_bavail * there.f_frsize < FULL_BYTES or (there.f_files > 0 and there.f_favail == 0)


def read_result(path: str, limit: int) -> bytes | None:
    """A file that a child wrote: None unless it is a regular file; at most `limit` + 1 bytes, so that excess shows."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.ENOTDIR):
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:
        return file.read(limit + 1)


def run_job(header: dict[str, Any], blobs: list[bytes], slot: "Slot", connection: socket.socket) -> bool:
    """Run a job and answer it; False when the server is gone."""
    results: list[dict[str, Any]] = []
    error: str | None = None
    collected: list[bytes] = []
    names: list[str] = []
    try:
        slot.prepare(header, blobs)
        for step in header["steps"]:
            results.append(run_step(step, slot, connection))
            if results[-1]["end"] == "gone":
                return False
            required = step["required"]
            there = required is None or os.path.isfile(slot.place(required))
            if results[-1]["end"] != "exited" or results[-1]["exit_code"] != 0 or not there:
                break
        for name, limit in header["collect"].items():
            content = read_result(slot.place(name), limit)
            if content is not None:
                names.append(name)
                collected.append(content)
        if is_full(slot.path):
            error = "job directory: the scratch disk is full"
    except LaunchFailed as failure:
        error = str(failure)
    except OSError as failure:
        error = f"job directory: {failure.strerror}"
    finally:
        slot.clear()
    answer(connection, {"steps": results, "error": error, "names": names}, collected)
    return True


def main() -> None:
    """Serve jobs until the server goes away."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)  # a child that could write to it could answer for us
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if hasattr(os, "SCHED_BATCH"):
        with suppress(OSError):  # simulators do not push the event loop aside when they wake up
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    prctl = _load_prctl()
    if prctl is not None:
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    slot = Slot(os.path.join(sys.argv[2], SLOT_DIRECTORY.format(pid=os.getpid())), json.loads(sys.argv[3]), prctl)
    try:
        while True:
            job = receive_job(connection)
            if job is not None and not run_job(*job, slot, connection):
                break
    except (Gone, OSError):
        pass
    finally:
        slot.remove()
