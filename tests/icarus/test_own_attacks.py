"""Attacks on the judge's own workings, by designs of several files and by tool calls.

`attacks/golden` is tried on a flip-flop that is judged by replay, with and without the list of refused calls;
`attacks/classic` on a handshake whose bench cannot be replayed. The first line of each says what it tries. What starts
with ``honest`` must pass, and nothing else may.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.conftest import left_by_jobs
from tests.icarus import made
from tests.support import forget_settings, settings_in, simulators_in
from verilog_taskapp.contracts import InitializeRequest, StepRequest, TerminateRequest
from verilog_taskapp.environment.actions import ToolCall
from verilog_taskapp.environment.episode import Episode
from verilog_taskapp.environment.state import EpisodeOptions
from verilog_taskapp.environment.workspace import SOURCE_SUFFIXES
from verilog_taskapp.environment.world import World, bench_of
from verilog_taskapp.errors import SessionNotFound
from verilog_taskapp.icarus.bench import Bench
from verilog_taskapp.icarus.judge import Judge
from verilog_taskapp.icarus.runner import Runner
from verilog_taskapp.icarus.toolchain import Toolchain
from verilog_taskapp.icarus.verdict import Verdict
from verilog_taskapp.problems.model import Problem
from verilog_taskapp.sessions.store import SessionStore

ATTACKS = Path(__file__).parent / "attacks"

SLOW = {"bench_from_the_start_again", "zero_delay_late", "deassigns_and_waits"}
"""They use up their CPU time."""
LEAKS = re.compile(r"vt_|\.judge|root:x:|daemon:|/work/|/root/|/dev/shm|/tmp/|stats1|tb_match|good1|LC_ALL|slot-\d")
"""Names of the bench and of the host that must not come back, unless the design wrote them itself."""


def files_of(path: Path) -> dict[str, str]:
    """A design by file name."""
    if path.is_file():
        return {"TopModule.sv": path.read_text()}
    return {str(one.relative_to(path)): one.read_text() for one in sorted(path.rglob("*")) if one.is_file()}


def sources_of(files: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in files if name.endswith(SOURCE_SUFFIXES)))


def names(kind: str) -> list[str]:
    return sorted(path.stem for path in (ATTACKS / kind).iterdir())


def marked(kind: str) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in names(kind)]


def design(kind: str, name: str) -> dict[str, str]:
    path = ATTACKS / kind / name
    return files_of(path if path.is_dir() else path.with_suffix(".sv"))


async def judged(judge: Judge, bench: Bench, files: Mapping[str, str]) -> Verdict:
    prepared = await judge.prepare(bench)
    compilation = await judge.compile(prepared, files, sources_of(files))
    return await judge.final(prepared, compilation)


def leaked(verdict: Verdict, files: Mapping[str, str]) -> set[str]:
    assert verdict.compilation is not None
    own = "".join(files.values())
    said = verdict.design_output + verdict.compilation.messages(1_000_000) + verdict.detail
    return {match[0] for match in LEAKS.finditer(said) if match[0] not in own}


@pytest.mark.parametrize("name", marked("golden"))
async def test_an_attack_on_the_replay_fails_and_leaves_nothing(
    name: str, judge: Judge, ungated: Judge, boxed: Runner, scratch: Path
) -> None:
    files = design("golden", name)
    for one in (judge, ungated):
        verdict = await judged(one, made.FLIP_FLOP_BENCH, files)
        assert verdict.passed == name.startswith("honest"), (name, verdict.reason)
        assert leaked(verdict, files) == set(), verdict
        assert left_by_jobs(boxed.scratch) == []
        assert simulators_in(scratch) == {}


@pytest.mark.parametrize("name", marked("classic"))
async def test_an_attack_on_the_classic_judge_fails_and_leaves_nothing(
    name: str, judge: Judge, boxed: Runner, scratch: Path
) -> None:
    files = design("classic", name)
    assert (await judge.prepare(made.CLOSED_LOOP_BENCH)).status == "classic"
    verdict = await judged(judge, made.CLOSED_LOOP_BENCH, files)
    assert verdict.passed == name.startswith("honest"), (name, verdict.reason, verdict.compilation)
    assert leaked(verdict, files) == set(), verdict
    assert left_by_jobs(boxed.scratch) == []
    assert simulators_in(scratch) == {}


@pytest.mark.parametrize(
    ("kind", "name", "call"),
    [("golden", "calls_in_delayed_nets", "$fopen"), ("classic", "functions_in_delayed_nets", "$random")],
)
async def test_a_call_behind_a_delay_is_seen(kind: str, name: str, call: str, judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH if kind == "golden" else made.CLOSED_LOOP_BENCH)
    files = design(kind, name)
    compilation = await judge.compile(prepared, files, sources_of(files))
    assert f"error: {call} is not allowed in a design" in compilation.messages(1000)


async def test_a_file_that_begins_with_a_label_is_not_told_whose_end_it_labels(judge: Judge) -> None:
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    compilation = await judge.compile(prepared, *made.one_file(": TopModule\n" + RIGHT))
    assert not compilation.succeeded
    assert "vt_" not in compilation.messages(1000)


def test_every_attack_says_what_it_tries() -> None:
    for kind in ("golden", "classic"):
        for name in names(kind):
            path = ATTACKS / kind / name
            first = (path / "TopModule.sv" if path.is_dir() else path.with_suffix(".sv")).read_text().split("\n")[0]
            assert first.startswith("// "), name


# --- learnt answers


def public_answers(judge_text: str, widths: int) -> str:
    """A case statement's items from rows of bits."""
    return "".join(
        f"      {number}: q = {widths}'b{row};\n" for number, row in enumerate(judge_text.splitlines()) if row
    )


