"""How commands fail and stop."""

import asyncio
import os
import signal

import pytest
import typer

from verilog_taskapp.cli.console import Exit, fail, note, read_settings, run, status_of
from verilog_taskapp.errors import (
    DatasetUnavailable,
    EnvironmentFailed,
    InferenceFailed,
    InferenceRejected,
    ProblemNotFound,
    ProblemUnusable,
    TaskAppError,
)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ProblemNotFound("x"), Exit.USAGE),
        (InferenceRejected("x"), Exit.USAGE),
        (InferenceFailed("x"), Exit.NO_ANSWER),
        (EnvironmentFailed("x"), Exit.NO_ANSWER),
        (DatasetUnavailable("x"), Exit.NO_ANSWER),
        (ProblemUnusable("x"), Exit.NO_ANSWER),
    ],
)
def test_whose_fault_it_is_decides_the_status(error: TaskAppError, status: Exit) -> None:
    assert status_of(error) is status


def test_a_failure_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        fail("first\nsecond  third", Exit.FAILED)
    assert ended.value.exit_code == 1
    assert capsys.readouterr() == ("", "error: first second third\n")


def test_a_note_says_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    note("careful", kind="warning")
    assert capsys.readouterr().err == "warning: careful\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [("VERILOG_PORT", "secret"), ("VERILOG_FEEDBACK", "secret"), ("VERILOG_DATASET_COLUMNS", "{secret")],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(typer.Exit) as ended:
        read_settings()
    assert ended.value.exit_code == 2
    told = capsys.readouterr().err
    assert name.removeprefix("VERILOG_").lower() in told.lower()
    assert "secret" not in told


def test_options_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_DATASET", "verilog-eval")
    assert read_settings(dataset="bundled").dataset == "bundled"
    assert read_settings(dataset=None).dataset == "verilog-eval"


def test_a_result_comes_back() -> None:
    async def answer() -> int:
        return 42

    assert run(answer()) == 42


def test_a_fault_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    async def broken() -> None:
        raise EnvironmentFailed("the disk is full")

    with pytest.raises(typer.Exit) as ended:
        run(broken())
    assert ended.value.exit_code == 3
    assert capsys.readouterr().err == "error: the disk is full\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cleans_up_before_the_end(number: signal.Signals, status: int) -> None:
    cleaned = []

    async def endless() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    with pytest.raises(typer.Exit) as ended:
        run(endless())
    assert ended.value.exit_code == status
    assert cleaned == [True]


def test_signals_are_as_before_afterwards() -> None:
    async def nothing() -> None: ...

    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    run(nothing())
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
