"""What the judge is given: a testbench with its reference, as texts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

HIDDEN_FOLDER = "vt_hidden"
"""Where a problem's further files lie in a job's directory."""
_DUMPS = re.compile(r"\$dump(?:file|vars|on|off|all|flush|limit)\b\s*(?:\([^;]*?\)\s*)?;")


@dataclass(frozen=True)
class Bench:
    """A hidden testbench that instantiates ``top`` (the design) and ``reference_top`` (declared in ``reference``)."""

    key: str
    """Content hash: equal keys mean equal benches."""
    top: str
    reference_top: str
    reference: str
    testbench: str
    hidden_files: Mapping[str, str] = field(default_factory=dict)
    """Further files that bench and reference need: Verilog sources are compiled with them."""
    compile_cpu_s: float | None = None
    run_cpu_s: float | None = None
    ignored_samples: int = 0
    """Samples at the start that are not checked."""

    BENCH_FILE = "vt_bench.sv"
    REFERENCE_FILE = "vt_reference.sv"

    @property
    def quiet_testbench(self) -> str:
        """The testbench without its waveform dumps, the same number of lines.

        Nobody reads the dumps, and Icarus 13 refuses the published benches for naming a net in ``$dumpvars`` before
        its declaration.
        """
        return _DUMPS.sub(lambda call: ";" + "\n" * call[0].count("\n"), self.testbench)

    @property
    def hidden_paths(self) -> Mapping[str, str]:
        """The hidden files by their place in a job's directory."""
        return {f"{HIDDEN_FOLDER}/{name}": text for name, text in self.hidden_files.items()}

    @property
    def hidden_sources(self) -> tuple[str, ...]:
        """Those of the hidden files that are compiled."""
        return tuple(sorted(path for path in self.hidden_paths if path.endswith((".v", ".sv"))))
