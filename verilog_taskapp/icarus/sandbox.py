"""What a child process may touch: Landlock or bubblewrap for files, seccomp for system calls, no capabilities.

Used by the launcher, so only the standard library is imported. Everything works as an ordinary
user and inside a container with the usual seccomp profile. Layout of the structures and the numbers: the kernel's
``Documentation/userspace-api/landlock.rst`` and ``seccomp_filter.rst``, and the system-call tables of both machines.

A simulator is treated as native code of the attacker: a Verilog design can take it over. Three stages:

    compile   reads the tool chain, reads and writes the job's slot, may start the compiler's own passes
    pass      the same, but starts nothing: one of these passes
    run       reads the tool chain and the slot, writes only result files that already exist, starts nothing
"""

import ctypes
import os
import platform
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from verilog_taskapp.icarus.spawn import Call

# --- Landlock

SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_ADD_RULE, SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_HANDLED_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many of the rights above a version of Landlock knows."""
NET_BIND_TCP, NET_CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKET, SCOPE_SIGNAL = 1, 2

READ = READ_FILE | READ_DIR
LOAD = READ | EXECUTE
WORK = READ | WRITE_FILE | TRUNCATE | REMOVE_FILE | MAKE_REG | MAKE_DIR | REMOVE_DIR
RESULTS = READ | WRITE_FILE | TRUNCATE

# --- seccomp

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_DUMPABLE = 38, 22, 2, 4
_LOAD, _JUMP, _JEQ, _JGE, _JSET, _RET = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38
_NR, _ARCH = 0, 4
_ARG0, _ARG2 = 16, 32
_X32_BIT = 0x40000000
_CLONE_NEW = 0x7E020080
"""All flags of clone that ask for a new namespace."""
_CLONE_THREAD = 0x00010000

_ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_REFUSED = [
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "recvfrom",
    "recvmsg", "sendmmsg", "recvmmsg", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
    "kcmp", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "kill", "tkill", "rt_sigqueueinfo",
    "rt_tgsigqueueinfo", "setsid", "setpgid", "mount", "umount2", "pivot_root", "chroot", "unshare", "setns",
    "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "name_to_handle_at",
    "open_by_handle_at", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "keyctl", "add_key", "request_key", "init_module", "finit_module", "delete_module",
    "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "settimeofday",
    "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "syslog", "setuid", "setgid",
    "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid", "capset",
    "memfd_create", "memfd_secret", "fanotify_init", "inotify_init1", "mknodat", "personality", "shmget",
    "shmat", "shmctl", "semget", "semctl", "msgget", "msgsnd", "msgrcv", "mq_open",
    # What Landlock does not cover: attributes of files that belong to the same user.
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "utime", "utimes",
    "utimensat", "futimesat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
    "truncate", "mknod", "inotify_init", "setrlimit",
]  # fmt: skip
"""System calls that no compiler and no simulator needs."""
_NUMBERS = {
    "x86_64": {
        "socket": 41, "socketpair": 53, "connect": 42, "bind": 49, "listen": 50, "accept": 43, "accept4": 288,
        "sendto": 44, "sendmsg": 46, "recvfrom": 45, "recvmsg": 47, "sendmmsg": 307, "recvmmsg": 299,
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
        "setsid": 112, "setpgid": 109, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
        "unshare": 272, "setns": 308, "name_to_handle_at": 303, "open_by_handle_at": 304, "bpf": 321,
        "perf_event_open": 298, "userfaultfd": 323, "keyctl": 250, "add_key": 248, "request_key": 249,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "kexec_file_load": 320,
        "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179, "settimeofday": 164,
        "clock_settime": 227, "clock_adjtime": 305, "adjtimex": 159, "sethostname": 170, "setdomainname": 171,
        "syslog": 103, "setuid": 105, "setgid": 106, "setreuid": 113, "setregid": 114, "setresuid": 117,
        "setresgid": 119, "setgroups": 116, "setfsuid": 122, "setfsgid": 123, "capset": 126, "memfd_create": 319,
        "fanotify_init": 300, "inotify_init1": 294, "mknodat": 259, "personality": 135, "shmget": 29, "shmat": 30,
        "shmctl": 31, "semget": 64, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "mq_open": 240,
        "clone": 56, "fork": 57, "vfork": 58, "prlimit64": 302, "setrlimit": 160, "mknod": 133, "inotify_init": 253,
        "chmod": 90, "fchmod": 91, "fchmodat": 268, "chown": 92, "lchown": 94, "fchown": 93, "fchownat": 260,
        "utime": 132, "utimes": 235, "utimensat": 280, "futimesat": 261, "setxattr": 188, "lsetxattr": 189,
        "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "truncate": 76,
    },
    "aarch64": {
        "socket": 198, "socketpair": 199, "connect": 203, "bind": 200, "listen": 201, "accept": 202, "accept4": 242,
        "sendto": 206, "sendmsg": 211, "recvfrom": 207, "recvmsg": 212, "sendmmsg": 269, "recvmmsg": 243,
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240,
        "setsid": 157, "setpgid": 154, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
        "unshare": 97, "setns": 268, "name_to_handle_at": 264, "open_by_handle_at": 265, "bpf": 280,
        "perf_event_open": 241, "userfaultfd": 282, "keyctl": 219, "add_key": 217, "request_key": 218,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "kexec_load": 104, "kexec_file_load": 294,
        "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89, "quotactl": 60, "settimeofday": 170,
        "clock_settime": 112, "clock_adjtime": 266, "adjtimex": 171, "sethostname": 161, "setdomainname": 162,
        "syslog": 116, "setuid": 146, "setgid": 144, "setreuid": 145, "setregid": 143, "setresuid": 147,
        "setresgid": 149, "setgroups": 159, "setfsuid": 151, "setfsgid": 152, "capset": 91, "memfd_create": 279,
        "fanotify_init": 262, "inotify_init1": 26, "mknodat": 33, "personality": 92, "shmget": 194, "shmat": 196,
        "shmctl": 195, "semget": 190, "semctl": 191, "msgget": 186, "msgsnd": 189, "msgrcv": 188, "mq_open": 180,
        "clone": 220, "prlimit64": 261, "setrlimit": 164, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55,
        "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
        "fremovexattr": 16, "truncate": 45,
    },
}  # fmt: skip
_SAME_EVERYWHERE = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "clone3": 435,
    "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "memfd_secret": 447, "fchmodat2": 452,
}  # fmt: skip


_OURS = {"x86_64": {"prctl": 157, "getpid": 39}, "aarch64": {"prctl": 167, "getpid": 172}}
"""What the confinement itself calls."""


STAGES = ("compile", "pass", "run")


class SandboxUnavailable(Exception):
    """This kernel or this machine cannot give the sandbox; the message says what is missing."""


class Confined(NamedTuple):
    """How a child is to be started."""

    argv: list[str]
    calls: tuple[Call, ...]
    """To be made by the child, in this order, just before exec."""
    descriptors: tuple[int, ...] = ()
    """To be closed by the launcher when the child has been started."""


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def landlock_abi() -> int:
    """The kernel's version of Landlock; 0 where there is none."""
    if platform.system() != "Linux":
        return 0
    version = _libc().syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION)
    return max(0, int(version))


