"""Settings: where a value comes from, which wins, what does not fit, and that no secret is ever printed."""

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError
from pydantic_settings import SettingsError

from tests.support import forget_settings
from verilog_taskapp.settings import Settings, load_settings

SECRET = "secret-0123456789"


@pytest.fixture(autouse=True)
def _empty_folder_and_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)


def written(tmp_path: Path, text: str, name: str = ".env") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_everything_has_a_default() -> None:
    settings = Settings()
    assert (settings.host, settings.port, settings.dataset) == ("127.0.0.1", 8103, "bundled")
    assert settings.server_keys == ()
    assert settings.no_auth is False
    assert (settings.temperature, settings.max_tokens, settings.max_steps) == (0.2, 768, 10)
    assert settings.inference_url == "https://api.groq.com/openai/v1/chat/completions"
    assert settings.default_model == "qwen/qwen3-32b"
    rewards = (settings.reward_compile_success, settings.reward_simulate_pass, settings.reward_submit_pass)
    assert (*rewards, settings.reward_step_penalty, settings.reward_partial) == (0.1, 1.0, 10.0, -0.01, 0.0)


def test_settings_do_not_change_once_read() -> None:
    with pytest.raises(ValidationError):
        setattr(Settings(), "port", 1)  # noqa: B010 - mypy would not let it pass otherwise


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("VERILOG_PORT", "9000", "port", 9000),
        ("verilog_port", "9000", "port", 9000),
        ("VERILOG_NO_AUTH", "true", "no_auth", True),
        (
            "VERILOG_CORS_ORIGINS",
            "https://a.test, https://b.test,",
            "cors_origins",
            ("https://a.test", "https://b.test"),
        ),
        ("VERILOG_INFERENCE_HOSTS", "*.test", "inference_hosts", ("*.test",)),
        ("VERILOG_INFERENCE_KEY_ENVS", " ", "inference_key_envs", ()),
        ("VERILOG_DATASET_COLUMNS", '{"problem_id": "task"}', "dataset_columns", {"problem_id": "task"}),
        ("VERILOG_MAX_INSTANCES", "5", "max_instances", 5),
        ("VERILOG_MAX_INSTANCES", "", "max_instances", None),
        ("VERILOG_COMPILE_CPU_S", "1", "compile_cpu_s", 1.0),
        ("VERILOG_SCRATCH_DIR", "/somewhere", "scratch_dir", Path("/somewhere")),
        ("VERILOG_FEEDBACK", "waveform", "feedback", "waveform"),
        ("TASKAPP_TRACING_ENABLED", "0", "tracing_enabled", False),
        ("GROQ_API_KEY", SECRET, "groq_api_key", SecretStr(SECRET)),
        ("OPENAI_API_KEY", SECRET, "openai_api_key", SecretStr(SECRET)),
    ],
)
def test_a_variable_sets_its_field(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, field: str, expected: Any
) -> None:
    monkeypatch.setenv(variable, value)
    assert getattr(Settings(), field) == expected


