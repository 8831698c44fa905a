"""The bare tools: the same commands as the published flow, and what they cost."""

from pathlib import Path

import pytest

from benchmarks.arena import arena
from benchmarks.floor import PROGRAM, FloorBroken, command, lay_out, run_floor, run_one
from benchmarks.tasks import Ready, prepare, right_task


@pytest.fixture
def ready(tmp_path: Path, golden_cache: Path) -> Ready:
    """One bundled problem."""
    with arena("bundled", golden_cache, tmp_path) as place:
        return prepare(place, 1)


def test_each_item_is_compiled_and_simulated_in_its_folder(tmp_path: Path, ready: Ready) -> None:
    task = right_task(ready.problems[0])
    folders = [lay_out(tmp_path / name, task.bench, task.path, task.design) for name in "abc"]
    shell = command(ready.tools, task.bench, task.path)
    noted = f"({shell}) > said"
    cost = run_floor([(folder, noted) for folder in folders])
    assert cost.items == 3
    assert cost.cpu_s > 0.003  # three compilers
    assert cost.wall_s > 0
    for folder in folders:
        assert (folder / PROGRAM).is_file()
        assert "Mismatches: 0 in " in (folder / "said").read_text()
    assert 0 < run_one(folders[0], shell).cpu_s < cost.cpu_s * 3


def test_a_design_that_does_not_compile_breaks_the_floor_unless_that_is_expected(tmp_path: Path, ready: Ready) -> None:
    task = right_task(ready.problems[0])
    item = lay_out(tmp_path / "a", task.bench, task.path, "module"), command(ready.tools, task.bench, task.path)
    with pytest.raises(FloorBroken, match="xargs ended with status 123"):
        run_floor([item])
    assert run_floor([item], may_fail=True).items == 1
    with pytest.raises(FloorBroken, match="sh ended with status"):
        run_one(*item)


def test_tools_that_are_missing_break_the_floor_whatever_is_expected(tmp_path: Path) -> None:
    with pytest.raises(FloorBroken, match="status 127"):
        run_one(tmp_path, "exec /nonexistent/iverilog")
