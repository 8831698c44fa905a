"""The database itself: made, brought up to date, written, on SQLite and on PostgreSQL."""

import asyncio
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.tracing.synthetic import synthetic_records
from verilog_taskapp.tracing import migrations
from verilog_taskapp.tracing.database import TraceDatabase
from verilog_taskapp.tracing.faults import TraceDatabaseFailed, TracesRefused
from verilog_taskapp.tracing.lists import Tally, TraceFilter
from verilog_taskapp.tracing.location import TraceLocation
from verilog_taskapp.tracing.migrations.run import upgrade
from verilog_taskapp.tracing.queries import TraceQueries
from verilog_taskapp.tracing.record import TraceRecord, new_trace_id
from verilog_taskapp.tracing.rows import MAX_INTEGER, parcel
from verilog_taskapp.tracing.schema import REVISION, metadata

(RECORD,) = synthetic_records(1, steps=1)


async def stored(database: TraceDatabase, trace_id: str) -> Any:
    found = await TraceQueries(database.readers).get(trace_id)
    assert found is not None
    return found


def test_the_newest_migration_is_the_one_that_the_program_wants() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [REVISION]


async def test_the_migrations_make_the_tables_that_the_program_uses(database: TraceDatabase) -> None:
    def differences(connection: sa.Connection) -> Any:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return compare_metadata(context, metadata)

    async with database.writer.connect() as connection:
        assert await connection.run_sync(differences) == []


async def test_a_database_of_the_first_revision_is_brought_up_to_date(location: TraceLocation) -> None:
    old = TraceDatabase(location)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("verilog_taskapp.tracing.migrations.run.upgrade", lambda plain: upgrade(plain, "0001"))
        await old.open()
    await old.write([parcel(RECORD)])
    await old.close()
    new = TraceDatabase(location)
    await new.open()
    try:
        assert replace((await stored(new, RECORD.facts.id)).facts, body_bytes=0) == RECORD.facts
        async with new.writer.connect() as connection:
            names = await connection.run_sync(
                lambda plain: {one["name"] for one in sa.inspect(plain).get_indexes("traces")}
            )
        assert {"ix_traces_run", "ix_traces_created"} <= names
    finally:
        await new.close()


async def test_tables_of_a_newer_program_are_left_alone(database: TraceDatabase, location: TraceLocation) -> None:
    async with database.writer.begin() as connection:
        await connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    other = TraceDatabase(location)
    with pytest.raises(TraceDatabaseFailed, match="revision 9999, newer than"):
        await other.open()
    await other.close()


async def test_many_that_start_at_once_make_the_tables_once(location: TraceLocation) -> None:
    databases = [TraceDatabase(location) for _ in range(6)]
    records = list(synthetic_records(6, steps=1))

    async def start(database: TraceDatabase, record: TraceRecord) -> None:
        while True:
            try:
                await database.open()
            except TraceDatabaseFailed as failure:  # while another one switches the new file to WAL
                assert "locked" in str(failure)  # noqa: PT017
            else:
                break
        await database.write([parcel(record)])

    await asyncio.gather(*(start(*pair) for pair in zip(databases, records, strict=True)))
    assert await TraceQueries(databases[0].readers).count(TraceFilter()) == 6
    for database in databases:
        await database.close()