async def learnt(judge: Judge, made_design: str) -> tuple[Verdict, Verdict]:
    """The verdicts on the public stimulus and at the end."""
    prepared = await judge.prepare(made.FLIP_FLOP_BENCH)
    files, sources = made.one_file(made_design)
    compilation = await judge.compile(prepared, files, sources)
    return await judge.run(prepared, compilation), await judge.final(prepared, compilation)


@pytest.mark.parametrize("by", ["sample", "time"])
async def test_the_public_answers_by_heart_do_not_pass_at_the_end(by: str, judge: Judge) -> None:
    trace = await judge.trace(await judge.prepare(made.FLIP_FLOP_BENCH))
    items = public_answers(trace.expected.decode(), 8)
    # The bench samples at both edges, just before them: row n holds from sample n - 1 on.
    when = "$time / 5" if by == "time" else "n"
    count = "" if by == "time" else "  integer n = 0; always @(clk) n = n + 1;\n"
    rom = (
        "module TopModule(input clk, input [7:0] d, output reg [7:0] q);\n"
        f"{count}  always @(*) begin\n    case ({when})\n{items}    endcase\n    if (0) q = d;\n  end\n"
        "  initial q = 0;\n"
        f"  always @(clk) #1 case ({when})\n{items}  endcase\nendmodule\n"
    )
    public, final = await learnt(judge, rom)
    assert public.passed, (public.reason, public.mismatches)
    assert not final.passed
    assert final.reason == "mismatch"
    assert final.waveform is None


# --- tool calls

PROBLEM = Problem("dff", "Store d at the edge.", made.FLIP_FLOP_BENCH.reference, made.FLIP_FLOP_BENCH.testbench)
RIGHT = made.as_design(made.FLIP_FLOP)
HOST = re.compile(r"vt_|\.judge|root:x:|/work/|/root/|/dev/shm|/tmp/|stats1|tb_match|good1|slot-\d|Traceback")


@pytest.fixture
async def episode(judge: Judge) -> Episode:
    return Episode(PROBLEM, await judge.prepare(bench_of(PROBLEM)), judge, EpisodeOptions(feedback="waveform"))


