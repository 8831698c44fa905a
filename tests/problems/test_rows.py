"""Rows of JSON Lines, Parquet and hub sets, through the real `datasets.load_dataset`."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from verilog_taskapp.errors import DatasetUnavailable
from verilog_taskapp.problems import Problem, ProblemSet, SkippedRow, load_problem_set
from verilog_taskapp.problems.hub import hub_answers
from verilog_taskapp.problems.row import BadRow, problem_from_row
from verilog_taskapp.settings import Settings

REFERENCE = "module RefModule(output zero);\n  assign zero = 1'b0;\nendmodule\n"
TESTBENCH = "module tb;\n  RefModule good1(.zero(a));\n  TopModule top_module1(.zero(b));\nendmodule\n"


def row(problem_id: object = "p1", **columns: object) -> dict[str, object]:
    return {"problem_id": problem_id, "prompt": "Output a LOW.\n", "ref": REFERENCE, "test": TESTBENCH, **columns}


@pytest.fixture(autouse=True)
def _cache_in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf-cache")


def write_jsonl(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in rows))
    return path


def write_parquet(path: Path, *rows: dict[str, object]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def load(path: Path, **columns: str) -> ProblemSet:
    kind = "parquet" if path.suffix == ".parquet" else "jsonl"
    return load_problem_set(Settings(dataset=f"{kind}:{path}", dataset_columns=columns))


# --- one row


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"problem_id": None}, "problem_id: missing"),
        ({"problem_id": 7}, "problem_id: int, not text"),
        ({"problem_id": " "}, "problem_id: empty"),
        ({"problem_id": "a\tb"}, "problem_id: control characters or blanks at its ends"),
        ({"problem_id": "a\n"}, "problem_id: control characters or blanks at its ends"),
        ({"problem_id": "a\u202eb"}, "problem_id: control characters or blanks at its ends"),
        ({"problem_id": "../a"}, "problem_id: a slash, or a folder's name"),
        ({"problem_id": "a\\b"}, "problem_id: a slash, or a folder's name"),
        ({"problem_id": ".."}, "problem_id: a slash, or a folder's name"),
        ({"problem_id": "a" * 201}, "problem_id: longer than 200 characters"),
        ({"prompt": None}, "prompt: missing"),
        ({"prompt": ["x"]}, "prompt: list, not text"),
        ({"prompt": "\n"}, "prompt: empty"),
        ({"prompt": "\ud800"}, "prompt: not valid Unicode text"),
        ({"prompt": "é" * 600_000}, "prompt: 1200000 bytes, more than 1048576"),
        ({"ref": ""}, "ref: empty"),
        ({"ref": "// module RefModule;"}, "ref: declares no module"),
        ({"ref": '`define X "module RefModule;"\n'}, "ref: declares no module"),
        ({"test": 1.5}, "test: float, not text"),
        ({"test": "module tb; endmodule"}, "test: does not instantiate TopModule, and no top is given"),
        (
            {"test": "module tb; /* TopModule t(); */ endmodule"},
            "test: does not instantiate TopModule, and no top is given",
        ),
        ({"test": 'initial $display("TopModule // t");'}, "test: does not instantiate TopModule, and no top is given"),
        ({"test": "module TopModule; endmodule"}, "test: declares TopModule itself"),
        ({"top": "adder"}, "test: does not instantiate adder"),
        ({"top": "a b"}, "top: 'a b' is not a module name"),
        ({"difficulty": "insane"}, "difficulty: 'insane' is not one of easy, medium, hard"),
        ({"difficulty": 3}, "difficulty: int, not text"),
        ({"split": "night"}, "split: 'night' is not one of train, val, validation, valid, dev, test"),
        ({"tags": 3}, "tags: int, not a list of texts"),
        ({"tags": ["fsm", 3]}, "tags: int, not text"),
        ({"title": 3}, "title: int, not text"),
        ({"run_cpu_s": -1}, "run_cpu_s: not a positive number of seconds"),
        ({"compile_cpu_s": float("nan")}, "compile_cpu_s: not a positive number of seconds"),
        ({"hidden_files": {"../x.mem": "0"}}, "hidden_files: '../x.mem' is not a relative path inside the workspace"),
        ({"visible_files": {"/x.mem": "0"}}, "visible_files: '/x.mem' is not a relative path inside the workspace"),
        ({"visible_files": {"-x.mem": "0"}}, "visible_files: '-x.mem' is not a relative path inside the workspace"),
        ({"visible_files": {"x.mem": 0}}, "visible_files: int, not text"),
        ({"visible_files": "{"}, "visible_files: text that is not JSON"),
        ({"visible_files": ["x.mem"]}, 'visible_files: not a list of {"path", "content"}'),
        ({"visible_files": 3}, "visible_files: int, not files by path"),
    ],
)
def test_a_bad_row_says_which_column_and_why(columns: dict[str, object], reason: str) -> None:
    with pytest.raises(BadRow) as caught:
        problem_from_row(row(**columns), "jsonl:x")
    assert str(caught.value) == reason


def test_every_optional_column_reaches_the_problem() -> None:
    columns = {
        "title": "Adder",
        "description": "Adds.",
        "licence": "MIT",
        "difficulty": "Hard",
        "tags": ["arithmetic", " carry "],
        "split": "validation",
        "top": "adder",
        "test": "module tb; adder #(.W(8)) dut(); adder_ref good(); endmodule",
        "ref": "module adder_ref; endmodule",
        "visible_files": {"lib/rom.mem": "00\n"},
        "hidden_files": [{"path": "vectors.hex", "content": "ff\n"}],
        "compile_cpu_s": 20,
        "run_cpu_s": 2.5,
    }
    problem = problem_from_row(row(**columns), "jsonl:x")
    assert (problem.title, problem.description, problem.licence, problem.source) == ("Adder", "Adds.", "MIT", "jsonl:x")
    assert (problem.difficulty, problem.tags, problem.split) == ("hard", ("arithmetic", "carry"), "val")
    assert (problem.top, problem.reference_top) == ("adder", "adder_ref")
    assert dict(problem.visible_files) == {"lib/rom.mem": "00\n"}
    assert dict(problem.hidden_files) == {"vectors.hex": "ff\n"}
    assert (problem.limits.compile_cpu_s, problem.limits.run_cpu_s) == (20.0, 2.5)


def test_a_comment_marker_inside_a_string_hides_nothing() -> None:
    testbench = 'module tb; initial $display("see http://x /*"); TopModule t(); endmodule'
    assert problem_from_row(row(test=testbench), "x").top == "TopModule"


# --- files


def as_parquet(path: Path, *rows: dict[str, object]) -> Path:
    return write_parquet(path.with_suffix(".parquet"), *rows)


@pytest.mark.parametrize("write", [write_jsonl, as_parquet])
def test_jsonl_and_parquet_give_the_same_problems_in_order(tmp_path: Path, write: Any) -> None:
    rows = [
        row("zebra", tags=["a"], difficulty="easy"),
        row("Apple", tags=[], difficulty=None),
        row("10", prompt="Né\r\n"),
    ]
    loaded = load(write(tmp_path / "set.jsonl", *rows))
    source = loaded.source
    expected = (
        Problem("zebra", "Output a LOW.\n", REFERENCE, TESTBENCH, tags=("a",), difficulty="easy", source=source),
        Problem("Apple", "Output a LOW.\n", REFERENCE, TESTBENCH, source=source),
        Problem("10", "Né\r\n", REFERENCE, TESTBENCH, source=source),
    )
    assert loaded.problems == expected
    assert source in ("jsonl:set.jsonl", "parquet:set.parquet")
    assert loaded.fingerprint == ProblemSet("x", "x", "x", expected).fingerprint


@pytest.mark.parametrize("write", [write_jsonl, as_parquet])
def test_bad_rows_are_skipped_with_their_reasons(tmp_path: Path, write: Any) -> None:
    rows = [row("a"), row("b", ref=None), row("a", prompt="Again."), row(None), row("c/d"), row("e")]
    loaded = load(write(tmp_path / "set.jsonl", *rows))
    place = "line" if loaded.source.startswith("jsonl") else "row"
    assert [problem.id for problem in loaded] == ["a", "e"]
    assert loaded.get("a").prompt == "Output a LOW.\n"
    assert loaded.skipped == (
        SkippedRow("b", "ref: missing"),
        SkippedRow("a", "problem_id: an earlier row has it too"),
        SkippedRow(f"{place} 4", "problem_id: missing"),
        SkippedRow(f"{place} 5", "problem_id: a slash, or a folder's name"),
    )


def test_lines_that_are_not_rows_are_skipped_alone(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    good = json.dumps(row("good"), ensure_ascii=False).encode()
    lines = [
        b'{"problem_id": "cut',
        b"",
        b"[1]",
        good.replace(b"LOW", b"L\xffW"),
        good,
        b"[" * 100_000,
        b'{"prompt": 1}',
    ]
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    loaded = load(path)
    assert [problem.id for problem in loaded] == ["good"]
    assert [(skipped.id, skipped.reason.partition(":")[0]) for skipped in loaded.skipped] == [
        ("line 1", "not JSON"),
        ("line 3", "not a JSON object"),
        ("line 4", "not JSON"),
        ("line 6", "not JSON"),
        ("line 7", "problem_id"),
    ]


def test_columns_of_mixed_types_cost_only_their_bad_rows(tmp_path: Path) -> None:
    rows = [row("a", tags="x,y", extra={"n": 1}), row("b", prompt=5, extra=[2]), row("c", tags=["z"], extra="s")]
    loaded = load(write_jsonl(tmp_path / "set.jsonl", *rows))
    assert [(problem.id, problem.tags) for problem in loaded] == [("a", ("x", "y")), ("c", ("z",))]
    assert loaded.skipped == (SkippedRow("b", "prompt: int, not text"),)


def test_parquet_text_that_is_not_utf8_costs_its_row_only(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    prompts = pa.array([b"fine", b"caf\xe9"]).view(pa.string())
    columns = {"problem_id": ["a", "b"], "prompt": prompts, "ref": [REFERENCE] * 2, "test": [TESTBENCH] * 2}
    pq.write_table(pa.table(columns), tmp_path / "set.parquet")
    loaded = load(tmp_path / "set.parquet")
    assert [problem.id for problem in loaded] == ["a"]
    assert loaded.skipped == (SkippedRow("row 2", "not UTF-8 text"),)


def test_a_parquet_struct_gives_each_row_its_own_files(tmp_path: Path) -> None:
    rows = [row("a", visible_files={"a.mem": "0\n"}), row("b", visible_files={"b.mem": "1\n"}), row("c")]
    loaded = load(write_parquet(tmp_path / "set.parquet", *rows))
    assert [dict(problem.visible_files) for problem in loaded] == [{"a.mem": "0\n"}, {"b.mem": "1\n"}, {}]


def test_a_column_map_renames_and_leaves_out(tmp_path: Path) -> None:
    renamed = {"task": "a", "spec": "Do it.", "golden": REFERENCE, "bench": TESTBENCH, "difficulty": 4}
    path = write_parquet(tmp_path / "set.parquet", renamed)
    loaded = load(path, problem_id="task", prompt="spec", ref="golden", test="bench", title="task", difficulty="")
    assert [(problem.id, problem.prompt, problem.title) for problem in loaded] == [("a", "Do it.", "a")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, r"no column ref; it has problem_id, prompt, test, verilog.*VERILOG_DATASET_COLUMNS"),
        ({"ref": "verilog", "title": "name"}, "no column name; it has"),
        (
            {"reference": "verilog"},
            "VERILOG_DATASET_COLUMNS: unknown reference; the columns are problem_id, prompt, ref",
        ),
        ({"ref": ""}, "VERILOG_DATASET_COLUMNS: ref cannot be left out"),
    ],
)
def test_a_missing_column_is_told_with_the_ones_that_exist(
    tmp_path: Path, columns: dict[str, str], message: str
) -> None:
    odd = row("a", verilog=REFERENCE)
    del odd["ref"]
    for path in (write_jsonl(tmp_path / "set.jsonl", odd), write_parquet(tmp_path / "set.parquet", odd)):
        with pytest.raises(DatasetUnavailable, match=message):
            load(path, **columns)


def test_a_rewritten_file_is_read_again(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "set.jsonl", row("old"))
    assert [problem.id for problem in load(path)] == ["old"]
    write_jsonl(path, row("new"))
    assert [problem.id for problem in load(path)] == ["new"]


@pytest.mark.parametrize(
    "name", ["set[1].jsonl", "a*b.jsonl", "a?b.jsonl", ".hidden/set.jsonl", "__x__/set.jsonl", "x y.jsonl"]
)
def test_a_path_is_a_path_and_not_a_pattern(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    write_jsonl(tmp_path / "set1.jsonl", row("other"))
    write_jsonl(tmp_path / "a-b.jsonl", row("other"))
    assert [problem.id for problem in load(write_jsonl(path, row("right")))] == ["right"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.jsonl", None, "jsonl:none.jsonl: no such file"),
        ("none.parquet", None, "parquet:none.parquet: no such file"),
        ("void.jsonl", b"", "jsonl:void.jsonl: the file is empty"),
        ("blank.jsonl", b"\n\n", "jsonl:blank.jsonl: no problems in it"),
        ("junk.jsonl", b"junk\njunk\n", r"jsonl:junk.jsonl: none of its 2 rows is usable: not JSON: .* \(2x\)"),
        ("junk.parquet", b"junk", "parquet:junk.parquet: cannot be loaded"),
    ],
)
def test_a_file_without_problems_is_an_error_that_says_why(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetUnavailable, match=message) as caught:
        load(tmp_path / name)
    assert str(tmp_path) not in caught.value.message


# --- processes of their own: temporary folders, output, the hub

PROGRAM = """
import json, sys, time
from verilog_taskapp.errors import DatasetUnavailable
from verilog_taskapp.problems import load_problem_set
from verilog_taskapp.settings import Settings
started = time.monotonic()
try:
    loaded = load_problem_set(Settings(dataset=sys.argv[1]))
    answer = {"ids": [p.id for p in loaded], "splits": loaded.facts.split_counts, "id": loaded.id}
