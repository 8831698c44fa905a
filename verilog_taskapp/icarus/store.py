"""Golden traces and self-checks on disk, shared by all processes of a user, rebuilt when what they depend on changes.

Files are named by the bench's content hash, the judge's version and the simulator's version; they are written
atomically and a damaged one counts as absent. A disk that cannot be written costs time, never a verdict.
"""

import json
import logging
import os
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from verilog_taskapp.icarus.trace import GoldenTrace, TraceError

JUDGE_VERSION = "3"
"""Changes whenever recordings or verdicts could differ from those of an earlier version."""
MEMORY_BYTES = 96 * 1024**2

log = logging.getLogger(__name__)


class GoldenStore:
    """Reads and writes below `root`; all but `recent` block: call them from a thread. `root` None: in memory only."""

    def __init__(self, root: Path | None, simulator: str) -> None:
        self._folder = root / "golden" / f"judge-{JUDGE_VERSION}-icarus-{simulator}" if root is not None else None
        self._recent: OrderedDict[tuple[str, int], GoldenTrace] = OrderedDict()
        self._recent_bytes = 0
        self._lock = threading.Lock()

    def recent(self, key: str, draws: int) -> GoldenTrace | None:
        """A trace that is in memory; does not block."""
        with self._lock:
            if (key, draws) in self._recent:
                self._recent.move_to_end((key, draws))
                return self._recent[key, draws]
        return None

    def trace(self, key: str, draws: int) -> GoldenTrace | None:
        """A stored trace, if there is one."""
        if (found := self.recent(key, draws)) is not None:
            return found
        data = self._read(f"{key}-{draws}.trace")
        if data is None:
            return None
        try:
            trace = GoldenTrace.from_bytes(data)
        except TraceError as error:
            log.warning("a stored golden trace is damaged and will be recorded again: %s", error)
            return None
        self._remember(key, draws, trace)
        return trace

    def is_recorded(self, key: str, draws: int) -> bool:
        """Whether a trace is stored, without reading it."""
        name = f"{key}-{draws}.trace"
        return self._folder is not None and (self._folder / name[:2] / name).is_file()

    def save_trace(self, key: str, draws: int, trace: GoldenTrace) -> None:
        """Keep a trace."""
        self._remember(key, draws, trace)
        self._write(f"{key}-{draws}.trace", trace.to_bytes())

    def check(self, key: str) -> dict[str, Any] | None:
        """The stored result of a bench's self-check."""
        data = self._read(f"{key}.json")
        try:
            found = json.loads(data) if data is not None else None
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def save_check(self, key: str, facts: dict[str, Any]) -> None:
        """Keep the result of a self-check."""
        self._write(f"{key}.json", json.dumps(facts).encode())

    def _remember(self, key: str, draws: int, trace: GoldenTrace) -> None:
        with self._lock:
            replaced = self._recent.pop((key, draws), None)
            self._recent_bytes += trace.memory_bytes - (replaced.memory_bytes if replaced is not None else 0)
            self._recent[key, draws] = trace
            while self._recent_bytes > MEMORY_BYTES and len(self._recent) > 1:
                _, dropped = self._recent.popitem(last=False)
                self._recent_bytes -= dropped.memory_bytes

    def _read(self, name: str) -> bytes | None:
        if self._folder is None:
            return None
        try:
            return (self._folder / name[:2] / name).read_bytes()
        except OSError:
            return None

    def _write(self, name: str, data: bytes) -> None:
        if self._folder is None:
            return
        folder = self._folder / name[:2]
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=folder)
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                os.replace(temporary, folder / name)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            log.warning("the golden store cannot be written: %s", error.strerror)
