"""No part of a key survives a quotation, and ordinary words do."""

import pytest
from pydantic import SecretStr

from verilog_taskapp.inference.redaction import REDACTED, excerpt, redact, redact_json

KEY = SecretStr("lab-Zq81xxWm33-7777")


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("key lab-Zq81xxWm33-7777 is unknown", KEY, f"key {REDACTED} is unknown"),
        ("you sent 'lab-Zq81...'", KEY, f"you sent '{REDACTED}'"),
        ("key ending in -7777.", KEY, f"key ending in {REDACTED}"),
        ("the key EMPTY is wrong", SecretStr("EMPTY"), f"the key {REDACTED} is wrong"),
        ("got (a:b=c)", SecretStr("a:b=c"), f"got ({REDACTED})"),
        ("provided: my****77.", None, f"provided: {REDACTED}"),
        ("not sk-aaaaaaaaaaaa but GSK_bbbbbbbbbbbb", None, f"not {REDACTED} but {REDACTED}"),
        ("model 'qwen/qwen3-32b' does not exist, task-specific or not", KEY, None),
        ("max_tokens must be <= 4096 (got 16000) ** see docs", KEY, None),
        ("", KEY, None),
    ],
)
def test_a_key_goes_and_words_stay(text: str, key: SecretStr | None, expected: str | None) -> None:
    assert redact(text, key) == (text if expected is None else expected)


def test_a_json_value_keeps_its_shape() -> None:
    value = {"error": {"message": "lab-Zq81xxWm33-7777", "code": 401, "ok": False}, "lab-Zq81xxWm33-7777": [None, 1.5]}
    assert redact_json(value, KEY) == {
        "error": {"message": REDACTED, "code": 401, "ok": False},
        REDACTED: [None, 1.5],
    }


def test_an_excerpt_is_one_line_of_at_most_its_length() -> None:
    assert excerpt("a\n  b\tc", KEY, 500) == "a b c"
    assert excerpt("word " * 50, KEY, 20) == "word word word word…"
    assert len(excerpt("w" * 10_000, KEY, 20)) == 20


@pytest.mark.parametrize("shown", range(1, 19))
def test_a_key_that_a_cut_goes_through_leaves_nothing(shown: int) -> None:
    text = " " * (4000 - shown) + KEY.get_secret_value() + " " * 4000
    assert excerpt(text, KEY, 500) == ""
    assert "lab" not in excerpt("w" * (499 - shown) + " " + KEY.get_secret_value(), KEY, 500)
