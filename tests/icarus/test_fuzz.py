"""A short run of the fuzzer: every text gets an ordinary verdict, and nothing leaks, stays or passes by a trick."""

import re
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.fuzz import FORMS, RIGHT, as_written, fuzz, texts
from tests.conftest import left_in
from tests.support import processes_in
from verilog_taskapp.icarus.sandbox import unavailable
from verilog_taskapp.icarus.toolchain import Toolchain

ATTACKS = Path(__file__).parent / "attacks"


def test_the_same_seed_gives_the_same_texts_of_every_form() -> None:
    first = list(islice(texts([RIGHT], 7), 200))
    assert first == list(islice(texts([RIGHT], 7), 200))
    assert {form for form, _ in first} == {form.__name__ for form in FORMS}
    assert first != list(islice(texts([RIGHT], 8), 200))


@pytest.mark.skipif(bool(unavailable()), reason=f"no sandbox here: {unavailable()}")
async def test_many_texts_get_an_ordinary_verdict_each(tools: Toolchain, scratch: Path) -> None:
    designs = [path.read_text() for path in sorted(ATTACKS.rglob("*.sv"))]
    scratch.mkdir()
    found = await fuzz(
        designs, iverilog=str(tools.iverilog), seed=20011, seconds=6.0, count=150, scratch=scratch, gated=False
    )
    assert found.wrong == []
    assert found.texts > 20
    assert left_in(scratch) == []
    assert processes_in(scratch) == {}
    for text in found.passed:
        assert re.search(r"always\w*\s*@", text), text
        assert as_written(text) == text
