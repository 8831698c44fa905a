"""``results.jsonl``: what was written stays, what was torn is done again."""

import os
from pathlib import Path

import pytest

from tests.evaluation.builders import sample
from verilog_taskapp.evaluation.journal import Journal, JournalFault, read_samples, write_atomically


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "results.jsonl"


def test_what_was_appended_is_read_again(path: Path) -> None:
    hostile = sample(files={"TopModule.v": 'line\u2028"\r\n\x00\ud800'.encode("utf-8", "replace").decode()})
    with Journal(path) as journal:
        journal.append(sample("p1"))
        journal.append(hostile.model_copy(update={"sample": 1}))
    assert read_samples(path)[0] == [sample("p1"), hostile.model_copy(update={"sample": 1})]


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_torn_last_line_is_cut_off_and_what_follows_is_whole(path: Path, kept: int) -> None:
    with Journal(path) as journal:
        journal.append(sample("p1"))
    first = path.read_bytes()
    path.write_bytes(first + first[:kept])
    with Journal(path) as journal:
        assert journal.finished == [sample("p1")]
        assert journal.dropped_bytes == len(first[:kept])
        journal.append(sample("p2"))
    assert read_samples(path) == ([sample("p1"), sample("p2")], path.stat().st_size)


def test_a_line_that_is_no_sample_is_told_by_its_number(path: Path) -> None:
    with Journal(path) as journal:
        journal.append(sample("p1"))
    path.write_bytes(path.read_bytes() + b'{"model": 3}\n')
    with pytest.raises(JournalFault, match="line 2 is not a sample"), Journal(path):
        pass


def test_two_evaluations_do_not_write_one_file(path: Path) -> None:
    with Journal(path), pytest.raises(JournalFault, match="another evaluation is writing"), Journal(path):
        pass
    with Journal(path):
        pass


def test_a_result_replaces_an_earlier_error_and_never_the_other_way_round(path: Path) -> None:
    with Journal(path) as journal:
        for one in (sample("p1", passed=None), sample("p1"), sample("p1", passed=None), sample("p2", passed=None)):
            journal.append(one)
    assert [(one.problem, one.status) for one in read_samples(path)[0]] == [("p1", "done"), ("p2", "error")]


def test_a_write_that_fails_half_way_leaves_no_half_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(path) as journal:
        journal.append(sample("p1"))
        before = path.read_bytes()
        write = os.write
        calls = iter((lambda file, data: write(file, data[:9]), _no_space))
        monkeypatch.setattr(os, "write", lambda file, data: next(calls)(file, data))
        with pytest.raises(OSError, match="No space left"):
            journal.append(sample("p2"))
    assert path.read_bytes() == before


def _no_space(_: int, __: bytes) -> int:
    raise OSError(28, "No space left on device")


def test_a_file_is_replaced_as_a_whole(path: Path) -> None:
    write_atomically(path, "old")
    write_atomically(path, "new")
    assert (path.read_text(), list(path.parent.iterdir())) == ("new", [path])
