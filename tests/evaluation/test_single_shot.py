"""One answer is the design: what is asked, and what is taken from the answer."""

import json

import pytest

from verilog_taskapp.evaluation.single_shot import design_in, messages_for
from verilog_taskapp.problems.model import Problem

TOP = "module TopModule (input a, output q);\n  assign q = a;\nendmodule\n"
WRONG = "module TopModule (input a, output q);\n  assign q = ~a;\nendmodule\n"
PART = "module Part (input a, output q);\n  assign q = a;\nendmodule\n"


def test_the_prompt_is_the_specification_and_says_what_to_answer() -> None:
    problem = Problem("p", "Make a wire.\n", "REFERENCE", "BENCH", top="Wire")
    system, user = messages_for(problem)
    assert (system["role"], user["role"]) == ("system", "user")
    assert user["content"].startswith("Make a wire.\n\n")
    assert "module Wire" in user["content"]
    assert "REFERENCE" not in str((system, user))
    assert "BENCH" not in str((system, user))


@pytest.mark.parametrize(
    ("answer", "design"),
    [
        (f"Here:\n```verilog\n{TOP}```\nDone.", TOP),
        (f"```\n{TOP}\n```", f"{TOP}\n"),
        (f"~~~sv\n{TOP}~~~", TOP),
        (f"First:\n```verilog\n{WRONG}```\nNo, better:\n```verilog\n{TOP}```", TOP),
        (f"```verilog\n{PART}```\nand\n```verilog\n{TOP}```", f"{PART}\n{TOP}"),
        (f"```verilog\n{TOP}```\nTest it:\n```bash\niverilog x.v\n```", TOP),
        (f"```verilog\n{TOP}", TOP),
        (f"Sure. The design:\n{TOP}That is all.", TOP),
        (f"`default_nettype none\n{TOP}", f"`default_nettype none\n{TOP}"),
        (json.dumps({"tool": "write_file", "args": {"path": "TopModule.v", "content": TOP}}), TOP),
        ("I cannot do that.", None),
        ("", None),
        ("```\nassign q = a; // TopModule\n```", "assign q = a; // TopModule\n"),
    ],
)
def test_the_design_in_an_answer(answer: str, design: str | None) -> None:
    assert design_in(answer, "TopModule") == design


def test_a_long_answer_without_an_end_is_read_in_linear_time() -> None:
    assert design_in("```verilog\n" * 20_000, "TopModule") is None
    for unit in ("module ", "module\n", "`x\n", "endmodule\n"):
        assert design_in(unit * 200_000, "TopModule") is None
