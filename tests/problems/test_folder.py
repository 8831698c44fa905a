"""Folders in VerilogEval's layout, read through the one way in."""

import json
from pathlib import Path

import pytest

from verilog_taskapp.errors import DatasetUnavailable
from verilog_taskapp.problems import ProblemSet, SkippedRow, load_problem_set
from verilog_taskapp.problems.bundled import read_bundled
from verilog_taskapp.problems.row import BadRow, Row
from verilog_taskapp.settings import Settings

REFERENCE = "module RefModule(output zero);\n  assign zero = 1'b0;\nendmodule\n"
TESTBENCH = "module tb;\n  RefModule good1(.zero(a));\n  TopModule top_module1(.zero(b));\nendmodule\n"
VERILOG_EVAL = Path(__file__).parents[3] / "shared/verilog-eval/dataset_spec-to-rtl"


def write_problem(folder: Path, name: str, **texts: str) -> None:
    for suffix, text in {"prompt.txt": "Output a LOW.\n", "ref.sv": REFERENCE, "test.sv": TESTBENCH, **texts}.items():
        (folder / f"{name}_{suffix}").write_bytes(text.encode())


def load(folder: Path, max_instances: int | None = None) -> ProblemSet:
    return load_problem_set(Settings(dataset=f"dir:{folder}", max_instances=max_instances))


def test_problems_come_sorted_by_name_with_their_three_texts(tmp_path: Path) -> None:
    write_problem(tmp_path, "Prob010_last")
    write_problem(tmp_path, "Prob002_zero")
    (tmp_path / "problems.txt").write_text("Prob010_last\nProb002_zero\n")
    loaded = load(tmp_path)
    assert [problem.id for problem in loaded] == ["Prob002_zero", "Prob010_last"]
    problem = loaded.get("Prob002_zero")
    assert (problem.prompt, problem.reference, problem.testbench) == ("Output a LOW.\n", REFERENCE, TESTBENCH)
    assert (problem.top, problem.reference_top) == ("TopModule", "RefModule")
    assert (problem.difficulty, problem.split, problem.tags) == ("medium", None, ())
    assert loaded.skipped == ()


def test_no_server_path_is_in_what_is_told_of_the_set(tmp_path: Path) -> None:
    write_problem(tmp_path, "Prob001_zero")
    loaded = load(tmp_path)
    assert loaded.source == loaded.get("Prob001_zero").source == f"dir:{tmp_path.name}"
    assert str(tmp_path.parent) not in repr(loaded.facts)


def test_an_interface_file_is_appended_to_the_prompt(tmp_path: Path) -> None:
    write_problem(tmp_path, "Prob001_zero", **{"ifc.txt": "module TopModule (output zero);\n"})
    assert load(tmp_path).get("Prob001_zero").prompt == "Output a LOW.\n\nmodule TopModule (output zero);\n"


def test_line_ends_are_kept_and_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    write_problem(tmp_path, "Prob001_zero", **{"prompt.txt": "\ufeffOutput\r\na LOW.\r\n"})
    assert load(tmp_path).get("Prob001_zero").prompt == "Output\r\na LOW.\r\n"


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("ref.sv", None, "Prob001_bad_ref.sv: missing"),
        ("prompt.txt", None, "Prob001_bad_prompt.txt: missing"),
        ("test.sv", b"module tb; // caf\xe9\nendmodule", "Prob001_bad_test.sv: not UTF-8 at byte 17"),
        ("ref.sv", b"/" * (1024**2 + 1), "Prob001_bad_ref.sv: more than 1048576 bytes"),
        ("prompt.txt", b" \n", "prompt: empty"),
        ("prompt.txt", b"a\0b", "prompt: a NUL character"),
        ("ref.sv", b"// module RefModule;\n", "ref: declares no module"),
        (
            "test.sv",
            b"module tb; RefModule r(); endmodule",
            "test: does not instantiate TopModule, and no top is given",
        ),
    ],
)
def test_a_bad_problem_is_skipped_with_its_reason_and_the_others_stay(
    tmp_path: Path, file: str, content: bytes | None, reason: str
) -> None:
    write_problem(tmp_path, "Prob001_bad")
    write_problem(tmp_path, "Prob002_good")
    target = tmp_path / f"Prob001_bad_{file}"
    target.unlink() if content is None else target.write_bytes(content)
    loaded = load(tmp_path)
    assert [problem.id for problem in loaded] == ["Prob002_good"]
    assert loaded.skipped == (SkippedRow("Prob001_bad", reason),)


def test_a_directory_in_a_files_place_is_a_bad_problem(tmp_path: Path) -> None:
    write_problem(tmp_path, "Prob001_bad")
    write_problem(tmp_path, "Prob002_good")
    (tmp_path / "Prob001_bad_ref.sv").unlink()
    (tmp_path / "Prob001_bad_ref.sv").mkdir()
    assert load(tmp_path).skipped == (SkippedRow("Prob001_bad", "Prob001_bad_ref.sv: cannot be read (Is a directory)"),)


def test_a_name_with_a_control_character_is_skipped_and_shown_escaped(tmp_path: Path) -> None:
    write_problem(tmp_path, "Prob001\nbad")
    write_problem(tmp_path, "Prob002_good")
    reason = "problem_id: control characters or blanks at its ends"
    assert load(tmp_path).skipped == (SkippedRow(r"'Prob001\nbad'", reason),)


