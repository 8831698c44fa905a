"""``doctor``: what works here."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from verilog_taskapp.cli import doctor
from verilog_taskapp.icarus.toolchain import Toolchain


def checks(text: str) -> dict[str, Any]:
    return {one["name"]: one for one in json.loads(text)["checks"]}


def test_all_is_well(cli: Cli) -> None:
    outcome = cli("doctor", "--json")
    assert (outcome.status, outcome.stderr) == (0, "")
    assert json.loads(outcome.stdout)["ok"] is True
    found = checks(outcome.stdout)
    for name in ("python", "iverilog", "vvp", "self test", "scratch folder", "cache folder", "datasets library"):
        assert found[name]["health"] == "ok", found[name]
    assert found["problem set"]["detail"].startswith("bundled: ")


def test_keys_are_told_as_set_or_not(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVIRONMENT_API_KEY", "server-secret")
    monkeypatch.setenv("GROQ_API_KEY", "groq-secret")
    monkeypatch.setenv("VERILOG_INFERENCE_KEY_ENVS", "MY_KEY,OTHER_KEY")
    monkeypatch.setenv("MY_KEY", "my-secret")
    outcome = cli("doctor", "--json")
    assert "-secret" not in outcome.stdout + outcome.stderr
    found = checks(outcome.stdout)
    assert found["server key"]["detail"] == "set"
    told = {name: found[f"provider key {name}"]["detail"] for name in ("GROQ_API_KEY", "OPENAI_API_KEY", "MY_KEY")}
    assert told == {"GROQ_API_KEY": "set", "OPENAI_API_KEY": "not set", "MY_KEY": "set"}
    assert found["provider key OTHER_KEY"]["detail"] == "not set"


def test_no_server_key_is_a_warning(cli: Cli) -> None:
    outcome = cli("doctor")
    assert outcome.status == 0
    line = next(line for line in outcome.stdout.splitlines() if line.startswith("server key"))
    assert "warning" in line
    assert "ENVIRONMENT_API_KEY" in line


def test_no_simulator(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_IVERILOG", "/nowhere/iverilog")
    outcome = cli("doctor", "--json")
    assert outcome.status == 1
    assert json.loads(outcome.stdout)["ok"] is False
    assert "install it" in checks(outcome.stdout)["iverilog"]["detail"]
    assert "something that is needed is broken" in cli("doctor").stdout


def test_a_simulator_that_does_not_work(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (("iverilog", 'echo "Icarus Verilog version 12.0 (stable)"'), ("vvp", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("VERILOG_IVERILOG", str(tmp_path / "iverilog"))
    outcome = cli("doctor", "--json")
    assert outcome.status == 1
    assert checks(outcome.stdout)["self test"]["health"] == "broken"


def test_a_set_that_cannot_be_loaded(cli: Cli) -> None:
    outcome = cli("doctor", "--json", "--dataset", "dir:nowhere")
    assert outcome.status == 1
    assert checks(outcome.stdout)["problem set"]["health"] == "broken"
    assert checks(outcome.stdout)["self test"]["health"] == "ok"


def test_skipped_rows_are_a_warning(cli: Cli, source: str) -> None:
    found = checks(cli("doctor", "--json").stdout)["problem set"]
    assert found["health"] == "warning"
    assert "1 rows skipped" in found["detail"]


def test_folders_that_cannot_be_used(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VERILOG_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("VERILOG_SCRATCH_DIR", str(tmp_path / "file" / "scratch"))
    outcome = cli("doctor", "--json")
    assert outcome.status == 1
    assert checks(outcome.stdout)["cache folder"]["health"] == "warning"
    assert checks(outcome.stdout)["scratch folder"]["health"] == "broken"


def test_an_env_file_that_does_not_exist(cli: Cli) -> None:
    outcome = cli("doctor", "--env-file", "nowhere.env")
    assert (outcome.status, outcome.stderr) == (2, "error: no such env file: nowhere.env\n")


@pytest.mark.parametrize(
    ("major", "legacy", "told"),
    [
        (11, False, ["T'(x)"]),
        (12, False, ["break"]),
        (13, False, ["enum", "classic"]),
        (13, True, ["enum"]),
        (14, True, []),
    ],
)
def test_versions_are_explained(major: int, legacy: bool, told: list[str]) -> None:
    tools = Toolchain(Path("/bin/iverilog"), Path("/bin/vvp"), major, 0, legacy)
    compiler, _, *notes = doctor._about(tools)
    assert compiler.health == ("ok" if tools.supported else "warning")
    assert len(notes) == len(told)
    assert all(word in note.detail for word, note in zip(told, notes, strict=True))


def test_the_sandbox_in_force_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "seccomp" in checks(cli("doctor", "--json").stdout)["sandbox"]["detail"]
    monkeypatch.setenv("VERILOG_SANDBOX", "limits")
    assert checks(cli("doctor", "--json").stdout)["sandbox"]["health"] == "warning"


def test_what_is_recorded_is_told(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOG_MAX_INSTANCES", "2")
    monkeypatch.setenv("VERILOG_CACHE_DIR", str(tmp_path / "fresh"))
    before = checks(cli("doctor", "--json").stdout)["golden traces"]["detail"]
    assert before.startswith("0 public and 0 secret stimuli of 2 problems")
    assert json.loads(cli("check", "--record", "--json").stdout)["secret_stimuli_recorded"] == 8
    after = checks(cli("doctor", "--json").stdout)["golden traces"]["detail"]
    assert after.startswith("2 public and 8 secret stimuli of 2 problems")
