"""Run a command as an ordinary user under what a default container forbids.

    python container_filter.py USER COMMAND [ARGUMENTS...]

Started by root. Installs ``no_new_privs`` and a seccomp filter that refuses, with EPERM, the system calls that Docker's
default profile refuses to a container without added capabilities (``profiles/seccomp/default.json`` in moby), becomes
USER without any further group, and runs the command. clone3 is answered with ENOSYS, as that profile does.
"""

import ctypes
import os
import platform
import pwd
import shutil
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, KILL, REFUSE, ABSENT = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
NEW_NAMESPACE = 0x7E020000
"""The flags of clone that the profile masks."""

ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
REFUSED = {
    # name: (x86_64, aarch64)
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "perf_event_open": (298, 241), "fanotify_init": (300, 262), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "open_by_handle_at": (304, 265),
    "userfaultfd": (323, 282), "settimeofday": (164, 170), "clock_settime": (227, 112), "vhangup": (153, 58),
    "lookup_dcookie": (212, 18), "kcmp": (312, 272), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "mbind": (237, 235), "get_mempolicy": (239, 236),
    "set_mempolicy": (238, 237), "move_pages": (279, 239), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
}  # fmt: skip
CLONE = (56, 220)
CLONE3 = 435


def instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """One instruction of the filter; jumps are relative to the next one."""
    return struct.pack("HBBI", code, yes, no, value)


def profile(arch: str) -> bytes:
    """The filter as BPF."""
    column = list(ARCHES).index(arch)
    program = [
        instruction(LOAD, 4),  # the architecture
        instruction(EQUAL, ARCHES[arch], 1, 0),
        instruction(RETURN, KILL),
        instruction(LOAD, 0),  # the call's number
        instruction(EQUAL, CLONE3, 0, 1),
        instruction(RETURN, ABSENT),
    ]
    for numbers in REFUSED.values():
        program += [instruction(EQUAL, numbers[column], 0, 1), instruction(RETURN, REFUSE)]
    program += [
        instruction(EQUAL, CLONE[column], 0, 3),
        instruction(LOAD, 16),  # its flags
        instruction(ANY_BIT, NEW_NAMESPACE, 0, 1),
        instruction(RETURN, REFUSE),
        instruction(RETURN, ALLOW),
    ]
    return b"".join(program)


def install(program: bytes) -> None:
    """Put the calling process, and all that it becomes, under the filter. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter cannot be installed")


def main() -> None:
    """Install the filter, drop all privileges, run the command."""
    user, command = pwd.getpwnam(sys.argv[1]), sys.argv[2:]
    path = shutil.which(command[0])  # now: the standard library may lie where that user cannot go
    if path is None:
        sys.exit(f"{command[0]} was not found")
    install(profile(platform.machine()))
    os.setgroups([])
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    os.execv(path, command)  # noqa: S606 - a tool of the tests, started by their script


if __name__ == "__main__":
    main()
