"""The tree of faults: what is drawn is what is there, and each has its place on the wire."""

import inspect
import re
from typing import get_args

import pytest

from verilog_taskapp import errors
from verilog_taskapp.errors import (
    CallerFault,
    ContextLengthExceeded,
    DatasetFault,
    EnvironmentFailed,
    InferenceFailed,
    ServiceFault,
    Stage,
    TaskAppError,
)
from verilog_taskapp.http.error_bodies import fault_response
from verilog_taskapp.inference.client import ToolCallUnparsable
from verilog_taskapp.inference.proxy import UpstreamRefused

LINE = re.compile(r"[├└]── (?P<name>\w+) +(?P<status>\d{3})? *(?P<code>[a-z_]+)?")
GROUPS = (CallerFault, DatasetFault, ServiceFault)


def faults() -> list[type[TaskAppError]]:
    """Every fault that is defined in the module itself."""
    return [
        found
        for found in vars(errors).values()
        if inspect.isclass(found) and issubclass(found, TaskAppError) and found is not TaskAppError
    ]


def test_the_drawn_tree_is_the_real_one() -> None:
    drawn = {match["name"]: (match["status"], match["code"]) for match in LINE.finditer(errors.__doc__ or "")}
    assert set(drawn) - {"UpstreamRefused"} == {fault.__name__ for fault in faults()}
    for fault in faults():
        status, code = drawn[fault.__name__]
        if status is not None:
            assert (str(fault.status), fault.code) == (status, code), fault


def test_a_drawn_branch_is_a_base_class() -> None:
    bases: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"(?P<indent>[\s│]*)[├└]── (?P<name>\w+)", line)
        if match is None or match["name"] == "UpstreamRefused":
            continue
        depth = len(match["indent"])
        bases = [(at, name) for at, name in bases if at < depth]
        base = bases[-1][1] if bases else "TaskAppError"
        assert getattr(errors, match["name"]).__bases__ == (getattr(errors, base),), match["name"]
        bases.append((depth, match["name"]))


def test_every_code_is_one_word_and_means_one_thing() -> None:
    named = [fault for fault in faults() if fault not in GROUPS]
    codes = [fault.code for fault in named]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", code) for code in codes)


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.__name__)
def test_a_fault_is_an_answer(fault: type[TaskAppError]) -> None:
    error = fault("what happened", extras={"run_id": "r"}, retry_after_s=0.5)
    answer = fault_response(error)
    assert answer.status_code == fault.status
    assert 400 <= answer.status_code <= 599
    assert answer.headers["retry-after"] == "1"
    assert str(error) == "what happened"
    assert error.stage is None or error.stage in get_args(Stage)


def test_whose_fault_it_is_decides_whether_to_try_again() -> None:
    retryable = {fault.__name__ for fault in faults() if fault("x").retryable}
    theirs = {"SessionBusy", "InferenceFailed"}
    assert retryable == theirs | {"EnvironmentFailed", "TracesUnavailable", "Overloaded", "Draining"}
    assert EnvironmentFailed("x", retryable=False).retryable is False
    assert InferenceFailed("x").stage == "inference"
    assert EnvironmentFailed("x", stage="verdict").stage == "verdict"


def test_extras_never_hide_the_code_or_the_message() -> None:
    body = fault_response(EnvironmentFailed("real", extras={"code": "fake", "message": "fake", "more": 1})).body
    assert b'"environment_failed"' in bytes(body)
    assert b"fake" not in bytes(body)


@pytest.mark.parametrize(
    "error",
    [
        EnvironmentFailed("broken", stage="verdict", retry_after_s=3, extras={"kept": 1}),
        ToolCallUnparsable("broken", "<call", {"kept": 1}),
        UpstreamRefused(418, {"a": 1}),
    ],
)
def test_a_failure_can_be_told_to_several_callers(error: TaskAppError) -> None:
    first, second = error.with_extras({"run_id": "first"}), error.with_extras({"run_id": "second"})
    assert (first.extras["run_id"], second.extras["run_id"]) == ("first", "second")
    assert "run_id" not in error.extras
    for told in (first, second):
        assert type(told) is type(error)
        assert (told.message, told.stage, told.retryable) == (error.message, error.stage, error.retryable)
        assert (told.status, told.retry_after_s, str(told)) == (error.status, error.retry_after_s, str(error))
        assert error.extras.items() <= told.extras.items()


def test_a_full_context_is_no_fault() -> None:
    assert not issubclass(ContextLengthExceeded, TaskAppError)
