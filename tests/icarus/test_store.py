"""Golden traces on disk: atomic, private, and never a reason for a verdict to fail."""

import stat
from pathlib import Path

import pytest

from verilog_taskapp.icarus import store as store_module
from verilog_taskapp.icarus.program import Port
from verilog_taskapp.icarus.store import GoldenStore
from verilog_taskapp.icarus.trace import GoldenTrace, Interface, build_trace

KEY = "0123abcd" * 8


def trace(samples: int = 2) -> GoldenTrace:
    interface = Interface((Port("a", "input", 1), Port("q", "output", 1)), -12, -12)
    events = "".join(f"{10 * n} {n % 2} {n % 2}\n" for n in range(samples))
    return build_trace(interface, events.encode(), [10 * n + 5 for n in range(samples)])


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_a_trace_is_found_again_by_another_store(tmp_path: Path) -> None:
    GoldenStore(tmp_path, "11.0").save_trace(KEY, 3, trace())
    assert GoldenStore(tmp_path, "11.0").trace(KEY, 3) == trace()


def test_what_depends_on_something_else_is_not_found(tmp_path: Path) -> None:
    GoldenStore(tmp_path, "11.0").save_trace(KEY, 3, trace())
    assert GoldenStore(tmp_path, "12.0").trace(KEY, 3) is None
    assert GoldenStore(tmp_path, "11.0").trace(KEY, 4) is None
    assert GoldenStore(tmp_path, "11.0").trace(KEY[::-1], 3) is None


def test_another_version_of_the_judge_starts_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    GoldenStore(tmp_path, "11.0").save_check(KEY, {"status": "golden"})
    monkeypatch.setattr(store_module, "JUDGE_VERSION", "another")
    assert GoldenStore(tmp_path, "11.0").check(KEY) is None


def test_a_check_is_found_again(tmp_path: Path) -> None:
    GoldenStore(tmp_path, "11.0").save_check(KEY, {"status": "unusable", "reason": "é"})
    assert GoldenStore(tmp_path, "11.0").check(KEY) == {"status": "unusable", "reason": "é"}


def test_what_is_stored_is_private(tmp_path: Path) -> None:
    GoldenStore(tmp_path, "11.0").save_trace(KEY, 0, trace())
    (path,) = files(tmp_path)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]


def test_without_a_folder_traces_stay_in_memory() -> None:
    kept = GoldenStore(None, "11.0")
    kept.save_trace(KEY, 0, trace())
    kept.save_check(KEY, {})
    assert kept.trace(KEY, 0) == trace()
    assert kept.check(KEY) is None


@pytest.mark.parametrize("damage", [b"", b"\x00" * 100, b"{}", b"null"])
def test_a_damaged_file_counts_as_absent(damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = GoldenStore(tmp_path, "11.0")
    first.save_trace(KEY, 0, trace())
    first.save_check(KEY, {"status": "golden"})
    for path in files(tmp_path):
        path.write_bytes(damage)
    second = GoldenStore(tmp_path, "11.0")
    assert second.trace(KEY, 0) is None
    assert second.check(KEY) in (None, {})
    assert "damaged" in caplog.text


def test_a_file_in_the_way_is_logged_and_costs_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "golden").write_text("in the way")
    kept = GoldenStore(tmp_path, "11.0")
    kept.save_trace(KEY, 0, trace())
    assert kept.trace(KEY, 0) == trace()
    assert GoldenStore(tmp_path, "11.0").trace(KEY, 0) is None
    assert "cannot be written" in caplog.text


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("verilog_taskapp.icarus.store.os.replace", full)
    GoldenStore(tmp_path, "11.0").save_trace(KEY, 0, trace())
    assert files(tmp_path) == []


def test_memory_holds_the_traces_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    size = trace().memory_bytes
    monkeypatch.setattr(store_module, "MEMORY_BYTES", 2 * size)
    kept = GoldenStore(None, "11.0")
    kept.save_trace(KEY, 0, trace())
    kept.save_trace(KEY, 1, trace())
    assert kept.trace(KEY, 0) is not None
    kept.save_trace(KEY, 2, trace())
    assert [draws for draws in range(3) if kept.trace(KEY, draws) is not None] == [0, 2]


def test_a_trace_larger_than_the_memory_is_still_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MEMORY_BYTES", 1)
    kept = GoldenStore(None, "11.0")
    kept.save_trace(KEY, 0, trace())
    assert kept.trace(KEY, 0) == trace()
