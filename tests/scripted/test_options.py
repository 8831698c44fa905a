import pytest

from verilog_taskapp.scripted import ScriptedOptions
from verilog_taskapp.scripted.options import knobs_of, with_knobs


def test_knobs_change_only_what_they_name() -> None:
    options = ScriptedOptions(mode="wrong", latency_ms=5, token_ids=True)
    assert with_knobs(options, "latency-ms=20; fail_first=3,retry_after=1") == ScriptedOptions(
        mode="wrong", latency_ms=20, fail_first=3, retry_after="1", token_ids=True
    )


def test_a_bare_word_is_a_mode_or_an_episode() -> None:
    assert with_knobs(ScriptedOptions(), "empty").mode == "empty"
    assert with_knobs(ScriptedOptions(), "compile_loop").episode == "compile_loop"
    assert with_knobs(ScriptedOptions(), " ,; ") == ScriptedOptions()


def test_the_model_name_comes_after_the_header() -> None:
    knobs = knobs_of("scripted:mode=empty", "mode=wrong,latency_ms=1")
    assert with_knobs(ScriptedOptions(), knobs) == ScriptedOptions(mode="empty", latency_ms=1)
    assert knobs_of("qwen/qwen3-32b", "") == knobs_of("scripted", "") == knobs_of(None, "") == ""


@pytest.mark.parametrize(
    ("knobs", "complaint"),
    [
        ("mode=quick", "mode must be one of correct"),
        ("quick", "episode must be one of solve"),
        ("speed=1", "unknown knob 'speed'"),
        ("latency_ms=fast", "knob latency_ms: 'fast' does not fit"),
        ("latency_ms=nan", "latency_ms must not be negative"),
        ("error_rate=2", "error_rate must be between 0 and 1"),
        ("fail_first=-1", "fail_first must not be negative"),
        ("status_code=200", "status_code must be between 400 and 599"),
        ("retry_after=1\n2", "retry_after must be printable ASCII"),
        ("token_ids=maybe", "knob token_ids: 'maybe' does not fit"),
    ],
)
def test_a_knob_that_does_not_fit_is_named(knobs: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        with_knobs(ScriptedOptions(), knobs)
