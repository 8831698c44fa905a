"""A PostgreSQL server of a test run's own: its files in a temporary folder, a Unix socket in place of a port."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

USER = "taskapp"
_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
"""Where Debian keeps what is not on PATH."""


def program(name: str) -> str | None:
    """The path of a PostgreSQL program, or None."""
    found = [str(place / name) for place in _PLACES if (place / name).exists()]
    return found[0] if found else shutil.which(name)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A running server's URL without the database's name, which is to be appended; skips where there can be none."""
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    as_user: list[str] = []
    if os.geteuid() == 0:  # initdb refuses root
        if shutil.which("runuser") is None or not _has_user("postgres"):
            pytest.skip("PostgreSQL does not run as root, and there is no user `postgres`")
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
        _let_through(folder)
    data, log = folder / "data", folder / "log"

    def run(*command: str) -> None:
        done = subprocess.run([*as_user, *command], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command[0]}: {done.stdout[-500:]} {done.stderr[-500:]}"

    run(initdb, "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-k {folder} -c listen_addresses= -c fsync=off -c max_connections=60"
    run(pg_ctl, "-D", str(data), "-l", str(log), "-o", options, "-w", "start")
    try:
        yield f"postgresql://{USER}@/{{name}}?host={folder}"
    finally:
        run(pg_ctl, "-D", str(data), "-m", "immediate", "-w", "stop")


def _has_user(name: str) -> bool:
    return any(line.startswith(f"{name}:") for line in Path("/etc/passwd").read_text().splitlines())


def _let_through(folder: Path) -> None:
    """pytest's temporary folders are the user's alone."""
    for parent in folder.parents:
        if parent == parent.parent or parent.stat().st_uid != os.geteuid() or parent.stat().st_mode & 0o001:
            continue
        parent.chmod(parent.stat().st_mode | 0o011)
