"""What the scripted server does, and how a request changes it for itself."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from verilog_taskapp.scripted.episodes import EPISODE_NAMES, MODES, EpisodeName, Mode

MODEL = "scripted"
"""The only model there is; ``scripted:KNOBS`` is the same with knobs."""
KNOB_HEADER = "x-scripted"
"""Request header that holds knobs, e.g. ``mode=wrong, latency_ms=20``."""


@dataclass(frozen=True)
class ScriptedOptions:
    """The knobs. As text: ``name=value`` separated by commas or semicolons; a bare mode or episode names itself."""

    mode: Mode = "correct"
    episode: EpisodeName | None = None
    """Play this one whatever `mode` says, unless that is `malformed`, `empty`, `http500` or `hang`."""
    latency_ms: float = 0.0
    """Waited before every answer, errors included."""
    error_rate: float = 0.0
    """Share of requests, evenly spread, that are answered with `status_code`; 0 to 1."""
    fail_first: int = 0
    """The first so many requests are answered with `status_code`; counted for each different knob text."""
    status_code: int = 500
    """Status of every injected error, those of mode `http500` included; 400 to 599."""
    retry_after: str | None = None
    """`Retry-After` of every injected error, as it stands: seconds or a date."""
    token_ids: bool = False
    """Answer `return_token_ids` as vLLM does, with synthetic ids; without it, that field is ignored."""
    tag: str = ""
    """No effect; makes a knob text different, for a `fail_first` counter of its own."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if self.episode is not None and self.episode not in EPISODE_NAMES:
            raise ValueError(f"episode must be one of {', '.join(EPISODE_NAMES)}, not {self.episode!r}")
        if not (math.isfinite(self.latency_ms) and self.latency_ms >= 0):
            raise ValueError("latency_ms must not be negative")
        if not 0 <= self.error_rate <= 1:
            raise ValueError("error_rate must be between 0 and 1")
        if self.fail_first < 0:
            raise ValueError("fail_first must not be negative")
        if not 400 <= self.status_code <= 599:
            raise ValueError("status_code must be between 400 and 599")
        if self.retry_after is not None and not (self.retry_after.isascii() and self.retry_after.isprintable()):
            raise ValueError("retry_after must be printable ASCII")


_READ: dict[str, Callable[[str], Any]] = {
    "mode": str,
    "episode": str,
    "latency_ms": float,
    "error_rate": float,
    "fail_first": int,
    "status_code": int,
    "retry_after": str,
    "token_ids": lambda text: {"1": True, "true": True, "0": False, "false": False}[text.lower()],
    "tag": str,
}


@lru_cache(maxsize=1024)
def with_knobs(options: ScriptedOptions, knobs: str) -> ScriptedOptions:
    """`options` changed by a knob text. Raises ValueError saying which knob is wrong."""
    changes: dict[str, Any] = {}
    for knob in knobs.replace(";", ",").split(","):
        name, equals, value = (part.strip() for part in knob.partition("="))
        if not name:
            continue
        if not equals:
            name, value = "mode" if name in MODES else "episode", name
        name = name.replace("-", "_")
        if name not in _READ:
            raise ValueError(f"unknown knob {name!r}; there are {', '.join(_READ)}")
        try:
            changes[name] = _READ[name](value)
        except (ValueError, KeyError):
            raise ValueError(f"knob {name}: {value!r} does not fit") from None
    return replace(options, **changes)


def knobs_of(model: object, header: str) -> str:
    """The knob text of a request: the header's, then those of a model name ``scripted:KNOBS``, which win."""
    prefix = f"{MODEL}:"
    named = model.removeprefix(prefix) if isinstance(model, str) and model.startswith(prefix) else ""
    return ",".join(part for part in (header, named) if part)