PATHS = [
    "\u0422opModule.v",  # a Cyrillic letter
    "TopModule\u200b.v",
    "TopModule.v\u202e",
    "TopModule\uff0ev",  # a full-width stop
    "TopModule.v.",
    "TopModule.v/",
    "TopModule.v//",
    "TopModule.v/.",
    "TopModule.v\0.txt",
    "TopModule.v\n-o\n/tmp/x.v",
    "TopModule.V",
    "nul:.v",
    "-o",
    "-o.v",
    "-ffile.v",
    "-f cmd.f",
    "@file",
    "@file.v",
    "+define+x",
    "+define+x.v",
    "+libdir+..v",
    ".judge/replay.sv",
    "../out/result.txt",
    "a/../../out/result.txt",
    "/proc/self/mem.v",
    "file:///etc/passwd.v",
    "\\\\.\\pipe\\x.v",
    "$HOME/x.v",
    "${IFS}x.v",
    "x;id;.v",
    "x|id.v",
    "x`id`.v",
    "*.v",
    "a/" * 50 + "x.v",
    "a" * 100_000 + ".v",
    ["TopModule.v"],
    {"path": "TopModule.v"},
    3.5,
    None,
    True,
]


async def test_no_path_of_a_tool_call_leaves_the_workspace_or_reaches_a_command_line(episode: Episode) -> None:
    for path in PATHS:
        result = await episode.step(ToolCall("write_file", {"path": path, "content": RIGHT}))
        assert result.outcome == "refused", path
        assert len(result.message) < 400
    assert list(episode.observation().files) == ["TopModule.v"]


async def test_names_that_are_allowed_stay_file_names_for_the_compiler(episode: Episode, boxed: Runner) -> None:
    for path in ("a-o.v", "b+define+x.v", "_f.v", "c@.v".replace("@", "_"), "lib/-x".replace("-", "_") + ".v", "9.v"):
        result = await episode.step(ToolCall("write_file", {"path": path, "content": "`define x\n"}))
        assert result.outcome == "ok", path
    await episode.step(ToolCall("write_file", {"path": "TopModule.v ", "content": RIGHT}))  # spaces around are cut
    await episode.step(ToolCall("write_file", {"path": "-f.v".replace("-", "a"), "content": ""}))
    result = await episode.step(ToolCall("submit", {}))
    assert result.observation.task_completed, result.message
    assert left_by_jobs(boxed.scratch) == []


SOURCES: list[Any] = [
    "TopModule.v",
    {"0": "TopModule.v"},
    [["TopModule.v"]],
    [None],
    [3],
    ["-o", "TopModule.v"],
    ["TopModule.v\n-s\nx"],
    ["+define+x", "TopModule.v"],
    ["/etc/passwd"],
    ["../out/result"],
    [".judge/replay.sv"],
    ["@cmd.f"],
    ["notes.txt"],
    ["missing.v"] * 10_000,
    ["x" * 1_000_000],
]


async def test_odd_lists_of_sources_are_refused_in_a_few_words(episode: Episode) -> None:
    await episode.step(ToolCall("write_file", {"path": "notes.txt", "content": "-o /tmp/x"}))
    for sources in SOURCES:
        result = await episode.step(ToolCall("compile", {"sources": sources}))
        assert result.outcome == "refused", str(sources)[:60]
        assert len(result.message) < 4000, str(sources)[:60]
    repeated = await episode.step(ToolCall("compile", {"sources": ["./TopModule.v"] * 10_000}))
    assert repeated.outcome == "failed"  # the stub, once


