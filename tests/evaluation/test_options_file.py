"""An evaluation's options from TOML and from the command line; every error says what to do."""

from pathlib import Path

import pytest

from verilog_taskapp.evaluation.config import how_it_is_run, what_is_measured
from verilog_taskapp.evaluation.options_file import WrongOptions, read_config

EXAMPLE = Path(__file__).parents[2] / "examples" / "eval.toml"


def written(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text)
    return path


def test_a_file_with_several_models(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [eval]
        n = 20
        k = [10, 1, 5, 5]
        mode = "single-shot"
        [policy]
        models = ["a", {name = "b", label = "b cold", temperature = 0.0, price_in = 2.0}]
        temperature = 0.8
        inference_url = "http://user:secret@host/v1?api-key=secret"
        [env]
        feedback = "waveform"
        rewards = {partial = 0.5}
        """,
    )
    config = read_config(path, {})
    assert (config.eval.n, config.eval.k, config.eval.mode) == (20, (1, 5, 10), "single-shot")
    assert [one.title for one in config.policy.models] == ["a", "b cold"]
    assert [config.policy.of(one).temperature for one in config.policy.models] == [0.8, 0.0]
    assert config.env.rewards.partial == 0.5
    assert "secret" not in str(what_is_measured(config)) + str(how_it_is_run(config))
    assert how_it_is_run(config)["prices"]["b cold"] == {"price_in": 2.0, "price_out": None}


def test_options_win_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '[eval]\nn = 5\nseed = 7\n[policy]\nmodel = "a"\n')
    config = read_config(path, {"eval": {"n": 9, "seed": None}, "policy": {"models": ["b", "c"]}})
    assert (config.eval.n, config.eval.seed) == (9, 7)
    assert [one.name for one in config.policy.models] == ["b", "c"]


def test_the_example_is_valid_and_names_every_key_that_it_explains() -> None:
    assert read_config(EXAMPLE, {}).eval.n == 20


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[eval]\nn = 3\n", "no model: add --model NAME, or models"),
        ("[eval]\nsamples = 3\n[policy]\nmodel = 'm'\n", "[eval] unknown 'samples': it has dataset, split"),
        ("[eval]\nretry = 3\n[policy]\nmodel = 'm'\n", "did you mean 'retries'?"),
        ("[evaluation]\nn = 3\n", "the sections are [eval], [policy], [env]"),
        ("[eval]\nn = 'three'\n[policy]\nmodel = 'm'\n", "[eval] n: Input should be a valid integer"),
        (
            "[eval]\nn = 3\nk = [1, 5]\n[policy]\nmodel = 'm'\n",
            "pass@5 needs at least 5 samples of each problem: n is 3",
        ),
        ("[eval]\nmode = 'chat'\n[policy]\nmodel = 'm'\n", "Input should be 'agent' or 'single-shot' (got 'chat')"),
        ("[policy]\nmodel = m\n", "not TOML"),
        ("[policy]\nmodel = 'm'\nmodels = ['n']\n", "has both model and models: keep one of them"),
        ("[policy]\nmodels = ['m', 'm']\n", "give one of them a label"),
        ("[policy]\nmodels = [{name = 'm', temprature = 1.0}]\n", "did you mean 'temperature'?"),
        ("[policy]\nmodel = 'm'\napi_key_env = 'sk-123'\n", "api_key_env"),
        ("eval = 3\n", "eval must be a section: write [eval] on a line of its own"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(WrongOptions) as error:
        read_config(written(tmp_path, text), {})
    assert told in str(error.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(WrongOptions, match="No such file"):
        read_config(Path("nowhere.toml"), {})
