"""What processes cost: CPU seconds, memory and descriptors, from ``/proc`` and the kernel's clocks (Linux).

A process's own CPU time is read from its clock, in nanoseconds. What its dead children used is only counted in ticks
of 10 ms (``cutime`` and ``cstime`` of ``/proc/PID/stat``, see ``proc(5)``), so it takes a run of many children.
"""

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
_CPUCLOCK_SCHED = 2
"""The kind of clock in the low bits of a process's clock id: ``include/linux/posix-timers.h``."""


@dataclass(frozen=True)
class TreeTime:
    """CPU seconds of a process and of everything that it started."""

    own_s: float
    """The process itself, all threads."""
    living_s: float
    """Processes below it that are still there: the launchers of a service."""
    waited_s: float
    """Processes that ended and were waited for: compilers and simulators."""

    def __sub__(self, earlier: "TreeTime") -> "TreeTime":
        return TreeTime(self.own_s - earlier.own_s, self.living_s - earlier.living_s, self.waited_s - earlier.waited_s)

    @property
    def children_s(self) -> float:
        """Everything that it started."""
        return self.living_s + self.waited_s

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.own_s + self.living_s + self.waited_s


def own_cpu_s(pid: int) -> float:
    """CPU seconds of a living process, without its children. Raises OSError when there is none."""
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


def waited_cpu_s(pid: int) -> float:
    """CPU seconds of the children that a living process has waited for, and theirs. Raises OSError."""
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / TICKS_PER_S  # cutime and cstime: fields 16 and 17


def children(pid: int) -> tuple[int, ...]:
    """The living children of a process, whichever of its threads started them; empty when it is gone."""
    found: list[int] = []
    try:
        for task in (PROC / str(pid) / "task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        return ()
    return tuple(found)


def descendants(pid: int) -> tuple[int, ...]:
    """All living processes below a process."""
    below = children(pid)
    return tuple(one for child in below for one in (child, *descendants(child)))


def tree_time(pid: int) -> TreeTime:
    """What a living process and everything below it used so far. Raises OSError when the process is gone.

    A process that ends while it is looked at moves to its parent's account, so look when nothing is running.
    """
    living, waited = 0.0, waited_cpu_s(pid)
    for child in descendants(pid):
        try:
            living, waited = living + own_cpu_s(child), waited + waited_cpu_s(child)
        except OSError:
            continue
    return TreeTime(own_cpu_s(pid), living, waited)


def reaped_cpu_s() -> float:
    """CPU seconds of all children that this process has waited for, to the microsecond."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def machine_cpu_s() -> float:
    """CPU seconds in which the machine's cores were not idle, since it started."""
    user, nice, system, _, _, irq, softirq = map(int, (PROC / "stat").read_text().split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS_PER_S


def resident_bytes(pid: int, *, peak: bool = False) -> int:
    """Resident memory of a process now, or the most that it ever had. Raises OSError when it is gone."""
    name = "VmHWM" if peak else "VmRSS"
    for line in (PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no memory any more")


def open_descriptors(pid: int) -> int:
    """File descriptors that a process has open now. Raises OSError when it is gone."""
    return len(os.listdir(PROC / str(pid) / "fd"))