async def test_the_usual_start_needs_no_alembic(database: TraceDatabase, location: TraceLocation) -> None:
    where = location.file or (location.url and location.url.get_secret_value())
    program = (
        "import asyncio, sys\n"
        "from verilog_taskapp.tracing.database import TraceDatabase\n"
        "from verilog_taskapp.tracing.location import parse_location\n"
        "async def main():\n"
        "    database = TraceDatabase(parse_location(sys.argv[1]))\n"
        "    await database.open()\n"
        "    await database.close()\n"
        "asyncio.run(main())\n"
        "print('alembic' in sys.modules)\n"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program, str(where)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_the_service_is_imported_without_sqlalchemy_or_opentelemetry() -> None:
    program = (
        "import sys, verilog_taskapp.app\n"
        "print(sorted({'sqlalchemy', 'alembic', 'aiosqlite', 'opentelemetry.sdk', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_only_the_user_may_read_the_file(database: TraceDatabase, location: TraceLocation) -> None:
    if location.file is None:
        pytest.skip("a server has files of its own")
    await database.write([parcel(RECORD)])
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in location.file.parent.iterdir()}
    assert found == {"traces.db": 0o600, "traces.db-wal": 0o600, "traces.db-shm": 0o600}
    assert stat.S_IMODE(location.file.parent.stat().st_mode) == 0o700


async def test_what_is_offered_twice_is_stored_once(database: TraceDatabase) -> None:
    await database.write([parcel(RECORD)])
    changed = replace(RECORD, document={"session_trace": "another"})
    await database.write([parcel(changed), *(parcel(one) for one in synthetic_records(2, steps=1, seed=1))])
    assert await TraceQueries(database.readers).count(TraceFilter()) == 3
    assert (await stored(database, RECORD.facts.id)).document == RECORD.document


HOSTILE = {
    "nul": "a\0b",
    "half a pair": "\ud800 and \udfff",
    "bidi and ansi": "\u202e\x1b[31m\x07",
    "emoji": "🙂" * 500,
    "megabytes": "x" * 3_000_000,
    "quotes": "'; DROP TABLE traces; --",
    "empty": "",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_text_is_stored_or_replaced_and_never_breaks_a_batch(database: TraceDatabase, name: str) -> None:
    text = HOSTILE[name]
    facts = replace(
        RECORD.facts,
        id=new_trace_id(),
        run_id=text,
        model=text,
        problem_id=text,
        dataset=text,
        error_message=text,
        error_code=text,
        simulator_version=text,
        outcome=text,
    )
    document = {"session_trace": {"text": text, "nested": [{text: (text, None)}]}}
    others = list(synthetic_records(2, steps=1))
    await database.write([parcel(others[0]), parcel(TraceRecord(facts, {"note": text}, document)), parcel(others[1])])
    found = await stored(database, facts.id)
    kept = "".join("\ufffd" if "\ud800" <= one <= "\udfff" else one for one in text)
    assert found.document == {"session_trace": {"text": kept, "nested": [{kept: [kept, None]}]}}
    assert found.settings == {"note": kept.replace("\0", "\ufffd")}
    assert found.facts.run_id == kept.replace("\0", "\ufffd")[:160]
    queries = TraceQueries(database.readers)
    for which in (TraceFilter(run_id=text), TraceFilter(model=text), TraceFilter(group_key=found.facts.group_key)):
        assert await queries.count(which) == 1, "found by what it was stored as"


async def test_odd_values_do_not_cost_the_trace(database: TraceDatabase) -> None:
    odd = {"huge": 10**40, "nan": float("nan"), "inf": float("-inf"), "path": Path("/x"), "set": {1}}
    facts = replace(RECORD.facts, id=new_trace_id(), seed=10**40, prompt_tokens=MAX_INTEGER, completion_tokens=2**63)
    await database.write([parcel(TraceRecord(facts, {}, odd))])
    found = await stored(database, facts.id)
    assert found.document == {"huge": 1e40, "nan": None, "inf": None, "path": "/x", "set": [1]}
    assert (found.facts.seed, found.facts.prompt_tokens, found.facts.completion_tokens) == (None, MAX_INTEGER, None)


async def test_a_row_that_the_database_does_not_take_is_told_from_an_outage(database: TraceDatabase) -> None:
    spoilt = parcel(replace(RECORD, facts=replace(RECORD.facts, id=new_trace_id())))
    spoilt.row["steps"] = "many" if database.location.file is None else None
    with pytest.raises(TracesRefused):
        await database.write([parcel(RECORD), spoilt])
    assert await TraceQueries(database.readers).count(TraceFilter()) == 0, "all or none"
    await database.write([parcel(RECORD)])


async def test_errors_hold_neither_the_statement_nor_the_password(tmp_path: Path) -> None:
    from verilog_taskapp.tracing.location import parse_location

    database = TraceDatabase(parse_location(f"postgresql://me:hunter2@/x?host={tmp_path}"))
    with pytest.raises(TraceDatabaseFailed) as failed:
        await database.open()
    await database.close()
    assert "hunter2" not in f"{failed.value}{database.location.told}{database.location!r}"


async def test_an_empty_database_answers_everything_with_nothing(database: TraceDatabase) -> None:
    empty = TraceQueries(database.readers)
    assert (await empty.page(TraceFilter())).traces == ()
    assert await empty.latest() is None
    assert await empty.choices("model") == ()
    assert await empty.tally(TraceFilter()) == Tally(0, 0, 0, None)
    assert (await empty.tally(TraceFilter())).pass_rate is None


async def test_latest_tells_that_something_was_added(database: TraceDatabase) -> None:
    queries = TraceQueries(database.readers)
    await database.write([parcel(RECORD)])
    assert await queries.latest() == RECORD.facts.finished_at
    later = replace(RECORD.facts, id=new_trace_id(), finished_at=RECORD.facts.finished_at + timedelta(seconds=1))
    await database.write([parcel(TraceRecord(later, {}, {}))])
    assert await queries.latest() == later.finished_at


async def test_a_model_that_was_not_asked_is_nobody(database: TraceDatabase) -> None:
    queries = TraceQueries(database.readers)
    scripted = replace(RECORD.facts, id=new_trace_id(), model=None)
    await database.write([parcel(RECORD), parcel(TraceRecord(scripted, {}, {}))])
    assert await queries.choices("model") == (RECORD.facts.model,)
    assert {one.model for one in await queries.rates(TraceFilter())} == {None, RECORD.facts.model}
