"""Compilations and verdicts as bytes, for `verilog_taskapp.icarus.verdict_cache`."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache

from pydantic import TypeAdapter

from verilog_taskapp.icarus.diagnostics import Diagnostic
from verilog_taskapp.icarus.verdict import Compilation, Verdict
from verilog_taskapp.icarus.verdict_cache import Kind


def fingerprint(files: Mapping[str, str], sources: tuple[str, ...]) -> str:
    """SHA-256 (hex) over a design's files and which of them are compiled."""
    return hashlib.sha256(json.dumps([sorted(files.items()), sources]).encode()).hexdigest()


def _encode_compilation(compilation: Compilation) -> bytes:
    """One line of JSON, then the program. What comes from the caller's files is left out."""
    facts = {
        "failure": compilation.failure,
        "diagnostics": [asdict(one) for one in compilation.diagnostics],
        "cpu_s": compilation.cpu_s,
        "wall_s": compilation.wall_s,
        "stray_override": compilation.stray_override,
        "hints": compilation.hints,
        "program": compilation.program is not None,
    }
    return json.dumps(facts).encode() + b"\n" + (compilation.program or b"")


def _decode_compilation(data: bytes) -> Compilation:
    head, _, program = data.partition(b"\n")
    try:
        facts = json.loads(head)
        return Compilation(
            sources=(),
            program=program if facts["program"] else None,
            failure=facts["failure"],
            diagnostics=tuple(Diagnostic(**one) for one in facts["diagnostics"]),
            data_files={},
            cpu_s=facts["cpu_s"],
            wall_s=facts["wall_s"],
            stray_override=facts["stray_override"],
            hints=tuple(facts["hints"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a compilation: {error}") from error


@cache
def _verdicts() -> TypeAdapter[Verdict]:
    return TypeAdapter(Verdict)


def _encode_verdict(verdict: Verdict) -> bytes:
    return _verdicts().dump_json(replace(verdict, compilation=None))


COMPILATIONS: Kind[Compilation] = Kind(
    "compilation", _encode_compilation, _decode_compilation, lambda found: found.failure != "crashed"
)
VERDICTS: Kind[Verdict] = Kind(
    "verdict", _encode_verdict, lambda data: _verdicts().validate_json(data), lambda found: found.reason != "crashed"
)
