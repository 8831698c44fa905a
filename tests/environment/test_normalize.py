from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verilog_taskapp.environment.normalize import UNWRAPPED, normalize

MODEL_TEXT = Path(__file__).resolve().parents[3] / "shared" / "attacks" / "model_text"
NOT = "module TopModule(input in, output out); assign out = ~in; endmodule\n"
MUX = "module TopModule(input a, b, s, output o);\n  assign o = s ? b : a;\nendmodule\n"


@pytest.mark.parametrize(
    "text",
    [
        MUX,
        "",
        "\n",
        NOT.rstrip(),
        "  // indented, trailing blanks  \n\tmodule m;   endmodule\n\n\n",
        "// caf\u00e9 \u201cquoted\u201d\u00a0text \u200b\nmodule m; endmodule\n",
        'module m; initial $display("\u00a0\u201chi\u201d \u2026"); endmodule\n',
        "/* \u00a0 \u2019 \n ``` */ module m; endmodule // \u00a0",
        '`define S(x) `"x`"\nmodule m; wire \\a"b ; /* \u00a0 */ endmodule\n',
        'module m; initial $display("a\\n"); initial $display("b\\n\\"; \u2013"); endmodule',
        "// how to use it:\n// ```verilog\n// m m0();\n// ```\nmodule m; endmodule\n",
        "/*\n```verilog\nm m0();\n```\n*/\nmodule m; endmodule\n",
        f"```verilog\n{MUX}```\nthen\n```verilog\n{MUX}```\n",
        f"```json\n{MUX}```\n",
        "```verilog\n```\n",
        "```\n",
        f"{MUX}\n```\n{MUX}",
        f"```verilog\n{MUX}~~~\n",
        f"```verilog\n{MUX}```verilog\n",
        f"`define X\n```verilog\n{MUX}```\n",
        f"module a; endmodule\n```verilog\n{MUX}```\n",
        "Use it:\n```verilog\nm m0();\n```\nas above",
    ],
)
def test_what_is_already_right_or_not_clear_is_left_alone(text: str) -> None:
    assert normalize("TopModule.sv", text) == (text, ())


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        ("\ufeff" + NOT, NOT, "byte order mark"),
        (MUX.replace("\n", "\r\n"), MUX, "3 CR or CRLF line ends were changed to LF."),
        (MUX.replace("\n", "\r"), MUX, "3 CR or CRLF line ends"),
        ("module m;\r\nendmodule\n", "module m;\nendmodule\n", "1 CR or CRLF line end was changed"),
        (f"```verilog\n{MUX}```", MUX, UNWRAPPED),
        (f"```\n{MUX}```\n\n", MUX, UNWRAPPED),
        (f"\n\n  ```SystemVerilog TopModule.sv\n{MUX}  ```  \n", MUX, UNWRAPPED),
        (f"```verilog:TopModule.v\n{MUX}```", MUX, UNWRAPPED),
        (f"````sv\n{MUX}````", MUX, UNWRAPPED),
        (f"~~~v\n{MUX}~~~", MUX, UNWRAPPED),
        (f"```verilog\n{MUX.rstrip()}```", MUX, UNWRAPPED),
        (f"```verilog\n{MUX}", MUX, "A Markdown fence line was removed."),
        (f"{MUX}```\n", MUX, "A Markdown fence line was removed."),
        (f"Here is the module; it assigns `o`:\n\n```verilog\n{MUX}```\nDone.", MUX, "Only the fenced code block"),
        ("assign o =\u00a0a;", "assign o = a;", "U+00A0 NO-BREAK SPACE (1 x) was replaced by a plain space."),
        ("a\u3000\u3000b", "a  b", "U+3000 IDEOGRAPHIC SPACE (2 x) was"),
        ("as\u200bsign o = a;", "assign o = a;", "ZERO WIDTH SPACE (1 x) was removed."),
        ("wire a;\u2028wire b;", "wire a;\nwire b;", "LINE SEPARATOR (1 x) was replaced by a line break."),
        ("wire \\a\u00a0; // \u00a0", "wire \\a ; // \u00a0", "U+00A0 NO-BREAK SPACE (1 x)"),
    ],
)
def test_what_an_encoding_left_is_repaired_and_told(text: str, expected: str, note: str) -> None:
    normal, notes = normalize("src/TopModule.V", text)
    assert normal == expected
    assert len(notes) == 1
    assert note in notes[0]


def test_everything_at_once() -> None:
    text = "\ufeff```verilog\r\nmodule\u00a0m;\r\nendmodule\r\n```\r\n"
    normal, notes = normalize("m.v", text)
    assert normal == "module m;\nendmodule\n"
    assert len(notes) == 4


