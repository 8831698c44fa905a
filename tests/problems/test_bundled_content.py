"""The bundled problems under the installed simulator: references pass, wrong designs fail, stimulus is open-loop."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ROOT / "verilog_taskapp" / "problems" / "bundled"
DESIGNS = Path(__file__).resolve().parent / "bundled_wrong"

INDEX: list[dict[str, object]] = json.loads((BUNDLED / "index.json").read_text())
IDS = [str(entry["id"]) for entry in INDEX]
WRONG = [path for path in sorted(DESIGNS.glob("*/*.sv")) if not path.name.startswith("ok_")]
OK = sorted(DESIGNS.glob("*/ok_*.sv"))

# A root module that moves both random streams on before the bench draws its first value.
BURN = """
module burn;
  function integer draw(input integer n);
    integer i;
    begin
      draw = 0;
      for (i = 0; i < n; i = i + 1) draw = draw ^ $random ^ $urandom;
    end
  endfunction
  integer drawn = draw(3);
endmodule
"""


@dataclass(frozen=True)
class Port:
    """One port of a reference, as its header declares it."""

    direction: str
    width: int
    name: str


@dataclass(frozen=True)
class Score:
    """The last line of a bench."""

    mismatches: int
    samples: int


def simulate(workdir: Path, *sources: Path) -> str:
    """Compile the sources, run the result and return what it printed."""
    program = workdir / "program.vvp"
    compiled = subprocess.run(
        ["iverilog", "-g2012", "-o", str(program), *map(str, sources)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert compiled.returncode == 0, compiled.stderr
    run = subprocess.run(
        ["vvp", "-n", str(program)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def bench(problem: str) -> Path:
    return BUNDLED / f"{problem}_test.sv"


def reference(problem: str) -> Path:
    return BUNDLED / f"{problem}_ref.sv"


def score(output: str) -> Score:
    match = re.fullmatch(r"Mismatches: (\d+) in (\d+) samples", output.splitlines()[-1])
    assert match is not None, output
    return Score(int(match[1]), int(match[2]))


def written(workdir: Path, name: str, text: str) -> Path:
    path = workdir / name
    path.write_text(text)
    return path


def header(problem: str) -> str:
    """The reference's module header under the name of the design."""
    match = re.search(r"module RefModule \(.*?\n\);\n", reference(problem).read_text(), re.DOTALL)
    assert match is not None
    return match[0].replace("RefModule", "TopModule")


def ports(problem: str) -> list[Port]:
    rows = re.findall(r"^  (input|output)\s+logic\s+(?:\[(\d+):0\]\s+)?(\w+),?$", header(problem), re.MULTILINE)
    return [Port(direction, int(high or 0) + 1, name) for direction, high, name in rows]


def reference_as_design(workdir: Path, problem: str) -> Path:
    return written(workdir, "design.sv", reference(problem).read_text().replace("RefModule", "TopModule"))


def stub(workdir: Path, problem: str) -> Path:
    return written(workdir, "design.sv", header(problem) + "endmodule\n")


def constant(workdir: Path, problem: str, literal: str) -> Path:
    drivers = [f"  assign {port.name} = {literal};" for port in ports(problem) if port.direction == "output"]
    return written(workdir, "design.sv", "\n".join([header(problem), *drivers, "endmodule", ""]))


def spy(workdir: Path, problem: str) -> Path:
    """A root module that prints the design's inputs whenever one of them changes."""
    inputs = [port for port in ports(problem) if port.direction == "input" and port.name != "clk"]
    width = sum(port.width for port in inputs)
    names = ", ".join(f"tb.top_module1.{port.name}" for port in inputs)
    return written(
        workdir,
        "spy.sv",
        f"module spy;\n  wire [{width - 1}:0] seen = {{{names}}};\n"
        '  always @(seen) $strobe("stimulus %0d %b", $time, seen);\nendmodule\n',
    )


def stimulus(workdir: Path, problem: str, design: Path, *extra: Path) -> list[str]:
    """What the design saw at its inputs, one line for each change."""
    output = simulate(workdir, bench(problem), reference(problem), design, spy(workdir, problem), *extra)
    changes = [line for line in output.splitlines() if line.startswith("stimulus ")]
    assert len(changes) >= 40, output
    return changes


