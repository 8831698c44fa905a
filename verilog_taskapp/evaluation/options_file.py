"""Reading an evaluation from a TOML file and the command line, with errors that say what to do."""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from verilog_taskapp.evaluation.config import EnvSection, EvalConfig, EvalSection, ModelSpec, PolicySection

SECTIONS: Mapping[str, type[BaseModel]] = {"eval": EvalSection, "policy": PolicySection, "env": EnvSection}
_ALIASES: Mapping[str, Mapping[str, str]] = {"policy": {"model": "models"}}
"""Other names of keys: one model reads better in the singular."""


class WrongOptions(ValueError):
    """The evaluation cannot be run as asked; the message is for the person who wrote it."""


def read_config(path: Path | None, options: Mapping[str, Mapping[str, Any]]) -> EvalConfig:
    """The evaluation of the file `path` with `options` (by section; None: not given) in place of what it says.

    Raises `WrongOptions`.
    """
    given: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    source = "the options"
    if path is not None:
        source = path.name
        given |= _parsed(path)
    for section, chosen in options.items():
        given[section] |= {name: value for name, value in chosen.items() if value is not None}
    if "models" not in given["policy"]:
        raise WrongOptions(
            f'no model: add --model NAME, or models = ["NAME"] below [policy] in {path or "a TOML file"}'
        )
    try:
        return EvalConfig.model_validate(given)
    except ValidationError as error:
        raise WrongOptions(f"{source}: " + "; ".join(_told(one) for one in error.errors())) from None


def _parsed(path: Path) -> dict[str, dict[str, Any]]:
    try:
        with path.open("rb") as file:
            whole = tomllib.load(file)
    except OSError as error:
        raise WrongOptions(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise WrongOptions(f"{path}: not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise WrongOptions(f'{path.name}: not TOML: {error}. Texts need quotes: models = ["NAME"]') from None
    found: dict[str, dict[str, Any]] = {}
    for section, values in whole.items():
        if section not in SECTIONS:
            raise WrongOptions(f"{path.name}: {_unknown(section, SECTIONS)}: the sections are [eval], [policy], [env]")
        if not isinstance(values, dict):
            raise WrongOptions(f"{path.name}: {section} must be a section: write [{section}] on a line of its own")
        aliases: Mapping[str, str] = _ALIASES.get(section, {})
        for name in values:
            if name in aliases and aliases[name] in values:
                raise WrongOptions(f"{path.name}: [{section}] has both {name} and {aliases[name]}: keep one of them")
        found[section] = {aliases.get(name, name): value for name, value in values.items()}
    return found


def _told(error: Any) -> str:
    """One error of pydantic's, with the key's place in the file."""
    section, *rest = [str(part) for part in error["loc"]] or [""]
    place = f"[{section}] {'.'.join(rest)}".strip()
    if error["type"] == "extra_forbidden":
        known: Any = SECTIONS[section].model_fields if section in SECTIONS else SECTIONS
        if section == "policy" and rest[:1] == ["models"]:
            known = ModelSpec.model_fields
        return f"[{section}] {_unknown(rest[-1] if rest else section, known)}: it has {', '.join(known)}"
    message = str(error["msg"]).removeprefix("Value error, ")
    shown = "" if error["type"] in ("missing", "value_error") else f" (got {error['input']!r:.60})"
    return f"{place}: {message}{shown}"


def _unknown(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"unknown {name!r}" + (f", did you mean {close[0]!r}?" if close else "")
