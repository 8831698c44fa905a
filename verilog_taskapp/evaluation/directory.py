"""The directory of an evaluation: its configuration, its samples, and what is made of them.

config.json     what was asked, and by which versions it was answered; written first, checked on resume
results.jsonl   one line per sample
summary.json, summary.csv, report.html      made from the two above
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from verilog_taskapp.evaluation.backend import Versions
from verilog_taskapp.evaluation.config import (
    EvalConfig,
    JudgeName,
    how_it_is_run,
    what_is_measured,
    without_secrets,
)
from verilog_taskapp.evaluation.journal import RESULTS_FILE, JournalFault, read_samples, write_atomically
from verilog_taskapp.evaluation.samples import Sample
from verilog_taskapp.problems.problem_set import ProblemSet
from verilog_taskapp.settings import Settings

CONFIG_FILE = "config.json"
FORMAT = 1
"""Changes whenever an older directory could not be read any more."""
MATTERS = (
    *("errata", "dataset_columns", "max_instances", "temperature", "max_tokens", "max_steps", "file_preview_chars"),
    *("reward_compile_success", "reward_simulate_pass", "reward_submit_pass", "reward_step_penalty", "reward_partial"),
    *("feedback", "compile_message_chars", "design_output_chars", "waveform_rows", "default_model", "inference_url"),
    *("compile_cpu_s", "run_cpu_s", "wall_factor", "address_space_bytes", "file_size_bytes", "sandbox"),
)
"""Settings of this process on which a sample depends when it is drawn here."""


class WrongDirectory(ValueError):
    """A directory cannot be used as asked; the message says what to do."""


class Saved(BaseModel):
    """``config.json``."""

    model_config = ConfigDict(frozen=True)

    format: int
    what: dict[str, Any]
    """The configuration as far as samples depend on it."""
    how: dict[str, Any]
    """The rest of it."""
    dataset: dict[str, Any]
    """The problem set: where it came from, its hash, the ids."""
    versions: dict[str, str]
    settings: dict[str, Any]
    regraded: dict[str, Any] | None = None
    """Set in a directory that `regrade` wrote."""

    @property
    def models(self) -> tuple[str, ...]:
        """Titles, in their order."""
        return tuple(str(one["label"] or one["name"]) for one in self.what["policy"]["models"])

    @property
    def judges(self) -> tuple[JudgeName, ...]:
        """The first decides."""
        chosen = self.what["eval"]["judge"]
        return ("golden", "classic") if chosen == "both" else (chosen,)


def saved(config: EvalConfig, settings: Settings, problems: ProblemSet, ids: list[str], versions: Versions) -> Saved:
    """What is written before the first sample is drawn."""
    here = settings.model_dump(mode="json", include=set(MATTERS))
    here["inference_url"] = without_secrets(settings.inference_url)
    drawn_here = config.eval.server is None or config.eval.mode == "single-shot"
    return Saved(
        format=FORMAT,
        what=what_is_measured(config),
        how=how_it_is_run(config),
        dataset={
            "source": config.eval.dataset or settings.dataset,
            "id": problems.id,
            "fingerprint": problems.fingerprint,
            "problems": ids,
        },
        versions=asdict(versions),
        settings=here if drawn_here else {},
    )


def begin(folder: Path, new: Saved, *, resume: bool) -> None:
    """Make the directory ready: a new one, or one that holds exactly this evaluation if it is to be resumed.

    Raises `WrongDirectory` and OSError.
    """
    path = folder / CONFIG_FILE
    if path.exists():
        if not resume:
            raise WrongDirectory(
                f"{folder} already holds an evaluation: add --resume to go on with it, or choose another --out"
            )
        different = differences(load(folder), new)
        if different:
            raise WrongDirectory(
                f"{folder} holds another evaluation: {'; '.join(different)}. Give the same options to resume it, or "
                "choose another --out"
            )
    elif (folder / RESULTS_FILE).exists():
        raise WrongDirectory(f"{folder} holds {RESULTS_FILE} but no {CONFIG_FILE}: choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, new.model_dump_json(indent=2) + "\n")


def differences(old: Saved, new: Saved) -> list[str]:
    """Every value on which samples depend that is not the same, in words."""
    found: list[str] = []
    parts = ("what", "dataset", "versions", "settings")
    for part in parts:
        _compare(getattr(old, part), getattr(new, part), "" if part == "what" else part, found)
    return found


def _compare(old: Any, new: Any, place: str, found: list[str]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            _compare(old.get(name), new.get(name), f"{place}.{name}".lstrip("."), found)
    elif old != new:
        found.append(f"{place} was {_shown(old)} and is now {_shown(new)}")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def load(folder: Path) -> Saved:
    """The configuration in a directory. Raises `WrongDirectory`."""
    path = folder / CONFIG_FILE
    try:
        found = Saved.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise WrongDirectory(f"{folder} is not the directory of an evaluation: there is no {CONFIG_FILE}") from None
    except (OSError, ValidationError) as error:
        raise WrongDirectory(f"{path} cannot be read: {type(error).__name__}") from error
    if found.format != FORMAT:
        raise WrongDirectory(f"{path} is of format {found.format}; this version reads {FORMAT}")
    return found


def samples_in(folder: Path, config: Saved) -> list[Sample]:
    """The samples of a directory in the order of models, problems and numbers, whatever order they were finished in.

    Raises `WrongDirectory`.
    """
    try:
        samples, _ = read_samples(folder / RESULTS_FILE)
    except FileNotFoundError:
        raise WrongDirectory(f"{folder} holds no {RESULTS_FILE}: no sample was finished") from None
    except (OSError, JournalFault) as error:
        raise WrongDirectory(str(error)) from error
    return in_order(samples, config)


def in_order(samples: list[Sample], config: Saved) -> list[Sample]:
    """Samples of the evaluation in its own order."""
    models = {name: number for number, name in enumerate(config.models)}
    problems = {name: number for number, name in enumerate(config.dataset["problems"])}
    known = [one for one in samples if one.model in models and one.problem in problems]
    return sorted(known, key=lambda one: (models[one.model], problems[one.problem], one.sample))