def of_design(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_the_index_lists_every_file_and_nothing_else() -> None:
    expected = {f"{name}_{kind}" for name in IDS for kind in ("prompt.txt", "ref.sv", "test.sv")}
    assert {path.name for path in BUNDLED.iterdir()} == expected | {"index.json"}


def test_identifiers_are_numbered_from_one_in_order() -> None:
    assert [name[:6] for name in IDS] == [f"vt{number:03d}_" for number in range(1, len(IDS) + 1)]


def test_there_are_thirty_problems_of_all_difficulties() -> None:
    assert Counter(entry["difficulty"] for entry in INDEX) == {"easy": 10, "medium": 12, "hard": 8}


@pytest.mark.parametrize("entry", INDEX, ids=IDS)
def test_an_index_entry_is_complete(entry: dict[str, object]) -> None:
    assert set(entry) == {"id", "title", "difficulty", "tags", "description"}
    assert isinstance(entry["tags"], list)
    assert entry["tags"]
    assert str(entry["description"]).endswith(".")


@pytest.mark.parametrize("problem", IDS)
def test_the_prompt_names_the_module_and_every_port_with_its_width(problem: str) -> None:
    prompt = (BUNDLED / f"{problem}_prompt.txt").read_text()
    flat = " ".join(prompt.split())
    assert "`TopModule`" in flat
    assert ports(problem)
    for port in ports(problem):
        width = "1 bit" if port.width == 1 else f"{port.width} bits"
        assert f"- `{port.name}`: {port.direction}, {width}" in flat


@pytest.mark.parametrize("problem", IDS)
def test_the_prompt_of_a_clocked_problem_states_its_reset(problem: str) -> None:
    flat = " ".join((BUNDLED / f"{problem}_prompt.txt").read_text().split())
    clocked = any(port.name == "clk" for port in ports(problem))
    assert clocked == ("before the first reset" in flat)
    assert clocked == bool(re.search(r"[Aa]?[Ss]ynchronous (active|reset|\(active)|\(synchronous, active", flat))


@pytest.mark.parametrize("problem", IDS)
def test_the_prompt_can_stand_in_a_block_comment(problem: str) -> None:
    prompt = (BUNDLED / f"{problem}_prompt.txt").read_text()
    assert "*/" not in prompt
    assert prompt.isascii()


@pytest.mark.parametrize("problem", IDS)
def test_the_reference_passes_its_own_bench(problem: str, tmp_path: Path) -> None:
    output = simulate(tmp_path, bench(problem), reference(problem), reference_as_design(tmp_path, problem))
    result = score(output)
    assert result.mismatches == 0
    assert 100 <= result.samples <= 2000
    assert "TIMEOUT" not in output
    for port in ports(problem):
        hint = f"Hint: Output '{port.name}' has no mismatches."
        assert (hint in output) == (port.direction == "output")


@pytest.mark.parametrize("problem", IDS)
def test_the_stub_fails_on_every_output(problem: str, tmp_path: Path) -> None:
    output = simulate(tmp_path, bench(problem), reference(problem), stub(tmp_path, problem))
    assert score(output).mismatches > 0
    for port in ports(problem):
        if port.direction == "output":
            assert re.search(
                rf"^Hint: Output '{port.name}' has [1-9]\d* mismatches\. First mismatch occurred at time \d+\.$",
                output,
                re.MULTILINE,
            )


@pytest.mark.parametrize("literal", ["'0", "'1"])
@pytest.mark.parametrize("problem", IDS)
def test_no_output_can_be_a_constant(problem: str, literal: str, tmp_path: Path) -> None:
    output = simulate(tmp_path, bench(problem), reference(problem), constant(tmp_path, problem, literal))
    assert "has no mismatches" not in output


@pytest.mark.parametrize("problem", IDS)
def test_a_problem_has_at_least_five_wrong_designs(problem: str) -> None:
    assert sum(path.parent.name == problem for path in WRONG) >= 5


def test_most_problems_have_a_second_correct_design() -> None:
    assert len({path.parent.name for path in OK}) >= 12


@pytest.mark.parametrize("design", WRONG, ids=of_design)
def test_a_wrong_design_fails(design: Path, tmp_path: Path) -> None:
    problem = design.parent.name
    assert design.read_text().startswith("// Wrong: ")
    assert score(simulate(tmp_path, bench(problem), reference(problem), design)).mismatches > 0


@pytest.mark.parametrize("design", OK, ids=of_design)
def test_a_correct_design_in_another_style_passes(design: Path, tmp_path: Path) -> None:
    problem = design.parent.name
    assert score(simulate(tmp_path, bench(problem), reference(problem), design)).mismatches == 0


@pytest.mark.parametrize("problem", IDS)
def test_advancing_the_random_streams_changes_the_stimulus(problem: str, tmp_path: Path) -> None:
    design = reference_as_design(tmp_path, problem)
    public = stimulus(tmp_path, problem, design)
    secret = stimulus(tmp_path, problem, design, written(tmp_path, "burn.sv", BURN))
    assert public != secret


@pytest.mark.parametrize("problem", IDS)
def test_the_reference_passes_with_advanced_random_streams(problem: str, tmp_path: Path) -> None:
    design = reference_as_design(tmp_path, problem)
    burn = written(tmp_path, "burn.sv", BURN)
    result = score(simulate(tmp_path, bench(problem), reference(problem), design, burn))
    assert result.mismatches == 0
    assert 100 <= result.samples <= 2000


@pytest.mark.parametrize("problem", IDS)
def test_the_stimulus_does_not_depend_on_the_design(problem: str, tmp_path: Path) -> None:
    expected = stimulus(tmp_path, problem, reference_as_design(tmp_path, problem))
    for literal in ("'0", "'1", "'x"):
        assert stimulus(tmp_path, problem, constant(tmp_path, problem, literal)) == expected
