"""Starting a child from the launcher for little more than exec costs.

A forked Python pays for copied page tables and for every line that it runs before exec: about three milliseconds. Here
the child shares the launcher's memory until exec, as with vfork, and runs no Python at all: a prepared list of system
calls is carried out by a few machine instructions, and what fails is written where the launcher reads it. It is also
how the sandbox gets in between fork and exec without a compiled helper. On x86-64 Linux; elsewhere `available` is
False and the launcher forks.

Used by the launcher, so only the standard library is imported. Numbers of system calls: the kernel's
``syscall_64.tbl``; `clone` and its flags: ``clone(2)``.
"""

import ctypes
import errno
import mmap
import os
import platform
import signal
import struct
from collections.abc import Sequence
from typing import Any

RECORD = struct.Struct("8Q")
"""One system call: its number, six arguments, and the address where the lower half of its result goes."""
_UNSIGNED = (1 << 64) - 1

SYS_RT_SIGACTION, SYS_RT_SIGPROCMASK, SYS_DUP2, SYS_GETPID, SYS_EXECVE, SYS_CHDIR = 13, 14, 33, 39, 59, 80
SYS_SETPGID, SYS_PRCTL, SYS_PRLIMIT64 = 109, 157, 302
PR_SET_PDEATHSIG = 1
SIG_SETMASK = 2
SIGSET_BYTES = 8

# long run(const uint64_t records[][8], uint64_t failed[2]): returns the child's process id or a negative errno.
_CODE = bytes.fromhex(
    "53"  #                 push rbx
    "4154"  #               push r12
    "4889fb"  #             mov rbx, rdi
    "4989f4"  #             mov r12, rsi
    "b838000000"  #         mov eax, 56             clone
    "bf11410000"  #         mov edi, 0x4111         CLONE_VM | CLONE_VFORK | SIGCHLD
    "31f6"  #               xor esi, esi            the same stack: the child never touches it
    "31d2"  #               xor edx, edx
    "4531d2"  #             xor r10d, r10d
    "4531c0"  #             xor r8d, r8d
    "0f05"  #               syscall
    "4885c0"  #             test rax, rax
    "7546"  #               jne parent
    "488b03"  #       next: mov rax, [rbx]
    "488b7b08"  #           mov rdi, [rbx+8]
    "488b7310"  #           mov rsi, [rbx+16]
    "488b5318"  #           mov rdx, [rbx+24]
    "4c8b5320"  #           mov r10, [rbx+32]
    "4c8b4328"  #           mov r8, [rbx+40]
    "4c8b4b30"  #           mov r9, [rbx+48]
    "0f05"  #               syscall
    "488b4b38"  #           mov rcx, [rbx+56]
    "8901"  #               mov [rcx], eax
    "483d01f0ffff"  #       cmp rax, -4095
    "7306"  #               jae failed
    "4883c340"  #           add rbx, 64
    "ebcf"  #               jmp next
    "49891c24"  #   failed: mov [r12], rbx
    "4989442408"  #         mov [r12+8], rax
    "bf7f000000"  #         mov edi, 127
    "b8e7000000"  #         mov eax, 231            exit_group
    "0f05"  #               syscall
    "415c"  #       parent: pop r12
    "5b"  #                 pop rbx
    "c3"  #                 ret
)


class SpawnFailed(Exception):
    """A child could not be started: the number of the system call that failed (-1: clone) and its errno."""

    def __init__(self, number: int, code: int) -> None:
        super().__init__(f"system call {number}: {os.strerror(code)}")
        self.number = number
        self.code = code


class Call:
    """A system call that the child makes before exec; every one of them has to succeed."""

    __slots__ = ("arguments", "number", "result")

    def __init__(self, number: int, *arguments: int, result: int = 0) -> None:
        self.number = number
        self.arguments = arguments
        self.result = result
        """Where the lower 32 bits of what it returns are written; 0: nowhere."""

    def make(self) -> None:
        """Make it from Python; raises OSError."""
        libc: Any = ctypes.CDLL(None, use_errno=True)
        value = int(libc.syscall(*(ctypes.c_long(word) for word in (self.number, *self.arguments))))
        if value < 0:
            raise OSError(ctypes.get_errno(), f"system call {self.number}")
        if self.result:
            ctypes.c_uint32.from_address(self.result).value = value


