"""Where traces are kept: every way to say it."""

from pathlib import Path

import pytest

from verilog_taskapp.settings import Settings, load_settings
from verilog_taskapp.tracing.location import TraceLocationInvalid, parse_location, trace_location


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///x/t.db", "x/t.db"),
        ("sqlite:////srv/t.db", "/srv/t.db"),
        ("sqlite+aiosqlite:////srv/a%20b.db", "/srv/a b.db"),
        ("sqlite:////srv/t.db?mode=rwc", "/srv/t.db"),
        ("file:/srv/t.db", "/srv/t.db"),
        ("file:///srv/t.db?cache=shared", "/srv/t.db"),
        ("file:t.db", "t.db"),
        ("t.db", "t.db"),
        ("/srv/odd:name@x.db", "/srv/odd:name@x.db"),
    ],
)
def test_a_file_is_named_by_a_url_or_a_path(text: str, path: str) -> None:
    location = parse_location(text)
    assert (location.file, location.url) == (Path(path).absolute(), None)


def test_a_directory_means_a_file_in_it(tmp_path: Path) -> None:
    assert parse_location(str(tmp_path)).file == tmp_path / "traces.db"


@pytest.mark.parametrize(
    "scheme", ["postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg2", "POSTGRESQL"]
)
def test_a_server_is_named_by_a_url(scheme: str) -> None:
    location = parse_location(f"{scheme}://me:secret@db.test:5433/traces?ssl=require")
    assert location.file is None
    assert location.url is not None
    assert location.url.get_secret_value() == "postgresql+asyncpg://me:secret@db.test:5433/traces?ssl=require"
    assert "secret" not in f"{location!r} {location.told}"
    assert "db.test" in location.told


@pytest.mark.parametrize(
    "text",
    [
        "mysql://me:secret@x/y",
        "http://127.0.0.1:8080",
        "libsql://x",
        "sqlite://",
        "sqlite:t.db",
        "sqlite:///:memory:",
        "sqlite+pysqlcipher:///x",
        "postgresql://me:secret@x",
        "postgresql://me:secret@x:port/y",
        "file:",
        ":memory:",
    ],
)
def test_anything_else_is_refused_without_showing_a_password(text: str) -> None:
    with pytest.raises(TraceLocationInvalid) as refused:
        parse_location(text)
    assert "secret" not in str(refused.value)


def test_postgresql_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verilog_taskapp.tracing.location.find_spec", lambda _: None)
    with pytest.raises(TraceLocationInvalid, match=r"verilog-taskapp\[postgres\]"):
        parse_location("postgresql://x/y")


def test_by_default_it_is_a_file_in_the_cache(tmp_path: Path) -> None:
    assert trace_location(Settings(cache_dir=tmp_path)).file == tmp_path / "traces" / "traces.db"


def test_three_variables_name_it_and_ours_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SQLD_DB_PATH", "TURSO_LOCAL_DB_URL", "VERILOG_TRACE_DB_URL"):
        monkeypatch.setenv(name, f"/srv/{name}")
        settings = load_settings()
        assert trace_location(settings).file == Path(f"/srv/{name}")
    assert "/srv/" not in repr(settings)
