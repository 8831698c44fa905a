"""A session as bytes: compressed JSON in which every file's text stands once.

The compiled program goes along, so that compiling on one worker and simulating on another is no more work than on one.
A program that is too large, or of another simulator, is left out and made again when it is needed.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from verilog_taskapp.contracts import InitializeResponse, StepResponse, TerminateResponse
from verilog_taskapp.contracts.tool_calls import ToolCallRequest
from verilog_taskapp.environment.state import EpisodeSnapshot
from verilog_taskapp.environment.workspace import Workspace
from verilog_taskapp.icarus.compiler import data_files, source_texts
from verilog_taskapp.icarus.results import COMPILATIONS, VERDICTS, fingerprint
from verilog_taskapp.icarus.verdict import Compilation
from verilog_taskapp.sessions.record import ClosedSession, OpenSession, PlayedStep, SessionRecord, Unfinished

FORMAT = 2
MAX_COMPILATION_BYTES = 1024**2
"""Of the bundled and the VerilogEval problems' designs none is a tenth of that."""
_FAST = 1
"""zlib's level: most of the gain for the least time."""


@cache
def _states() -> TypeAdapter[EpisodeSnapshot]:
    return TypeAdapter(EpisodeSnapshot)


@dataclass
class _Texts:
    """The different texts of a record, by number."""

    texts: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def take(self, files: Mapping[str, str]) -> dict[str, int]:
        """Put numbers in place of the texts."""
        for text in files.values():
            if text not in self.numbers:
                self.numbers[text] = len(self.texts)
                self.texts.append(text)
        return {name: self.numbers[text] for name, text in files.items()}

    def give(self, files: Mapping[str, int]) -> dict[str, str]:
        """The reverse."""
        return {name: self.texts[number] for name, number in files.items()}

    def without(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """An answer whose observation has numbers for texts."""
        observation = answer["observation"]
        return {**answer, "observation": {**observation, "files": self.take(observation["files"])}}

    def within(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The reverse."""
        observation = answer["observation"]
        return {**answer, "observation": {**observation, "files": self.give(observation["files"])}}


def encode(record: SessionRecord, simulator: str) -> bytes:
    """`simulator` names the judge and the tools that a compilation and a verdict in the record come from."""
    if isinstance(record, ClosedSession):
        facts = {"id": record.id, "facts": record.facts.model_dump(mode="json")}
        return zlib.compress(orjson.dumps({"format": FORMAT, "closed": facts}), _FAST)
    texts = _Texts()
    unfinished = record.unfinished
    # Answers hold nothing but what JSON knows: their fields are taken as they are.
    found = {
        "id": record.id,
        "opened": texts.without(dict(record.opened)),
        "max_steps": record.max_steps,
        "episode": _encode_episode(record.episode, texts),
        "answers": [[name, texts.without(dict(one))] for name, one in record.answers.items()],
        "unfinished": unfinished and [unfinished.step_id, unfinished.results],
        "trace_id": record.trace_id,
        "created_at": record.created_at.isoformat(),
        "seed": record.seed if record.seed is None else str(record.seed),  # of any size
        "played": _encode_played(record, texts),
        "texts": texts.texts,
    }
    return zlib.compress(orjson.dumps({"format": FORMAT, "simulator": simulator, "open": found}), _FAST)


def decode(data: bytes, simulator: str) -> SessionRecord:
    """The reverse. Raises ValueError for what is damaged or of another version."""
    try:
        found = orjson.loads(zlib.decompress(data))
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']} instead of {FORMAT}")
        if "closed" in found:
            closed = found["closed"]
            return ClosedSession(closed["id"], TerminateResponse.model_validate(closed["facts"]))
        return _decode_open(found["open"], same_tools=found["simulator"] == simulator)
    except (zlib.error, KeyError, IndexError, TypeError, ValidationError) as error:
        raise ValueError(f"not a session: {type(error).__name__}") from error


def _decode_open(found: Mapping[str, Any], *, same_tools: bool) -> OpenSession:
    texts = _Texts(found["texts"])
    unfinished = found["unfinished"]
    answers = {name: StepResponse.model_validate(texts.within(one)) for name, one in found["answers"]}
    return OpenSession(
        id=found["id"],
        opened=InitializeResponse.model_validate(texts.within(found["opened"])),
        max_steps=found["max_steps"],
        episode=_decode_episode(found["episode"], texts, same_tools=same_tools),
        answers=answers,
        unfinished=unfinished and Unfinished(unfinished[0], tuple(unfinished[1])),
        trace_id=found["trace_id"],
        created_at=datetime.fromisoformat(found["created_at"]),
        seed=None if found["seed"] is None else int(found["seed"]),
        played=tuple(_decode_played(one, answers, texts) for one in found["played"]),
    )


def _encode_played(record: OpenSession, texts: _Texts) -> list[list[Any]]:
    """An answer that is kept for its step id stands there alone."""
    known = {id(answer): name for name, answer in record.answers.items()}
    return [
        [
            [call.model_dump(mode="json") for call in one.calls],
            known.get(id(one.answer)),
            None if id(one.answer) in known else texts.without(dict(one.answer)),
        ]
        for one in record.played
    ]


def _decode_played(found: list[Any], answers: Mapping[str, StepResponse], texts: _Texts) -> PlayedStep:
    calls, step_id, answer = found
    whole = answers[step_id] if step_id is not None else StepResponse.model_validate(texts.within(answer))
    return PlayedStep(tuple(ToolCallRequest.model_validate(call) for call in calls), whole)


def _encode_episode(state: EpisodeSnapshot, texts: _Texts) -> dict[str, Any]:
    plain = replace(state, files={}, compilation=None, verdict=None)
    return {
        **_states().dump_python(plain, mode="json"),
        "files": texts.take(state.files),
        "compilation": state.compilation and _encode_compilation(state.compilation),
        "verdict": state.verdict and VERDICTS.encode(state.verdict).decode(),
    }


def _decode_episode(found: Mapping[str, Any], texts: _Texts, *, same_tools: bool) -> EpisodeSnapshot:
    plain = _states().validate_python({**found, "files": {}, "compilation": None, "verdict": None})
    state = replace(plain, files=texts.give(found["files"]))
    if not same_tools:
        return state
    compilation = found["compilation"] and _decode_compilation(found["compilation"], state)
    verdict = found["verdict"] and replace(VERDICTS.decode(found["verdict"].encode()), compilation=compilation)
    return replace(state, compilation=compilation, verdict=verdict)


def _encode_compilation(compilation: Compilation) -> dict[str, Any] | None:
    data = COMPILATIONS.encode(compilation)
    # A program is text in ASCII but for names and strings of the design; Latin-1 gives any byte back.
    return (
        {"data": data.decode("latin-1"), "cached": compilation.cached} if len(data) <= MAX_COMPILATION_BYTES else None
    )


def _decode_compilation(found: Mapping[str, Any], state: EpisodeSnapshot) -> Compilation:
    sources = state.chosen or Workspace(state.files).sources
    return replace(
        COMPILATIONS.decode(found["data"].encode("latin-1")),
        sources=sources,
        data_files=data_files(state.files),
        texts=source_texts(state.files, sources),
        fingerprint=fingerprint(state.files, sources),
        cached=found["cached"],
    )