except DatasetUnavailable as error:
    answer = {"error": error.message, "retryable": error.retryable}
print(json.dumps({**answer, "seconds": time.monotonic() - started}))
"""


def run_loader(dataset: str, tmp_path: Path, **environment: str) -> dict[str, Any]:
    """The answer of a fresh process whose only output is that answer and whose temporary folder stays empty."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "VERILOG_"))}
    places = {"HF_HOME": str(tmp_path / "hf"), "TMPDIR": str(tmp_path / "tmp"), "no_proxy": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, dataset],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**inherited, **places, **environment},
        timeout=60,
    )
    assert (done.stderr, list((tmp_path / "tmp").iterdir())) == ("", [])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_file_is_loaded_silently_and_leaves_nothing_in_the_temporary_folder(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "set.jsonl", *(row(f"p{number}") for number in range(50)))
    answer = run_loader(f"jsonl:{path}", tmp_path)
    assert answer["ids"] == [f"p{number}" for number in range(50)]


def test_an_unreachable_hub_is_a_quick_clear_error(tmp_path: Path) -> None:
    answer = run_loader("verilog-eval", tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert answer["error"] == (
        "verilog-eval: the Hugging Face hub cannot be reached, and the cache of datasets does not hold it. "
        "Sources that need no network: VERILOG_DATASET=bundled, dir:PATH or jsonl:PATH"
    )
    assert answer["retryable"] is True
    assert answer["seconds"] < 20  # 23 and more without the probe


def test_offline_without_a_cache_says_so(tmp_path: Path) -> None:
    answer = run_loader("hf:owner/name", tmp_path, HF_HUB_OFFLINE="1")
    assert "hf:owner/name: HF_HUB_OFFLINE is set, and the cache" in answer["error"]
    assert answer["retryable"] is False


def test_a_local_folder_is_never_taken_for_a_hub_repository(tmp_path: Path) -> None:
    (tmp_path / "owner/name").mkdir(parents=True)
    write_jsonl(tmp_path / "owner/name/train.jsonl", row("local"))
    assert "would be loaded instead" in run_loader("hf:owner/name", tmp_path, HF_HUB_OFFLINE="1")["error"]


def test_a_hub_that_accepts_and_never_answers_counts_as_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not hub_answers(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.1)


def test_any_http_answer_counts_as_a_reachable_hub() -> None:
    with hub({}) as address:
        assert hub_answers(f"{address}/not/there")
    assert not hub_answers("file:///etc/passwd")


COMMIT = "a" * 40


@contextmanager
def hub(files: dict[str, bytes]) -> Iterator[str]:
    """A stand-in for the hub that serves `files` as the data set ``owner/name``; its address."""
    listing = [{"type": "file", "path": path, "size": len(data), "oid": "b" * 40} for path, data in files.items()]
    facts = {"id": "owner/name", "sha": COMMIT, "tags": [], "siblings": [{"rfilename": path} for path in files]}

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == f"/api/datasets/owner/name/tree/{COMMIT}":
                self.answer(json.dumps(listing).encode())
            elif path in ("/api/datasets/owner/name", f"/api/datasets/owner/name/revision/{COMMIT}"):
                self.answer(json.dumps(facts).encode())
            elif (name := path.removeprefix(f"/datasets/owner/name/resolve/{COMMIT}/")) in files:
                self.answer(files[name], ETag=f'"{hash(name)}"')
            else:
                self.answer(b"", 404, **{"X-Error-Code": "EntryNotFound" if "owner/name" in path else "RepoNotFound"})

        def do_HEAD(self) -> None:
            self.do_GET()

        def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), "X-Repo-Commit": COMMIT, **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def parquet_bytes(path: Path, *ids: str) -> bytes:
    return write_parquet(path, *(row(problem_id) for problem_id in ids)).read_bytes()


