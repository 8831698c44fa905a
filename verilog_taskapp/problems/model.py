"""What a problem is: a specification, a hidden reference and a hidden testbench."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Literal

Split = Literal["train", "val", "test"]
Difficulty = Literal["easy", "medium", "hard"]

NO_FILES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class ProblemLimits:
    """Limits of one problem where they differ from the settings; CPU seconds of a single child process."""

    compile_cpu_s: float | None = None
    run_cpu_s: float | None = None


@dataclass(frozen=True)
class Erratum:
    """A known fault of a published problem."""

    what: str
    """What is changed, or that nothing is."""
    why: str
    source: str
    """How it was found."""


@dataclass(frozen=True)
class Problem:
    """One task: implement ``top`` so that it behaves as ``reference`` under ``testbench``.

    ``reference`` declares ``reference_top`` (``RefModule`` in VerilogEval); ``testbench`` instantiates both it and
    ``top``. ``hidden_files`` are compiled with the bench and never shown; ``visible_files`` start in the workspace.
    ``split`` is None unless the source assigns one (then see `verilog_taskapp.problems.splits`).
    """

    id: str
    prompt: str
    reference: str
    testbench: str
    top: str = "TopModule"
    reference_top: str = "RefModule"
    hidden_files: Mapping[str, str] = field(default_factory=lambda: NO_FILES)
    visible_files: Mapping[str, str] = field(default_factory=lambda: NO_FILES)
    title: str = ""
    description: str = ""
    difficulty: Difficulty = "medium"
    tags: tuple[str, ...] = ()
    split: Split | None = None
    source: str = ""
    licence: str = ""
    limits: ProblemLimits = ProblemLimits()
    ignored_samples: int = 0
    """Samples at the start that are not checked; set by errata only."""
    errata: tuple[Erratum, ...] = ()

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) of everything that a verdict or a prompt depends on."""
        content: list[object] = [
            self.prompt,
            self.top,
            self.reference_top,
            self.reference,
            self.testbench,
            sorted(self.hidden_files.items()),
            sorted(self.visible_files.items()),
        ]
        if self.ignored_samples:
            content.append(self.ignored_samples)
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()