def machine() -> str:
    """``x86_64``, ``aarch64`` or an empty string for a machine whose system calls are not known here."""
    name = platform.machine()
    return name if name in _ARCHES else ""


def unavailable() -> str:
    """Why this machine cannot give the sandbox; empty if it can."""
    if landlock_abi() < 1:
        return "the kernel has no Landlock (Linux 5.13 or later, not switched off)"
    if not machine():
        return f"the system calls of {platform.machine()} are not known here"
    return ""


class Landlock:
    """Prepared once per launcher: confining a process costs a handful of system calls.

    `tools` are files and folders of the tool chain; `slot` is the launcher's own folder, whose ``out`` folder holds
    result files. Raises `SandboxUnavailable`.
    """

    def __init__(self, tools: Sequence[str], slot: str) -> None:
        missing = unavailable()
        if missing:
            raise SandboxUnavailable(missing)
        self._libc = _libc()
        self._abi = landlock_abi()
        self._filters = _Filters(machine())
        readable = [*((path, LOAD) for path in tools), ("/dev/null", READ_FILE | WRITE_FILE)]
        self._rulesets = {
            "compile": self._ruleset([*readable, (slot, WORK)]),
            "pass": self._ruleset([*readable, (slot, WORK)]),
            "run": self._ruleset([*readable, (slot, READ), (os.path.join(slot, "out"), RESULTS)]),
        }
        self._kept: list[Any] = []
        self._calls = {stage: self._confinement(stage) for stage in self._rulesets}

    def _ruleset(self, rules: Sequence[tuple[str, int]]) -> int:
        handled = (1 << _HANDLED_BY_ABI[min(self._abi, 5)]) - 1
        attributes = struct.pack("QQQ", handled, NET_BIND_TCP | NET_CONNECT_TCP, SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL)
        size = 24 if self._abi >= 6 else (16 if self._abi >= 4 else 8)
        ruleset = self._call(SYS_LANDLOCK_CREATE_RULESET, attributes[:size], size, 0)
        for path, rights in rules:
            try:
                anchor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                if not os.path.isdir(path):
                    rights &= _FILE_RIGHTS
                rule = _PathBeneath(rights & handled, anchor)
                self._call(SYS_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, ctypes.byref(rule), 0)
            finally:
                os.close(anchor)
        return ruleset

    def _call(self, number: int, *arguments: Any) -> int:
        result = int(self._libc.syscall(number, *arguments))
        if result < 0:
            raise OSError(ctypes.get_errno(), f"system call {number}")
        return result

    def confine(self, stage: str, argv: list[str], _results: Sequence[str]) -> Confined:
        """The system calls that confine the calling process for good; all of them have to succeed."""
        return Confined(argv, self._calls[stage])

    def _confinement(self, stage: str) -> tuple[Call, ...]:
        """No new privileges, no capabilities (exec then does not give them back), files, system calls."""
        program = self._filters.program(stage, 0)
        place = self._buffer(program)
        header = self._buffer(struct.pack("HxxxxxxQ", len(program) // 8, place))
        nobody = self._buffer(struct.pack("Ii", 0x20080522, 0))
        numbers = {**_NUMBERS[machine()], **_OURS[machine()]}
        return (
            Call(numbers["prctl"], PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            Call(numbers["capset"], nobody, self._buffer(bytes(24))),
            Call(SYS_LANDLOCK_RESTRICT_SELF, self._rulesets[stage], 0),
            Call(numbers["getpid"], result=place + self._filters.pid_offset(stage)),
            Call(numbers["prctl"], PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0),
        )

    def _buffer(self, content: bytes) -> int:
        buffer = ctypes.create_string_buffer(content, len(content))
        self._kept.append(buffer)
        return ctypes.addressof(buffer)


class Bubblewrap:
    """Namespaces of its own for each child: no process, no mount and no network of the host exists in there.

    Stronger than Landlock and about 10 ms dearer; needs user namespaces, which many containers refuse.
    """

    PID = 2
    """What a child is in its process namespace: bubblewrap itself is 1."""

    def __init__(self, bwrap: str, tools: Sequence[str], slot: str) -> None:
        if not machine():
            raise SandboxUnavailable(f"the system calls of {platform.machine()} are not known here")
        self._bwrap = bwrap
        self._slot = slot
        self._filters = _Filters(machine())
        inside = [path for path in tools if any(path.startswith(f"{other}/") for other in tools)]
        self._mounts = [word for path in tools if path not in inside for word in ("--ro-bind", path, path)]

    def confine(self, stage: str, argv: list[str], results: Sequence[str]) -> Confined:
        """The command line that runs `argv` confined; `results` are the files that a run may write."""
        descriptor = os.memfd_create("filter", 0)
        os.write(descriptor, self._filters.program(stage, self.PID))
        os.lseek(descriptor, 0, os.SEEK_SET)
        slot = self._slot
        own = ["--ro-bind", slot, slot] if stage == "run" else ["--bind", slot, slot]
        own += [] if stage != "run" else [word for path in results for word in ("--bind", path, path)]
        command = [
            self._bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", *self._mounts,
            "--dev-bind", "/dev/null", "/dev/null", *own, "--chdir", os.path.join(slot, "job"),
            "--seccomp", str(descriptor), "--", *argv,
        ]  # fmt: skip
        return Confined(command, (), (descriptor,))


class _Filters:
    """The seccomp programs of both stages, made once; only the process id differs from child to child."""

    _PLACE = 0x7FEDCBA9

    def __init__(self, arch: str) -> None:
        self._templates = {stage: seccomp_program(arch, stage, self._PLACE) for stage in STAGES}

    def program(self, stage: str, pid: int) -> bytes:
        return self._templates[stage].replace(struct.pack("I", self._PLACE), struct.pack("I", pid))

    def pid_offset(self, stage: str) -> int:
        """Where in the program the process id stands."""
        return self._templates[stage].index(struct.pack("I", self._PLACE))


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


_ADMIT, _REFUSE = _instruction(_RET, _ALLOW), _instruction(_RET, _EPERM)


def seccomp_program(arch: str, stage: str, pid: int) -> bytes:
    """The filter as BPF: what is named is refused with EPERM, another machine's calls kill the process.

    `pid` is the process that it is installed in: aborting itself stays possible, signalling others does not. A search
    tree: when a filter is installed, the kernel runs it once for every system call that there is.
    """
    numbers = {**_NUMBERS[arch], **_SAME_EVERYWHERE}
    starts_nothing = ("fork", "vfork") if stage != "compile" else ()
    answers = {numbers[name]: _REFUSE for name in (*_REFUSED, *starts_nothing) if name in numbers}
    # clone3 hides its flags behind a pointer: pretend that the kernel does not have it, libc falls back to clone.
    answers[numbers["clone3"]] = _instruction(_RET, _ENOSYS)
    answers[numbers["clone"]] = _clone_filter(stage)
    # Itself only.
    answers[numbers["tgkill"]] = _instruction(_LOAD, _ARG0) + _instruction(_JEQ, pid, 0, 1) + _ADMIT + _REFUSE
    # Looking is fine, setting is not: the new limits are the third argument, a pointer.
    answers[numbers["prlimit64"]] = (
        _instruction(_LOAD, _ARG2)
        + _instruction(_JEQ, 0, 0, 3)
        + _instruction(_LOAD, _ARG2 + 4)
        + _instruction(_JEQ, 0, 0, 1)
        + _ADMIT
        + _REFUSE
    )
    answers[_X32_BIT] = _REFUSE  # and all beyond it
    ranges: list[tuple[int, bytes]] = [(0, _ADMIT)]
    for number in sorted(answers):
        if ranges[-1][0] == number:  # the one before it was named as well
            ranges.pop()
        if not ranges or ranges[-1][1] != answers[number]:
            ranges.append((number, answers[number]))
        if number != _X32_BIT:
            ranges.append((number + 1, _ADMIT))
    head = (
        _instruction(_LOAD, _ARCH)
        + _instruction(_JEQ, _ARCHES[arch], 1, 0)
        + _instruction(_RET, _KILL)
        + _instruction(_LOAD, _NR)
    )
    return head + _search_tree(ranges)


def _clone_filter(stage: str) -> bytes:
    """No new namespaces; where nothing may be started, threads only."""
    if stage == "compile":
        return _instruction(_LOAD, _ARG0) + _instruction(_JSET, _CLONE_NEW, 1, 0) + _ADMIT + _REFUSE
    return (
        _instruction(_LOAD, _ARG0)
        + _instruction(_JSET, _CLONE_NEW, 1, 0)
        + _instruction(_JSET, _CLONE_THREAD, 1, 0)
        + _REFUSE
        + _ADMIT
    )


def _search_tree(ranges: Sequence[tuple[int, bytes]]) -> bytes:
    """What answers a number: `ranges` are the first number of each range, ascending, and the code for it."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, from_there = _search_tree(ranges[:middle]), _search_tree(ranges[middle:])
    if len(below) // 8 < 256:
        return _instruction(_JGE, ranges[middle][0], len(below) // 8, 0) + below + from_there
    return _instruction(_JGE, ranges[middle][0], 0, 1) + _instruction(_JUMP, len(below) // 8) + below + from_there