def test_a_hub_set_is_loaded_once_and_then_served_from_the_cache(tmp_path: Path) -> None:
    with hub({"test.parquet": parquet_bytes(tmp_path / "x.parquet", "p1", "p2", "p3")}) as address:
        fresh = run_loader("hf:owner/name:test", tmp_path, HF_ENDPOINT=address)
    assert (fresh["ids"], fresh["id"]) == (["p1", "p2", "p3"], "owner/name")
    assert fresh["splits"] == {"train": 1, "val": 1, "test": 1}  # by hash: the hub's split chose rows, nothing else
    offline = run_loader("hf:owner/name:test", tmp_path, HF_ENDPOINT=address, HF_HUB_OFFLINE="1")
    unreachable = run_loader("hf:owner/name:test", tmp_path, HF_ENDPOINT=address)
    assert offline["ids"] == unreachable["ids"] == fresh["ids"]
    assert unreachable["seconds"] < 20  # 23 and more without the probe


def test_the_splits_of_a_hub_set_are_kept_when_it_has_several(tmp_path: Path) -> None:
    files = {
        f"{split}.parquet": parquet_bytes(tmp_path / "x.parquet", *ids)
        for split, ids in {"train": ("a", "b"), "validation": ("c",), "test": ("d", "e", "f")}.items()
    }
    with hub(files) as address:
        answer = run_loader("hf:owner/name", tmp_path, HF_ENDPOINT=address)
    assert sorted(answer["ids"]) == ["a", "b", "c", "d", "e", "f"]
    assert answer["splits"] == {"train": 2, "val": 1, "test": 3}


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ("hf:owner/name:night", 'Unknown split "night"'),
        ("hf:nobody/nothing", "doesn't exist on the Hub"),
    ],
)
def test_what_a_reachable_hub_does_not_have_is_named(tmp_path: Path, dataset: str, message: str) -> None:
    with hub({"test.parquet": parquet_bytes(tmp_path / "x.parquet", "p1")}) as address:
        answer = run_loader(dataset, tmp_path, HF_ENDPOINT=address)
    assert message in answer["error"]
    assert "VERILOG_DATASET=bundled" in answer["error"]
