"""Which sandbox is in force: decided once at start, from the setting and from what this machine can do."""

import shutil
from dataclasses import dataclass
from typing import Literal

from verilog_taskapp.errors import EnvironmentFailed
from verilog_taskapp.icarus.location import sandbox_paths
from verilog_taskapp.icarus.sandbox import landlock_abi, unavailable

SandboxSetting = Literal["required", "bubblewrap", "limits"]


@dataclass(frozen=True)
class Confinement:
    """How every child is confined."""

    paths: tuple[str, ...]
    """Files and folders that a child may read and load: the tool chain."""
    bwrap: str | None = None
    """The bubblewrap program, for namespaces instead of Landlock."""


def confinement(setting: SandboxSetting, iverilog: str) -> Confinement | None:
    """The sandbox for a setting; None for resource limits alone.

    Raises `EnvironmentFailed` where the setting asks for more than this machine can give. Blocking.
    """
    if setting == "limits":
        return None
    paths = sandbox_paths(iverilog)
    if setting == "bubblewrap":
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise _missing("bwrap is not installed (Debian, Ubuntu: apt-get install bubblewrap)")
        return Confinement(paths, bwrap)
    missing = unavailable()
    if missing:
        raise _missing(missing)
    return Confinement(paths)


def described(setting: SandboxSetting) -> str:
    """The sandbox in words, for people."""
    return {
        "required": f"Landlock (ABI {landlock_abi()}), seccomp and resource limits",
        "bubblewrap": "bubblewrap namespaces, seccomp and resource limits",
        "limits": "resource limits alone: only for designs that you trust",
    }[setting]


def _missing(what: str) -> EnvironmentFailed:
    return EnvironmentFailed(
        f"the sandbox cannot be set up: {what}; VERILOG_SANDBOX=limits starts without it, with resource limits alone: "
        "only for designs that you trust",
        stage="initialize",
        retryable=False,
    )
