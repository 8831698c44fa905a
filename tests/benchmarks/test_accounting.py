"""What processes cost, checked on children that use a known amount."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks.accounting import (
    descendants,
    machine_cpu_s,
    open_descriptors,
    own_cpu_s,
    reaped_cpu_s,
    resident_bytes,
    tree_time,
    waited_cpu_s,
)

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"
AT_MOST_S = 0.5
"""Added by starting Python, twice."""


@contextmanager
def child(code: str) -> Iterator[int]:
    """A Python that has run `code` and then waits for its end."""
    argv = [sys.executable, "-I", "-c", f"{code}\nprint('done', flush=True)\ninput()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        try:
            yield process.pid
        finally:
            process.kill()


def runs(code: str) -> str:
    """Code that runs `code` in a child of its own and waits for it."""
    return f"import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-c', {code!r}])"


def test_a_process_is_charged_what_it_burned() -> None:
    with child(BURN.format(seconds=0.4)) as pid:
        assert 0.4 <= own_cpu_s(pid) < 0.4 + AT_MOST_S


def test_threads_count_as_the_process() -> None:
    burning = "import threading, time\ndef burn():\n  while time.thread_time() < 0.3: pass\n"
    with child(f"{burning}t = threading.Thread(target=burn)\nt.start()\nt.join()") as pid:
        assert 0.3 <= own_cpu_s(pid) < 0.3 + AT_MOST_S


def test_a_dead_grandchild_is_charged_to_who_waited_for_it() -> None:
    with child(runs(BURN.format(seconds=0.4))) as pid:
        assert 0.38 <= waited_cpu_s(pid) < 0.4 + AT_MOST_S
        assert own_cpu_s(pid) < 0.38


def test_a_tree_is_split_into_the_process_the_living_and_the_dead() -> None:
    middle = f"{runs(BURN.format(seconds=0.6))}\n{BURN.format(seconds=0.4)}\nprint('up', flush=True)\ninput()"
    outer = (
        "import subprocess, sys\n"
        "pipe = subprocess.PIPE\n"
        f"p = subprocess.Popen([sys.executable, '-I', '-c', {middle!r}], stdin=pipe, stdout=pipe)\n"
        "p.stdout.readline()\n"
    )
    with child(outer) as pid:
        found = tree_time(pid)
        assert len(descendants(pid)) == 1
    assert found.own_s < 0.2 + AT_MOST_S
    assert 0.4 <= found.living_s < 0.4 + AT_MOST_S
    assert 0.58 <= found.waited_s < 0.6 + AT_MOST_S
    assert found.children_s == pytest.approx(found.living_s + found.waited_s)
    assert found.total_s == pytest.approx(found.own_s + found.children_s)
    assert (found - found).total_s == 0


def test_our_own_dead_children_are_counted_to_the_microsecond() -> None:
    before = reaped_cpu_s()
    subprocess.run([sys.executable, "-I", "-c", BURN.format(seconds=0.25)], check=True)
    assert 0.25 <= reaped_cpu_s() - before < 0.25 + AT_MOST_S


def test_the_machine_was_busy_for_as_long_as_a_process() -> None:
    before = machine_cpu_s()
    with child(BURN.format(seconds=0.5)):
        assert machine_cpu_s() - before >= 0.45


def test_peak_memory_stays_when_the_memory_is_gone() -> None:
    with child("x = bytearray(200_000_000)\ndel x") as pid:
        assert resident_bytes(pid, peak=True) > 200_000_000 > resident_bytes(pid)


def test_open_files_are_counted() -> None:
    with child("pass") as few, child("import os\nfds = [os.dup(0) for _ in range(20)]") as many:
        assert open_descriptors(many) == open_descriptors(few) + 20


@pytest.mark.parametrize("ask", [own_cpu_s, waited_cpu_s, tree_time, resident_bytes, open_descriptors])
def test_a_process_that_is_gone_is_an_error(ask: Callable[[int], object]) -> None:
    process = subprocess.Popen([sys.executable, "-I", "-c", "pass"])
    process.wait()
    with pytest.raises(OSError, match=r".+"):
        ask(process.pid)


def test_nothing_is_below_a_process_without_children() -> None:
    with child("pass") as pid:
        assert descendants(pid) == ()
        assert pid in descendants(os.getpid())