@pytest.mark.parametrize(
    ("variable", "value", "field"),
    [
        ("VERILOG_PORT", "many", "port"),
        ("VERILOG_PORT", "70000", "port"),
        ("VERILOG_LOG_LEVEL", "loud", "log_level"),
        ("VERILOG_FEEDBACK", "all", "feedback"),
        ("VERILOG_NO_AUTH", "perhaps", "no_auth"),
        ("VERILOG_MAX_STEPS", "26", "max_steps"),
        ("VERILOG_MAX_STEPS", "0", "max_steps"),
        ("VERILOG_MAX_INSTANCES", "0", "max_instances"),
        ("VERILOG_TEMPERATURE", "-1", "temperature"),
        ("VERILOG_COMPILE_CPU_S", "0", "compile_cpu_s"),
        ("VERILOG_WALL_FACTOR", "1", "wall_factor"),
        ("VERILOG_MAX_ROLLOUTS", "0", "max_rollouts"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_the_name_of_its_field(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, field: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValidationError) as refused:
        load_settings()
    assert [error["loc"] for error in refused.value.errors()] == [(field,)]


def test_a_map_that_is_no_json_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_DATASET_COLUMNS", "problem_id=task")
    with pytest.raises(SettingsError, match="dataset_columns"):
        load_settings()


def test_other_variables_of_the_same_prefix_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_SOMETHING_ELSE", "1")
    assert load_settings() == Settings()


def test_arguments_win_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "VERILOG_PORT=1\nVERILOG_HOST=::1\nVERILOG_DATASET=dir:file\nENVIRONMENT_API_KEY=file-key\n")
    assert (load_settings().port, load_settings().host) == (1, "::1")
    monkeypatch.setenv("VERILOG_PORT", "2")
    monkeypatch.setenv("VERILOG_DATASET", "dir:environment")
    monkeypatch.setenv("ENVIRONMENT_API_KEY", "environment-key")
    settings = load_settings(dataset="dir:argument", environment_api_key="argument-key", host=None)
    assert (settings.port, settings.host, settings.dataset) == (2, "::1", "dir:argument")
    assert settings.server_keys == ("argument-key",)
    assert load_settings().server_keys == ("environment-key",)


def test_an_empty_variable_is_no_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "VERILOG_PORT=1\nENVIRONMENT_API_KEY=file-key\n")
    monkeypatch.setenv("VERILOG_PORT", "")
    monkeypatch.setenv("ENVIRONMENT_API_KEY", "")
    assert (load_settings().port, load_settings().server_keys) == (1, ("file-key",))


def test_a_named_file_is_read_instead_and_must_exist(tmp_path: Path) -> None:
    written(tmp_path, "VERILOG_PORT=1\n")
    other = written(tmp_path, "VERILOG_HOST=::1\n", "other.env")
    settings = load_settings(other)
    assert (settings.port, settings.host) == (8103, "::1")
    with pytest.raises(FileNotFoundError, match="no such env file"):
        load_settings(tmp_path / "missing.env")


def test_loading_leaves_the_environment_alone(tmp_path: Path) -> None:
    written(tmp_path, "VERILOG_PORT=1\nOWN_KEY=x\nVERILOG_INFERENCE_KEY_ENVS=OWN_KEY\n")
    before = dict(os.environ)
    load_settings()
    assert dict(os.environ) == before


@pytest.mark.parametrize("where", ["environment", "file"])
def test_the_development_key_counts_only_while_the_key_is_unset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setenv("DEV_ENVIRONMENT_API_KEY", "dev-key")
    assert load_settings().server_keys == ("dev-key",)
    if where == "file":
        written(tmp_path, "ENVIRONMENT_API_KEY=real-key\n")
    else:
        monkeypatch.setenv("ENVIRONMENT_API_KEY", "real-key")
    assert load_settings().server_keys == ("real-key",)


@pytest.mark.parametrize(
    ("key", "aliases", "expected"),
    [
        ("a", "b, c ,,b", ("a", "b", "c")),
        ("a", "a", ("a",)),
        (" a ", "", ("a",)),
        ("  ", None, ()),
        (None, "b", ("b",)),
    ],
)
def test_keys_are_split_trimmed_and_counted_once(
    key: str | None, aliases: str | None, expected: tuple[str, ...]
) -> None:
    settings = Settings.model_validate({"environment_api_key": key, "environment_api_key_aliases": aliases})
    assert settings.server_keys == expected


def test_keys_by_name_come_from_the_listed_variables_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "FILE_KEY=from-file\nBOTH_KEY=from-file\nOTHER_KEY=never\n")
    monkeypatch.setenv("BOTH_KEY", "from-environment")
    monkeypatch.setenv("EMPTY_KEY", "")
    monkeypatch.setenv("UPSTREAM_KEY", "upstream")
    settings = load_settings(
        inference_key_envs="FILE_KEY,BOTH_KEY,EMPTY_KEY,MISSING_KEY", proxy_api_key_env="UPSTREAM_KEY"
    )
    assert {name: key.get_secret_value() for name, key in settings.named_keys.items()} == {
        "FILE_KEY": "from-file",
        "BOTH_KEY": "from-environment",
        "UPSTREAM_KEY": "upstream",
    }


def test_no_secret_is_ever_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENVIRONMENT_API_KEY", "ENVIRONMENT_API_KEY_ALIASES", "GROQ_API_KEY", "OPENAI_API_KEY", "OWN_KEY"):
        monkeypatch.setenv(name, f"{SECRET}-{name}")
    settings = load_settings(inference_key_envs="OWN_KEY")
    assert len(settings.server_keys) == 2
    assert "OWN_KEY" in settings.named_keys
    for shown in (repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert SECRET not in shown


def test_paths_may_start_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("VERILOG_CACHE_DIR", "~/cache")
    assert load_settings().cache_dir == tmp_path / "cache"
    monkeypatch.delenv("VERILOG_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert load_settings().cache_dir == tmp_path / ".cache" / "verilog-taskapp"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert load_settings().cache_dir == tmp_path / "xdg" / "verilog-taskapp"
