"""What may be written, under which names, and what may not."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from verilog_taskapp.environment.workspace import (
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_PATH_CHARS,
    MAX_TOTAL_BYTES,
    SUFFIXES,
    Refused,
    Workspace,
    clean_path,
    stub,
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_of_the_contract_can_be_written(suffix: str) -> None:
    workspace = Workspace({})
    assert workspace.write(f"name{suffix}", "x") == (f"name{suffix}", ())
    assert dict(workspace.files) == {f"name{suffix}": "x"}


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("TopModule.v", "TopModule.v"),
        ("./TopModule.v", "TopModule.v"),
        ("  TopModule.sv\n", "TopModule.sv"),
        ("rtl/sub_1/part-2.b+c.vh", "rtl/sub_1/part-2.b+c.vh"),
        ("_.v", "_.v"),
        ("0.mem", "0.mem"),
        ("a" * (MAX_PATH_CHARS - 2) + ".v", "a" * (MAX_PATH_CHARS - 2) + ".v"),
        ("a/b/c/d.v", "a/b/c/d.v"),
    ],
)
def test_a_plain_relative_name_is_kept(path: str, kept: str) -> None:
    assert clean_path(path) == kept


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("./", "empty"),
        ("/etc/passwd.v", "relative"),
        ("~/x.v", "relative"),
        ("\\\\host\\x.v", "relative"),
        ("C:\\x.v", "relative"),
        ("c:x.v", "relative"),
        ("../x.v", "'..'"),
        ("a/../../x.v", "'..'"),
        ("a/..", "'..'"),
        (".hidden.v", "start with"),
        (".judge/replay.sv", "start with"),
        ("././x.v", "start with"),
        ("a/./x.v", "start with"),
        ("a//x.v", "start with"),
        ("-o.v", "start with"),
        ("a/-x.v", "start with"),
        ("+incdir.v", "start with"),
        ("a b.v", "letters"),
        ("a\tb.v", "letters"),
        ("a\nb.v", "letters"),
        ("a\0b.v", "letters"),
        ("a\x7fb.v", "letters"),
        ("a;b.v", "letters"),
        ("$(id).v", "letters"),
        ("`id`.v", "letters"),
        ("a'b.v", "letters"),
        ('a"b.v', "letters"),
        ("a*.v", "letters"),
        ("é.v", "letters"),
        ("\ud800.v", "letters"),
        ("a\u2028b.v", "letters"),
        ("TopModule", "suffix"),
        ("TopModule.vvp", "suffix"),
        ("TopModule.V", "suffix"),
        ("run.sh", "suffix"),
        ("a.v/", "letters"),
        ("Makefile", "suffix"),
        ("a" * (MAX_PATH_CHARS - 1) + ".v", "too long"),
        ("a/b/c/d/e.v", "too long"),
    ],
)
def test_every_other_name_is_refused_and_says_why(path: str, why: str) -> None:
    workspace = Workspace({"kept.v": "1"})
    with pytest.raises(Refused, match=why):
        workspace.write(path, "x")
    assert dict(workspace.files) == {"kept.v": "1"}


@pytest.mark.parametrize("path", [None, 3, True, ["a.v"], {"a.v": 1}, b"a.v"])
def test_a_path_of_another_type_is_refused(path: object) -> None:
    with pytest.raises(Refused, match="path must be a string, not"):
        clean_path(path)


SAFE = set(string.ascii_letters + string.digits + "_.+-/")
HOSTILE = st.one_of(
    st.text(max_size=40),
    st.text("./-~\\ab\0\n:+ v", max_size=20).map(lambda text: f"{text}.v"),
    st.lists(st.sampled_from(["..", ".", "", "a", "-x", "~", "x.v", " "]), max_size=6).map("/".join),
)


@given(HOSTILE)
@example("a/../b.v")
@example("x.v\0")
def test_whatever_the_path_what_is_kept_is_harmless(path: str) -> None:
    try:
        name = clean_path(path)
    except Refused:
        return
    assert set(name) <= SAFE
    assert name.endswith(SUFFIXES)
    assert len(name) <= MAX_PATH_CHARS
    segments = name.split("/")
    assert len(segments) <= MAX_DEPTH
    assert all(segment and segment[0] not in ".-+" for segment in segments)
    assert clean_path(name) == name


# --- contents


@pytest.mark.parametrize("content", [None, 3, ["x"], {"a": 1}, b"x", True])
def test_content_of_another_type_is_refused(content: object) -> None:
    with pytest.raises(Refused, match="content must be a string, not"):
        Workspace({}).write("a.v", content)


def test_a_nul_is_refused() -> None:
    with pytest.raises(Refused, match="NUL"):
        Workspace({}).write("a.v", "module\0")


@given(st.text(max_size=200) | st.text("\ud800\udfff\ufeff\r\n`ab;", max_size=50))
def test_what_is_kept_can_be_written_to_a_file(content: str) -> None:
    workspace = Workspace({})
    try:
        workspace.write("a.v", content)
    except Refused:
        assert "\0" in content
        return
    assert "\0" not in workspace.files["a.v"]
    workspace.files["a.v"].encode()
    assert "\r" not in workspace.files["a.v"]


def test_what_was_normalised_is_noted() -> None:
    name, notes = Workspace({}).write("a.v", "```verilog\nmodule a;\r\nendmodule\n```")
    assert name == "a.v"
    assert len(notes) == 2


def test_a_file_may_be_as_large_as_the_limit_and_no_larger() -> None:
    workspace = Workspace({})
    workspace.write("a.txt", "x" * MAX_FILE_BYTES)
    with pytest.raises(Refused, match=str(MAX_FILE_BYTES)):
        workspace.write("b.txt", "x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(Refused, match=str(MAX_FILE_BYTES)):
        workspace.write("b.txt", "é" * (MAX_FILE_BYTES // 2 + 1))
    with pytest.raises(Refused, match=str(MAX_FILE_BYTES)):
        workspace.write("b.txt", "x" * 20_000_000)
    assert set(workspace.files) == {"a.txt"}


def test_all_files_together_are_limited_but_a_file_may_be_replaced() -> None:
    workspace = Workspace({})
    for number in range(MAX_TOTAL_BYTES // MAX_FILE_BYTES):
        workspace.write(f"{number}.txt", "x" * MAX_FILE_BYTES)
    with pytest.raises(Refused, match=f"{MAX_TOTAL_BYTES + 1} bytes"):
        workspace.write("more.v", "x")
    workspace.write("0.txt", "y" * MAX_FILE_BYTES)
    workspace.write("0.txt", "y")
    workspace.write("more.v", "x")


def test_there_are_at_most_so_many_files_but_each_may_be_replaced() -> None:
    workspace = Workspace({})
    for number in range(MAX_FILES):
        workspace.write(f"f{number}.v", "")
    with pytest.raises(Refused, match="64 files"):
        workspace.write("one_more.v", "")
    workspace.write("f0.v", "changed")
    assert len(workspace.files) == MAX_FILES


@pytest.mark.parametrize(("first", "second"), [("a.v", "a.v/b.v"), ("a.v/b.v", "a.v"), ("x/a.v/b.v", "x/a.v")])
def test_a_name_is_a_file_or_a_folder(first: str, second: str) -> None:
    workspace = Workspace({})
    workspace.write(first, "")
    with pytest.raises(Refused, match="a file and a folder"):
        workspace.write(second, "")


def test_the_view_of_the_files_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        Workspace({"a.v": ""}).files["b.v"] = ""  # type: ignore[index]


# --- sources


def test_every_source_is_compiled_by_default_in_the_order_of_the_names() -> None:
    files = {"b.v": "", "a.sv": "", "defs.vh": "", "x.svh": "", "table.mem": "", "sub/c.v": "", "notes.md": ""}
    assert Workspace(files).sources == ("a.sv", "b.v", "sub/c.v")


def test_sources_can_be_selected_in_an_order_of_ones_own() -> None:
    workspace = Workspace({"a.v": "", "b.sv": ""})
    assert workspace.select(["b.sv", "./a.v", "b.sv"]) == ("b.sv", "a.v")
    assert workspace.select([]) == ()


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ("a.v", "a list of file names"),
        ({"a.v": 1}, "a list of file names"),
        ([1], "a list of file names"),
        (["nope.v"], "no such file in the workspace: nope.v"),
        (["defs.vh"], "are compiled, not defs.vh"),
        (["../a.v"], "'..'"),
        (["-o"], "start with"),
        (["/etc/passwd"], "relative"),
    ],
)
def test_other_sources_are_refused(sources: object, why: str) -> None:
    with pytest.raises(Refused, match=why):
        Workspace({"a.v": "", "defs.vh": ""}).select(sources)


# --- the start


def test_the_stub_is_the_specification_as_a_comment() -> None:
    text = stub("TopModule", "\nFirst line.\n\n  second /* line\r\nthird\u2028fourth\n")
    assert text.splitlines()[0] == "// Implement module TopModule in this file."
    assert all(line.startswith("//") for line in text.split("\n") if line)
    assert "second /* line" in text


def test_the_summary_names_files_and_sizes() -> None:
    assert Workspace({"b.v": "é", "a.v": "x"}).summary() == "a.v (1 bytes)\nb.v (2 bytes)"