@pytest.mark.parametrize("path", ["notes.md", "rom.hex", "data.mem", "a.txt", "v"])
def test_other_files_only_lose_mark_and_carriage_returns(path: str) -> None:
    text = "```verilog\n\u00a0\u201chi\u201d\n```\n"
    assert normalize(path, text) == (text, ())
    assert normalize(path, "\ufeff" + text.replace("\n", "\r\n"))[0] == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("module m;\n  wire x = 1\u2019b0;\nendmodule\n", "Line 2, column 13: \u2019 (U+2019 RIGHT SINGLE"),
        ("module m;\n  wire x = 1\u2019b0;\nendmodule\n", "; use '."),
        ("/* a\n b */ initial $display(\u201chi\u201d);", "Line 2, column 24: \u201c"),
        ("wire x = a \u2212 b;", "Line 1, column 12: \u2212 (U+2212 MINUS SIGN)"),
        ("assign a \u2264 b;", "use <=."),
        ("assign a \uff1d b;", "use =."),
        ("wire \u00e9;", "Line 1, column 6: \u00e9"),
    ],
)
def test_a_character_that_is_not_verilog_stays_and_is_named(text: str, words: str) -> None:
    normal, notes = normalize("m.sv", text)
    assert normal == text
    assert any(words in note for note in notes)
    assert all("kept as it is" in note for note in notes)


def test_many_foreign_characters_are_counted() -> None:
    _, notes = normalize("m.sv", "\u2019" * 12)
    assert len(notes) == 6
    assert notes[-1] == "7 further characters of this kind."


def test_line_breaks_that_were_escaped_twice_are_pointed_out() -> None:
    text = "module m;\\n  initial $display(1);\\nendmodule\\n"
    normal, notes = normalize("m.v", text)
    assert normal == text
    assert len(notes) == 1
    assert "3 times a backslash and an n" in notes[0]


def test_a_lone_surrogate_cannot_break_the_write() -> None:
    normal, notes = normalize("a.txt", "x\ud800y")
    assert normal == "x\ufffdy"
    assert notes == ("1 lone surrogate was replaced by U+FFFD.",)


def texts_of(*pieces: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces)).map("".join)


@given(texts_of(*"ab \n\r\t`", "\u00a0", "\u200b", "\u2019", "\u2028"))
def test_a_second_pass_changes_nothing_in_other_files(text: str) -> None:
    once, _ = normalize("a.txt", text)
    assert normalize("a.txt", once) == (once, ())


@given(texts_of(*"ab \n\"'\\;{}[]", "//", "/*", "*/", "\u2019", "\u00e9", "`", "``"))
def test_without_artefacts_the_text_never_changes(text: str) -> None:
    if "```" not in text:
        assert normalize("a.v", text)[0] == text


@given(texts_of(*"ab \n\"'\\/*`~;", "```", "```verilog\n", "endmodule", "\u00a0", "\u2028", "\r", "\ud800"))
def test_every_change_has_a_note(text: str) -> None:
    normal, notes = normalize("a.v", text)
    assert normal == text or notes
    normal.encode()


@pytest.mark.parametrize("piece", ["`", "~", "``` ", "/*", '"', "\\", "\u2019", "\u00e9\n", "; ", "```\n"])
def test_a_file_of_the_largest_size_is_no_problem(piece: str) -> None:
    text = piece * (256 * 1024 // len(piece))
    assert normalize("a.v", text)[0] == text


@pytest.mark.skipif(not MODEL_TEXT.is_dir(), reason="the collection of model texts is not beside the repository")
@pytest.mark.parametrize(
    ("name", "expected", "words"),
    [
        ("Prob005_notgate__bom.sv", NOT, ["byte order mark"]),
        ("Prob005_notgate__crlf.sv", NOT.replace("; a", ";\na").replace("; e", ";\ne"), ["CRLF"]),
        ("Prob005_notgate__fence.sv", NOT, ["fence"]),
        ("Prob005_notgate__nbsp.sv", NOT.replace("~in;", "~in ;"), ["NO-BREAK SPACE"]),
        ("Prob005_notgate__smart_quotes.sv", None, ["Line 1, column 76: \u201c", "\u201d"]),
        ("Prob001_zero__correct_always_comb.sv", None, []),
        ("Prob001_zero__always_star_never_fires.sv", None, []),
        ("Prob032_vector0__one_output_wrong.sv", None, []),
    ],
)
def test_the_collected_model_texts(name: str, expected: str | None, words: list[str]) -> None:
    text = (MODEL_TEXT / name).read_bytes().decode()
    normal, notes = normalize("TopModule.sv", text)
    assert normal == (text if expected is None else expected)
    assert len(notes) == len(words)
    assert all(word in note for word, note in zip(words, notes, strict=True))