async def test_arguments_of_any_size_and_depth_are_the_policy_s_own_fault(episode: Episode) -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = {"a": [deep]}
    for arguments in (
        {"path": "x.v", "content": deep},
        {"path": deep, "content": "x"},
        {"path": "x.v", "content": "x" * 5_000_000},
        {"path": "x.v", "content": "\0"},
        {"path": "x.v"},
        {},
    ):
        assert (await episode.step(ToolCall("write_file", arguments))).outcome == "refused"
    many = {f"argument {number}\n": number for number in range(1000)}
    result = await episode.step(ToolCall("simulate", {**many, "files": {"../x": "y"}, "testbench": "module tb;"}))
    assert result.outcome == "failed"
    assert all("\n" not in note for note in result.notes)
    assert len(result.notes) < 20


@pytest.mark.parametrize(
    "name", ["readmem_of_the_host", "line_directives", "include_the_bench", "strings_like_programs"]
)
async def test_nothing_of_the_host_or_the_bench_is_told_to_the_policy(name: str, episode: Episode) -> None:
    files = design("golden", name)
    own = "".join(files.values())
    shown: list[str] = []
    for path, text in files.items():
        await episode.step(ToolCall("write_file", {"path": path, "content": text}))
    for tool in ("compile", "simulate", "submit"):
        result = await episode.step(ToolCall(tool, {}))
        shown += [result.message, *result.notes, json.dumps(dict(result.facts))]
        seen = result.observation.to_wire()
        shown.append(json.dumps({key: value for key, value in seen.items() if key != "files"}))
    assert not result.observation.task_completed
    assert {match[0] for match in HOST.finditer("\n".join(shown)) if match[0] not in own} == set()


@pytest.fixture
async def store(tmp_path: Path, golden_cache: Path, tools: Toolchain) -> AsyncIterator[SessionStore]:
    with pytest.MonkeyPatch.context() as patch:
        forget_settings(patch)
        settings = settings_in(tmp_path, cache_dir=golden_cache, iverilog=str(tools.iverilog))
        async with World.open(settings) as world, SessionStore(world) as opened:
            yield opened


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "x\ny", "\0", ".", "-o", "\u0451" * 50, "%2e", "' or 1"])
def test_a_session_s_name_cannot_be_a_path_or_an_option(name: str) -> None:
    with pytest.raises(ValidationError, match="session_id"):
        InitializeRequest(session_id=name, seed=0)


async def test_session_ids_and_step_ids_are_names_and_nothing_else(store: SessionStore, tmp_path: Path) -> None:
    def working_places() -> list[Path]:
        return sorted(path for path in (tmp_path / "scratch").rglob("*") if not path.name.startswith("slot-"))

    before = working_places()
    for name in ("a..b", "C:x", "9", "__class__"[2:], "nul:"):
        opened = await store.initialize(InitializeRequest(session_id=name, seed=0))
        assert opened.env_id == name
        calls = [{"tool": "write_file", "args": {"path": f"../{name}.v", "content": "x"}}, {"tool": name, "args": name}]
        body = {"env_id": name, "step_id": "../../etc/passwd\n", "tool_calls": calls}
        first = await store.step(StepRequest.model_validate(body))
        assert await store.step(StepRequest.model_validate(body)) == first
        assert [result["outcome"] for result in first.info["tool_results"]] == ["refused", "refused"]
        with pytest.raises(SessionNotFound) as failure:
            await store.step(StepRequest.model_validate({"env_id": "../" * 10_000, "tool_calls": []}))
        assert len(failure.value.message) < 300
        await store.terminate(TerminateRequest(env_id=name))
    assert len(store) == 0
    assert working_places() == before


async def test_steps_of_one_session_at_once_do_not_mix_their_files(store: SessionStore) -> None:
    opened = await store.initialize(InitializeRequest(seed=0))

    async def step(content: str) -> None:
        calls = [{"tool": "write_file", "args": {"path": "TopModule.v", "content": content}}, {"tool": "compile"}]
        answer = await store.step(StepRequest.model_validate({"env_id": opened.env_id, "tool_calls": calls}))
        assert answer.info["tool_results"][1]["outcome"] == "failed"
        assert answer.observation["files"]["TopModule.v"] == content

    await asyncio.gather(*(step(f"module broken{number}\n") for number in range(8)))