def available() -> bool:
    """Whether this machine is one that `Spawner` is made for."""
    return platform.system() == "Linux" and platform.machine() == "x86_64" and ctypes.sizeof(ctypes.c_void_p) == 8


class Spawner:
    """Prepared once per launcher; raises OSError where memory cannot be made executable."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._memory.write(_CODE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        libc: Any = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(start), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "mprotect")
        self._run = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)(start)
        self._failed = (ctypes.c_uint64 * 2)()
        self._kept: list[Any] = []
        self._nowhere = self._buffer(bytes(8))
        zeros = self._buffer(bytes(32))  # a kernel sigaction: SIG_DFL, no flags, no mask; also an empty signal set
        calls = [
            Call(SYS_SETPGID, 0, 0),
            Call(SYS_PRCTL, PR_SET_PDEATHSIG, signal.SIGKILL),
            Call(SYS_RT_SIGPROCMASK, SIG_SETMASK, zeros, 0, SIGSET_BYTES),
        ]
        calls += [
            Call(SYS_RT_SIGACTION, number, zeros, 0, SIGSET_BYTES)
            for number in signal.valid_signals()
            if number not in (signal.SIGKILL, signal.SIGSTOP) and signal.getsignal(number) != signal.SIG_DFL
        ]
        self._prefix = self._records(calls)

    def _buffer(self, content: bytes) -> int:
        buffer = ctypes.create_string_buffer(content, len(content))
        self._kept.append(buffer)
        return ctypes.addressof(buffer)

    def _records(self, calls: Sequence[Call]) -> bytes:
        return b"".join(
            RECORD.pack(
                call.number,
                *(value & _UNSIGNED for value in call.arguments),
                *(0,) * (6 - len(call.arguments)),
                call.result or self._nowhere,
            )
            for call in calls
        )

    def spawn(
        self,
        argv: Sequence[str],
        environment: Sequence[str],
        directory: str,
        descriptors: tuple[int, int, int],
        limits: Sequence[tuple[int, int, int]],
        confinement: Sequence[Call],
    ) -> int:
        """Start ``argv[0]`` in `directory`, with `descriptors` as its first three, and return its process id.

        `limits` are resource, soft and hard limit; `confinement` comes last before exec. Raises `SpawnFailed`.
        """
        texts = [os.fsencode(text) for text in (directory, *argv, *environment)]
        strings = ctypes.create_string_buffer(b"\0".join(texts))
        places, place = [], ctypes.addressof(strings)
        for text in texts:
            places.append(place)
            place += len(text) + 1
        end = 1 + len(argv)
        vectors = (ctypes.c_uint64 * (len(texts) + 1))(*places[1:end], 0, *places[end:], 0)
        values = (ctypes.c_uint64 * (2 * len(limits)))(*(value & _UNSIGNED for one in limits for value in one[1:]))
        first, value = ctypes.addressof(vectors), ctypes.addressof(values)
        calls = [Call(SYS_CHDIR, places[0])]
        calls += [Call(SYS_DUP2, descriptor, number) for number, descriptor in enumerate(descriptors)]
        calls += [Call(SYS_PRLIMIT64, 0, one[0], value + 16 * index) for index, one in enumerate(limits)]
        calls += confinement
        calls.append(Call(SYS_EXECVE, places[1], first, first + 8 * (len(argv) + 1)))
        records = ctypes.create_string_buffer(self._prefix + self._records(calls))
        self._failed[0] = self._failed[1] = 0
        pid = int(self._run(ctypes.addressof(records), ctypes.addressof(self._failed)))
        if pid < 0:
            raise SpawnFailed(-1, -pid)
        if self._failed[0]:
            os.waitpid(pid, 0)
            start = self._failed[0] - ctypes.addressof(records)
            (number,) = struct.unpack_from("Q", records.raw, start)
            raise SpawnFailed(int(number), int(-self._failed[1] & _UNSIGNED) or errno.EINVAL)
        return pid
