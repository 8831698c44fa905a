"""Where job directories live, and the sweep of what dead processes left there.

Each server process owns one directory below ``<root>/verilog-taskapp-<uid>/`` and holds a lock on the file ``lock`` in
it for as long as it lives. A directory whose lock can be taken belongs to nobody any more: the next start removes it.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the directory below it is private (mode 0700, owner checked)
LOCK_NAME = "lock"
NEW = ".new-"
"""Directories are made under this prefix until they are locked, so that no other process sweeps them before."""
NEW_S = 60.0
"""A directory without its lock after this long was left half made, or half removed."""


def default_root() -> Path:
    """Memory-backed where the system has it, else the temporary folder."""
    if SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK | os.X_OK):
        return SHARED_MEMORY
    return Path(tempfile.gettempdir())


class Scratch:
    """The scratch directory of this process; create it with `open`, remove it with `close`."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, root: Path | None) -> "Scratch":
        """Sweep what dead processes left, then make a fresh directory. Raises OSError when that cannot be done."""
        base = (root or default_root()) / f"verilog-taskapp-{os.getuid()}"
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = base.lstat()
        if facts.st_uid != os.getuid() or facts.st_mode & 0o077 or not base.is_dir() or base.is_symlink():
            raise PermissionError(f"{base.name} in the scratch folder is not a private directory of this user")
        sweep(base)
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        new = base / f"{NEW}{name}"
        new.mkdir(mode=0o700)
        lock = (new / LOCK_NAME).open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(new.rename(base / name), lock)

    def close(self) -> None:
        """Remove the directory and release the lock; safe to call twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def sweep(base: Path) -> int:
    """Remove directories in `base` whose owner is dead; returns how many went."""
    removed = 0
    for path in base.iterdir():
        if not path.is_dir() or path.is_symlink() or (path.name.startswith(NEW) and _age_s(path) <= NEW_S):
            continue
        try:
            with (path / LOCK_NAME).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
                removed += 1
        except FileNotFoundError:
            if _age_s(path) > NEW_S:
                shutil.rmtree(path, ignore_errors=True)
                removed += 1
        except BlockingIOError:
            continue
    return removed


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
