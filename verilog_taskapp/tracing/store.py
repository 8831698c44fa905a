"""Traces on disk: one JSON file each, written atomically, the oldest removed beyond a limit."""

import asyncio
import contextlib
import logging
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic_core import to_json

MAX_TRACES = 10_000
PRUNE_EVERY = 500
_TRACE_ID = re.compile(r"[A-Za-z0-9-]{1,64}")

log = logging.getLogger(__name__)


class TraceStore:
    """Keeps traces below ``folder``; None keeps nothing. A disk that fails costs a log line, never a rollout."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._saved = 0
        self.failures = 0

    async def save(self, trace_id: str, trace: Mapping[str, Any]) -> bool:
        """Store a trace; False when that was not possible or is switched off."""
        if self._folder is None:
            return False
        try:
            data = to_json(trace, fallback=str, inf_nan_mode="null")
            await asyncio.to_thread(self._write, self._folder, trace_id, data)
        except (OSError, ValueError) as error:
            self.failures += 1
            log.warning("a trace could not be stored: %s", error)
            return False
        return True

    async def load(self, trace_id: str) -> dict[str, Any] | None:
        """A stored trace, or None."""
        if self._folder is None or not _TRACE_ID.fullmatch(trace_id):
            return None
        try:
            loaded = orjson.loads(await asyncio.to_thread((self._folder / f"{trace_id}.json").read_bytes))
        except (OSError, ValueError):
            return None
        return loaded if isinstance(loaded, dict) else None

    def _write(self, folder: Path, trace_id: str, data: bytes) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, folder / f"{trace_id}.json")
        except BaseException:
            os.unlink(temporary)
            raise
        if self._saved % PRUNE_EVERY == 0:
            self._prune(folder)
        self._saved += 1

    def _prune(self, folder: Path) -> None:
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # other processes remove the oldest, too
                    if entry.name.endswith(".json"):
                        found.append((entry.stat().st_mtime_ns, entry.path))
        for _, path in sorted(found)[: max(0, len(found) - MAX_TRACES)]:
            Path(path).unlink(missing_ok=True)