def test_a_reference_of_another_name_is_found(tmp_path: Path) -> None:
    reference = (
        "/* module Fake; */ module automatic inverter_ref(input a, output y); endmodule module helper; endmodule"
    )
    write_problem(tmp_path, "Prob001_named", **{"ref.sv": reference})
    assert load(tmp_path).get("Prob001_named").reference_top == "inverter_ref"


def test_refmodule_wins_over_a_helper_declared_before_it(tmp_path: Path) -> None:
    write_problem(tmp_path, "Prob001_two", **{"ref.sv": f"module helper; endmodule\n{REFERENCE}"})
    assert load(tmp_path).get("Prob001_two").reference_top == "RefModule"


def test_a_missing_folder_is_an_error_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match="dir:nowhere: No such file or directory") as caught:
        load(tmp_path / "nowhere")
    assert str(tmp_path) not in caught.value.message
    assert caught.value.status == 503


def test_an_empty_result_says_why(tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match="no problems in it"):
        load(tmp_path)
    for number in range(3):
        write_problem(tmp_path, f"Prob00{number}_bad", **{"ref.sv": "// nothing\n"})
    (tmp_path / "Prob003_bad_prompt.txt").write_text("x")
    with pytest.raises(
        DatasetUnavailable, match=r"none of its 4 rows is usable: ref: declares no module \(3x\); Prob003"
    ):
        load(tmp_path)


def test_max_instances_keeps_the_first_usable_problems(tmp_path: Path) -> None:
    for number in range(5):
        write_problem(tmp_path, f"Prob00{number}_p")
    (tmp_path / "Prob000_p_ref.sv").unlink()
    assert [problem.id for problem in load(tmp_path, max_instances=2)] == ["Prob001_p", "Prob002_p"]
    assert len(load(tmp_path, max_instances=99)) == 4


def test_the_bundled_index_gives_the_order_and_what_is_known_of_each_problem(tmp_path: Path) -> None:
    write_problem(tmp_path, "adder")
    write_problem(tmp_path, "zero")
    write_problem(tmp_path, "unlisted")
    facts = {"title": "Zero", "difficulty": "easy", "tags": ["wire"], "description": "Always low."}
    index = [{"id": "zero", **facts}, {"id": "gone"}, {"id": "adder"}, {"id": "a/b"}, "adder"]
    (tmp_path / "index.json").write_text(json.dumps(index))
    places = list(read_bundled(tmp_path))
    rows: dict[str, Row] = {place: row for place, row in places if not isinstance(row, BadRow)}
    assert list(rows) == ["zero", "adder"]
    assert {name: rows["zero"][name] for name in facts} == facts
    assert (rows["zero"]["ref"], rows["zero"]["licence"]) == (REFERENCE, "MIT")
    assert [(place, str(row)) for place, row in places if isinstance(row, BadRow)] == [
        ("gone", "gone_prompt.txt: missing"),
        ("row 4", "problem_id: a slash, or a folder's name"),
        ("row 5", "not an object"),
    ]


def test_the_default_source_is_the_bundled_set_and_its_seeds_mean_these_problems_for_ever() -> None:
    loaded = load_problem_set(Settings())
    assert (loaded.id, loaded.source, loaded.skipped) == ("bundled", "bundled", ())
    picked = {split: [loaded.select(split, seed).id for seed in (0, 1, 2)] for split in ("train", "val", "test")}
    assert picked == {
        "train": ["vt003_seven_segment", "vt004_popcount_threshold", "vt007_saturating_addsub"],
        "val": ["vt001_min_max", "vt002_gray_codec", "vt014_limit_counter"],
        "test": ["vt005_leading_zeros", "vt006_barrel_shifter", "vt012_reset_synchroniser"],
    }


@pytest.mark.parametrize("index", [None, "not json", "{}"])
def test_a_package_without_a_problem_index_is_a_clear_error(tmp_path: Path, index: str | None) -> None:
    if index is not None:
        (tmp_path / "index.json").write_text(index)
    with pytest.raises(DatasetUnavailable, match=r"bundled: the .*problem index"):
        list(read_bundled(tmp_path))


@pytest.mark.skipif(not VERILOG_EVAL.is_dir(), reason="no VerilogEval checkout next to the repository")
def test_all_of_verilog_eval_loads_and_its_seeds_mean_these_problems_for_ever() -> None:
    loaded = load(VERILOG_EVAL)
    assert (len(loaded), loaded.skipped) == (156, ())
    assert loaded.facts.split_counts == {"train": 101, "val": 24, "test": 31}
    assert {problem.reference_top for problem in loaded} == {"RefModule"}
    assert [loaded.select("all", seed).id for seed in (0, 155, 156)] == [
        "Prob001_zero",
        "Prob156_review2015_fancytimer",
        "Prob001_zero",
    ]
    picked = {split: [loaded.select(split, seed).id for seed in (0, 1, 2, 100)] for split in ("train", "val", "test")}
    assert picked == {
        "train": ["Prob001_zero", "Prob002_m2014_q4i", "Prob005_notgate", "Prob156_review2015_fancytimer"],
        "val": ["Prob003_step_one", "Prob004_vector2", "Prob007_wire", "Prob020_mt2015_eq2"],
        "test": ["Prob014_andgate", "Prob016_m2014_q4j", "Prob018_mux256to1", "Prob041_dff8r"],
    }
