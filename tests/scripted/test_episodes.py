import json
from collections.abc import Sequence

import pytest

from verilog_taskapp.problems.model import Problem
from verilog_taskapp.scripted import EPISODE_NAMES, EPISODES, EpisodeName, mixed_is_correct
from verilog_taskapp.scripted.designs import Designs, designs_of
from verilog_taskapp.scripted.episodes import choose_episode, malformed

SOLVING = ["write right", "compile", "simulate", "submit"]


@pytest.fixture
def designs(problems: tuple[Problem, ...]) -> Designs:
    return designs_of(problems[1])


def played(episode: EpisodeName, designs: Designs, turns: int = 12) -> list[str]:
    """The tools of an episode in words, up to the first submit."""
    texts = {
        designs.right: "right",
        designs.wrong: "wrong",
        designs.syntax_error: "syntax error",
        designs.missing_port: "missing port",
    }
    words: list[str] = []
    for turn in range(turns):
        answer = EPISODES[episode](designs, turn)
        if answer.broken:
            words.append("broken")
        elif answer.tool == "write_file":
            assert answer.arguments["path"] == "TopModule.v"
            words.append(f"write {texts[answer.arguments['content']]}")
        else:
            words.append(answer.tool or "prose")
        if answer.tool == "submit":
            break
    return words


@pytest.mark.parametrize(
    ("episode", "expected"),
    [
        ("solve", SOLVING),
        ("think", SOLVING),
        ("fenced", SOLVING),
        ("wrong_submitted", ["write wrong", *SOLVING[1:]]),
        ("syntax_error_repaired", ["write syntax error", "compile", *SOLVING]),
        ("missing_port_repaired", ["write missing port", "compile", *SOLVING]),
        ("malformed_json", ["prose", "broken", *SOLVING]),
        ("compile_loop", ["write syntax error", "compile", "compile", "compile", *SOLVING]),
    ],
)
def test_an_episode_plays_its_script(episode: EpisodeName, expected: Sequence[str], designs: Designs) -> None:
    assert played(episode, designs) == expected


@pytest.mark.parametrize("episode", EPISODE_NAMES)
def test_an_episode_fits_into_the_default_number_of_turns_and_goes_on_submitting(
    episode: EpisodeName, designs: Designs
) -> None:
    assert len(played(episode, designs)) <= 10
    assert EPISODES[episode](designs, 24).tool == "submit"


def test_the_text_of_a_call_is_one_json_object(designs: Designs) -> None:
    call = json.loads(EPISODES["solve"](designs, 0).text)
    assert call == {"tool": "write_file", "args": {"path": "TopModule.v", "content": designs.right}}
    assert json.loads(EPISODES["solve"](designs, 1).text) == {"tool": "compile", "args": {}}


def test_think_and_fence_surround_the_call(designs: Designs) -> None:
    thought, _, call = EPISODES["think"](designs, 1).text.partition("</think>")
    assert thought.startswith("<think>")
    assert json.loads(call)["tool"] == "compile"
    assert EPISODES["fenced"](designs, 3).text == '```json\n{"tool": "submit", "args": {}}\n```'


@pytest.mark.parametrize("turn", range(6))
def test_malformed_answers_hold_no_json_object(turn: int, designs: Designs) -> None:
    text = malformed(designs, turn).text
    for at, character in enumerate(text):
        if character == "{":
            with pytest.raises(json.JSONDecodeError):
                json.JSONDecoder(strict=False).raw_decode(text[at:])
    assert ("{" in text) is (turn % 2 == 1)


def test_mixed_follows_the_seed_or_else_the_id() -> None:
    assert [mixed_is_correct("any", seed) for seed in range(4)] == [True, False, True, False]
    ids = [f"Prob{number:03}" for number in range(200)]
    decided = [mixed_is_correct(name) for name in ids]
    assert decided == [mixed_is_correct(name) for name in ids]
    assert 80 <= sum(decided) <= 120


def test_a_mode_chooses_its_episode() -> None:
    assert choose_episode("correct", "p") == "solve"
    assert choose_episode("wrong", "p") == "wrong_submitted"
    assert choose_episode("mixed", "p", seed=2) == "solve"
    assert choose_episode("mixed", "p", seed=3) == "wrong_submitted"
    assert choose_episode("malformed", "p") is None
    assert {choose_episode("demo", "p", position) for position in range(12)} == set(EPISODE_NAMES)
