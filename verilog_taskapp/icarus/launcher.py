"""The launcher: a lean process that runs one job at a time for the server and owns the job's directory.

Started by `verilog_taskapp.icarus.runner` as ``python -I -S launcher.py FD SCRATCH`` and spoken to over the socket
``FD``. A job is a set of files, a list of steps (child processes, run one after the other while they succeed) and the
names of the files to hand back. The launcher forks in well under a millisecond because it has imported almost nothing,
and no thread of the server ever waits for a child.

What holds whatever happens: each child leads its own process group, and the whole group gets SIGKILL when its step
ends, is cancelled or runs over a limit; the job's directory is removed before the answer is sent; when the server
dies (end of file on the socket), the running group is killed, the directory removed, and the launcher exits.

One frame each way: two big-endian 32-bit lengths, then a JSON header and the blobs that it lists, concatenated.
Only the standard library may be imported here, and as little of it as possible.
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
from typing import Any

FRAME = struct.Struct(">II")
CANCEL = b"\x00" * FRAME.size
"""A frame with an empty header: stop the running job."""
READ_CHUNK = 65536
OUTPUT_KILL_FACTOR = 256
"""A child that writes this many times its output cap is stopped; up to there the surplus is read and dropped."""
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


def make_directory(path: str, header: dict[str, Any], blobs: list[bytes]) -> None:
    """Create the job's directory with its files, its links to shared files, and the folders of files to come."""
    os.mkdir(path, 0o700)
    awaited = [step["required"] for step in header["steps"] if step["required"] is not None]
    for name in (*header["names"], *header["links"], *header["collect"], *awaited):
        if "/" in name:
            os.makedirs(os.path.join(path, os.path.dirname(name)), exist_ok=True)
    for name, blob in zip(header["names"], blobs, strict=True):
        with open(os.path.join(path, name), "wb") as file:
            file.write(blob)
    for name, source in header["links"].items():
        target = os.path.join(path, name)
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)


def set_limits(step: dict[str, Any]) -> None:
    """Resource limits of the calling process (a child, just before exec)."""
    cpu = max(1, int(step["cpu_s"] + 0.999))
    for which, soft, hard in (
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_FSIZE, step["file_size_bytes"], step["file_size_bytes"]),
        (resource.RLIMIT_NOFILE, step["open_files"], step["open_files"]),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(which, (soft, hard))
    if sys.platform.startswith("linux"):
        resource.setrlimit(resource.RLIMIT_AS, (step["address_space_bytes"],) * 2)


def exec_child(step: dict[str, Any], directory: str, null: int, out: int, err: int, failed: int, prctl: Any) -> None:
    """Become the child; on failure write the errno to `failed` and leave. Never returns."""
    try:
        os.setpgid(0, 0)
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.chdir(directory)
        os.dup2(null, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        set_limits(step)
        os.execve(step["argv"][0], step["argv"], step["env"])  # noqa: S606
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

    def __init__(self, step: dict[str, Any], directory: str, prctl: Any) -> None:
        self.cap = step["output_bytes"]
        self.started = time.monotonic()
        self.deadline = self.started + step["wall_s"]
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.seen = 0
        null = os.open(os.devnull, os.O_RDONLY)
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        failed_read, failed_write = os.pipe()
        try:
            self.pid = os.fork()
            if self.pid == 0:
                exec_child(step, directory, null, out_write, err_write, failed_write, prctl)
        except OSError as error:
            for descriptor in (out_read, err_read, failed_read):
                os.close(descriptor)
            raise LaunchFailed(f"fork: {error.strerror}") from error
        finally:
            for descriptor in (null, out_write, err_write, failed_write):
                os.close(descriptor)
        code = os.read(failed_read, 16)  # end of file as soon as exec has closed the other end
        os.close(failed_read)
        self.pipes = {out_read: self.output["stdout"], err_read: self.output["stderr"]}
        for descriptor in self.pipes:
            os.set_blocking(descriptor, False)
        if code:
            self.finish()
            number = int(code)
            raise LaunchFailed(
                f"exec {os.path.basename(step['argv'][0])}: {os.strerror(number) if number else 'setup'}"
            )

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

    def finish(self) -> tuple[int, resource.struct_rusage]:
        """Kill what is left of the group, reap the child and every orphan of it, and close the pipes."""
        self.kill()
        _, status, usage = os.wait4(self.pid, 0)
        self.drain_rest()
        for descriptor in self.pipes:
            os.close(descriptor)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break
        return status, usage


def run_step(step: dict[str, Any], directory: str, connection: socket.socket, prctl: Any) -> dict[str, Any]:
    """Run one child to its end and describe it."""
    child = Child(step, directory, prctl)
    end = child.run(connection)
    status, usage = child.finish()
    return {
        "end": end,
        "exit_code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - child.started,
        "max_rss_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "stdout": child.output["stdout"].decode("utf-8", "replace"),
        "stderr": child.output["stderr"].decode("utf-8", "replace"),
        "output_cut": child.seen > len(child.output["stdout"]) + len(child.output["stderr"]),
    }


def read_result(path: str, limit: int) -> bytes | None:
    """A file that a child wrote: None unless it is a regular file; at most `limit` + 1 bytes, so that excess shows."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.ENOTDIR):
            return None
        raise
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return file.read(limit + 1)


def run_job(header: dict[str, Any], blobs: list[bytes], directory: str, connection: socket.socket, prctl: Any) -> bool:
    """Run a job and answer it; False when the server is gone."""
    results: list[dict[str, Any]] = []
    error: str | None = None
    collected: list[bytes] = []
    names: list[str] = []
    try:
        make_directory(directory, header, blobs)
        for step in header["steps"]:
            results.append(run_step(step, directory, connection, prctl))
            if results[-1]["end"] == "gone":
                return False
            required = step["required"]
            there = required is None or os.path.isfile(os.path.join(directory, required))
            if results[-1]["end"] != "exited" or results[-1]["exit_code"] != 0 or not there:
                break
        for name, limit in header["collect"].items():
            content = read_result(os.path.join(directory, name), limit)
            if content is not None:
                names.append(name)
                collected.append(content)
    except LaunchFailed as failure:
        error = str(failure)
    except OSError as failure:
        error = f"job directory: {failure.strerror}"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    answer(connection, {"steps": results, "error": error, "names": names}, collected)
    return True


def main() -> None:
    """Serve jobs until the server goes away."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    directory = os.path.join(sys.argv[2], f"job-{os.getpid()}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    prctl = _load_prctl()
    if prctl is not None:
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        while True:
            job = receive_job(connection)
            if job is not None and not run_job(*job, directory, connection, prctl):
                break
    except (Gone, OSError):
        pass
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
