"""Where traces are kept: what the settings name, as an SQLAlchemy URL for an asynchronous driver.

Understood are ``sqlite:///relative``, ``sqlite:////absolute``, ``file:PATH``, a plain path, and ``postgresql://...`` or
``postgres://...``, with or without a driver.
"""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from verilog_taskapp.settings import Settings

FILE_NAME = "traces.db"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+]*):")
_PASSWORD = re.compile(r"(?<=:)[^:@/]*(?=@)")


class TraceLocationInvalid(ValueError):
    """The setting names no database that traces can be kept in. The message holds no password."""


@dataclass(frozen=True)
class TraceLocation:
    """One database: a file of SQLite, or a PostgreSQL server."""

    file: Path | None = None
    url: SecretStr | None = None
    """Of PostgreSQL, for asyncpg."""

    @property
    def told(self) -> str:
        """For logs and people, without a password."""
        if self.url is not None:
            return _PASSWORD.sub("***", self.url.get_secret_value().partition("?")[0], count=1)
        return f"sqlite {self.file}"


def trace_location(settings: Settings) -> TraceLocation:
    """The database that the settings mean; by default a file in the cache directory.

    Raises `TraceLocationInvalid`.
    """
    given = settings.trace_db_url
    if given is None:
        return TraceLocation(file=settings.cache_dir / "traces" / FILE_NAME)
    return parse_location(given.get_secret_value())


def parse_location(text: str) -> TraceLocation:
    """The database that a URL or a path means. Raises `TraceLocationInvalid`."""
    found = _SCHEME.match(text)
    if found is None:
        return TraceLocation(file=_file(text))
    scheme = found[1].lower()
    rest = text[found.end() :]
    database, _, driver = scheme.partition("+")
    if database == "file":
        return TraceLocation(file=_file(unquote(rest.removeprefix("//").partition("?")[0])))
    if database == "sqlite" and driver in ("", "aiosqlite", "pysqlite"):
        if not rest.startswith("///"):
            raise TraceLocationInvalid("an sqlite URL has three slashes before a path: sqlite:///traces.db")
        return TraceLocation(file=_file(unquote(rest[3:].partition("?")[0])))
    if database in ("postgresql", "postgres") and driver in ("", "asyncpg", "psycopg", "psycopg2"):
        return _postgres(rest)
    raise TraceLocationInvalid(f"traces cannot be kept in a database of the kind {scheme[:40]!r}")


def _file(path: str) -> Path:
    if not path or path.startswith(":"):
        raise TraceLocationInvalid("traces are kept in a file: the setting names none")
    found = Path(path).expanduser().absolute()
    return found / FILE_NAME if found.is_dir() else found


def _postgres(rest: str) -> TraceLocation:
    try:
        parts = urlsplit(f"postgresql:{rest}")
        named = parts.port is None or parts.path
    except ValueError as error:
        raise TraceLocationInvalid("the PostgreSQL URL has a port that is no number") from error
    if not named or not parts.path.strip("/"):
        raise TraceLocationInvalid("the PostgreSQL URL names no database: postgresql://user@host/database")
    if find_spec("asyncpg") is None:
        raise TraceLocationInvalid("PostgreSQL needs the extra 'postgres': pip install 'verilog-taskapp[postgres]'")
    return TraceLocation(url=SecretStr(f"postgresql+asyncpg:{rest}"))
