"""Stored traces: whole or not at all, the newest of them, and never worth a rollout."""

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from verilog_taskapp.tracing import store as module
from verilog_taskapp.tracing.store import TraceStore


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def test_what_is_saved_can_be_loaded(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "deep" / "traces")
    trace = {"session_trace": {"text": "ü\n", "number": 1.5, "nothing": None, "list": [1, {"a": True}]}}
    assert await store.save("one", trace) is True
    assert await store.load("one") == trace
    assert json.loads((tmp_path / "deep" / "traces" / "one.json").read_text()) == trace


async def test_only_the_user_may_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    await TraceStore(folder).save("one", {})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "one.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("value", "kept"),
    [(10**40, 1e40), (float("nan"), None), (float("inf"), None), (Path("/x"), "/x"), ((1, 2), [1, 2])],
)
async def test_odd_values_do_not_cost_the_trace(tmp_path: Path, value: Any, kept: Any) -> None:
    store = TraceStore(tmp_path)
    assert await store.save("one", {"value": value}) is True
    assert await store.load("one") == {"value": kept}


async def test_a_value_that_cannot_be_written_costs_only_the_trace(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    assert await store.save("one", {"value": "\ud800"}) is False
    assert (store.failures, names_in(tmp_path)) == (1, set())


async def test_a_trace_is_replaced_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = TraceStore(tmp_path)
    await store.save("one", {"version": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert await store.save("one", {"version": 2}) is False
    assert await store.load("one") == {"version": 1}
    assert names_in(tmp_path) == {"one.json"}, "no half of it is left"
    assert await store.save("one", {"version": 2}) is True
    assert await store.load("one") == {"version": 2}


async def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    store = TraceStore(tmp_path / "file" / "traces")
    assert await store.save("one", {}) is False
    assert await store.load("one") is None
    assert store.failures == 1
    assert "could not be stored" in caplog.text


async def test_without_a_folder_nothing_is_kept() -> None:
    store = TraceStore(None)
    assert await store.save("one", {}) is False
    assert await store.load("one") is None
    assert store.failures == 0


async def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    store = TraceStore(tmp_path / "traces")
    await store.save("one", {})
    for name in ("../secret", "..", "", "a/b", "one.json", "x" * 65, "one\n"):
        assert await store.load(name) is None


async def test_a_damaged_trace_is_none(tmp_path: Path) -> None:
    for content in ("", "{", "[]", "\xff"):
        (tmp_path / "one.json").write_text(content, encoding="latin-1")
        assert await TraceStore(tmp_path).load("one") is None


async def test_the_oldest_are_removed_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TRACES", 5)
    monkeypatch.setattr(module, "PRUNE_EVERY", 4)
    (tmp_path / "other.txt").write_text("not ours")
    store = TraceStore(tmp_path)
    for number in range(9):
        await store.save(str(number), {})
        os.utime(tmp_path / f"{number}.json", ns=(number, number))
    assert names_in(tmp_path) == {"other.txt"} | {f"{number}.json" for number in range(4, 9)}


async def test_what_another_process_removed_meanwhile_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PRUNE_EVERY", 1)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")  # there when listed, gone when looked at
    store = TraceStore(tmp_path)
    assert await store.save("one", {}) is True
    assert store.failures == 0


async def test_many_at_once_are_all_stored(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    assert all(await asyncio.gather(*(store.save(str(number), {"n": number}) for number in range(50))))
    assert [await store.load(str(number)) for number in range(50)] == [{"n": number} for number in range(50)]
    assert names_in(tmp_path) == {f"{number}.json" for number in range(50)}
