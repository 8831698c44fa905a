"""The model double: a prepared episode, turn by turn."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.arena import Double, arena
from benchmarks.double import TAG

TABLE = {"a/right": {"path": "TopModule.v", "design": f"// {TAG}\nmodule TopModule; endmodule\n"}}


def asked(double: Double, model: str, turns: int) -> httpx.Response:
    """What the double answers after `turns` turns."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": 'not a turn: {"role":"assistant"}'}]
    messages += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}] * turns
    return httpx.post(double.url, json={"model": model, "messages": messages}, trust_env=False)


def test_plays_write_compile_simulate_submit_with_the_tag_of_the_request(tmp_path: Path) -> None:
    with arena("bundled", root=tmp_path) as place, place.double(TABLE) as double:
        said = [
            json.loads(asked(double, "bench:a/right:run-7", turn).json()["choices"][0]["message"]["content"])
            for turn in range(5)
        ]
    assert [one["tool"] for one in said] == ["write_file", "compile", "simulate", "submit", "submit"]
    assert said[0]["args"] == {"path": "TopModule.v", "content": "// run-7\nmodule TopModule; endmodule\n"}


@pytest.mark.parametrize("model", ["bench:b/right:run-7", "bench:a/right", "gpt"])
def test_an_unknown_design_is_an_error(tmp_path: Path, model: str) -> None:
    with arena("bundled", root=tmp_path) as place, place.double(TABLE) as double:
        assert asked(double, model, 0).status_code == 404


async def test_turns_that_take_time_do_not_wait_for_each_other(tmp_path: Path) -> None:
    body = {"model": "bench:a/right:1", "messages": [{"role": "user", "content": "x"}]}
    with arena("bundled", root=tmp_path) as place, place.double(TABLE, think_s=0.5) as double:
        started = time.monotonic()
        async with httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=None)) as client:
            answers = await asyncio.gather(*(client.post(double.url, json=body, timeout=60) for _ in range(40)))
        took = time.monotonic() - started
    assert {one.status_code for one in answers} == {200}
    assert 0.5 <= took < 40 * 0.5
