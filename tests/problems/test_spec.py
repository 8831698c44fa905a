"""The forms of VERILOG_DATASET."""

from pathlib import Path

import pytest

from verilog_taskapp.errors import DatasetUnavailable
from verilog_taskapp.problems.spec import (
    SOURCE_FORMS,
    BundledSource,
    FileSource,
    FolderSource,
    HubSource,
    SourceSpec,
    parse_source,
)


@pytest.mark.parametrize(
    ("text", "source", "source_id", "label"),
    [
        ("bundled", BundledSource(), "bundled", "bundled"),
        (" bundled ", BundledSource(), "bundled", "bundled"),
        (
            "verilog-eval",
            HubSource("dakies/nvlabs-verilogeval-v2-spec-to-rtl", "test"),
            "verilog-eval",
            "verilog-eval",
        ),
        ("hf:owner/my.set-1", HubSource("owner/my.set-1"), "owner/my.set-1", "hf:owner/my.set-1"),
        ("hf:owner/set:train", HubSource("owner/set", "train"), "owner/set", "hf:owner/set:train"),
        ("dir:/data/problems", FolderSource(Path("/data/problems")), "problems", "dir:problems"),
        ("dir:/data/a:b/", FolderSource(Path("/data/a:b")), "a:b", "dir:a:b"),
        ("jsonl:/data/p.jsonl", FileSource("jsonl", Path("/data/p.jsonl")), "p.jsonl", "jsonl:p.jsonl"),
        ("parquet:/data/p.pq", FileSource("parquet", Path("/data/p.pq")), "p.pq", "parquet:p.pq"),
    ],
)
def test_each_form_becomes_a_typed_source(text: str, source: SourceSpec, source_id: str, label: str) -> None:
    parsed = parse_source(text)
    assert (parsed, parsed.id, parsed.label) == (source, source_id, label)
    assert parsed.name


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_source("dir:sets/mine") == FolderSource(tmp_path / "sets/mine")


def test_a_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parse_source("jsonl:~/p.jsonl") == FileSource("jsonl", tmp_path / "p.jsonl")


@pytest.mark.parametrize("text", ["", "verilogeval", "bundled:x", "verilog-eval:test", "dir:", "jsonl:", "csv:/x.csv"])
def test_anything_else_is_refused_with_the_list_of_forms(text: str) -> None:
    with pytest.raises(DatasetUnavailable, match="VERILOG_DATASET") as caught:
        parse_source(text)
    assert all(form in caught.value.message for form in SOURCE_FORMS)


@pytest.mark.parametrize(
    "text", ["hf:", "hf:json", "hf:../secret", "hf:/etc/passwd", "hf:a/b/c", "hf:a/b:", "hf:a/b:test[:3]", "hf:-a/b"]
)
def test_a_hub_source_is_a_repository_and_never_a_path(text: str) -> None:
    with pytest.raises(DatasetUnavailable, match="OWNER/NAME"):
        parse_source(text)


def test_an_unusable_path_is_refused_without_showing_it() -> None:
    with pytest.raises(DatasetUnavailable, match="cannot be resolved") as caught:
        parse_source("dir:/srv/secret\0")
    assert "secret" not in caught.value.message
