"""Figures, their targets, and the JSON."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.report import Figure, Report, quantile, save, show


@pytest.mark.parametrize(
    ("repeats", "target", "better", "met"),
    [
        ((0.9, 1.0, 5.0), 1.0, "more", True),
        ((0.9, 0.99, 5.0), 1.0, "more", False),
        ((1.0, 25.0, 99.0), 25.0, "less", True),
        ((1.0, 25.1, 99.0), 25.0, "less", False),
        ((1.0,), None, "less", None),
    ],
)
def test_the_median_of_the_repeats_meets_the_target_or_not(
    repeats: tuple[float, ...], target: float | None, better: str, met: bool | None
) -> None:
    assert Figure("x", "ms", repeats, target, better).met is met  # type: ignore[arg-type]


def test_a_quantile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert quantile(values, 0.5) == 51
    assert quantile(values, 0.99) == 100
    assert quantile([3.0], 0.99) == 3


def test_the_table_has_the_target_beside_the_figure() -> None:
    text = io.StringIO()
    figure = Figure("ratio of x", "ratio", (1.2, 1.0, 1.1), 1.05, "more")
    show(Report("rollouts", {"problems": "3"}, (figure,), ("a", "b"), (("one", "two"),)), Console(file=text, width=100))
    lines = text.getvalue().splitlines()
    assert lines[1] == "rollouts: problems 3"
    assert lines[3].split() == ["one", "two"]
    assert lines[5].split() == ["ratio", "of", "x", "ratio", "1", "1.1", "1.2", ">=", "1.05", "yes"]


def test_json_holds_everything_and_replaces_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    figure = Figure("x", "ms", (1.0, 3.0, 2.0), 2.5)
    save([Report("soak", {"a": "b"}, (figure,), ("c",), (("d",),), {"e": [1]})], path)
    document = json.loads(path.read_text())
    assert document["machine"]["cores"].isdigit()
    (found,) = document["reports"]
    assert found["benchmark"] == "soak"
    assert found["facts"] == {"a": "b"}
    assert found["table"] == [{"c": "d"}]
    assert found["details"] == {"e": [1]}
    (told,) = found["figures"]
    assert (told["min"], told["median"], told["max"], told["target"], told["met"]) == (1, 2, 3, 2.5, True)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save([Report("soak", {}, (), details={"e": object()})], path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
