"""Ids and group keys."""

import uuid

from verilog_taskapp.tracing.record import group_key, new_trace_id


def test_ids_sort_by_time_and_are_uuids_of_version_7() -> None:
    ids = [new_trace_id(seconds) for seconds in (0.0, 1.0, 1.001, 1.7e9, 1.7e9 + 0.001)]
    assert ids == sorted(ids)
    assert len({new_trace_id(5.0) for _ in range(1000)}) == 1000
    for one in ids:
        found = uuid.UUID(one)
        assert (found.version, found.variant, len(one)) == (7, uuid.RFC_4122, 32)
    assert int(ids[1][:12], 16) == 1000


def test_a_group_is_one_problem_in_one_run() -> None:
    assert group_key("r", "p") == group_key("r", "p")
    assert len({group_key(*names) for names in (("r", "p"), ("r", "q"), ("rp", ""), ("", "rp"), ("\ud800", ""))}) == 5
