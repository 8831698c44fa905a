"""Evaluations over the bundled problems, with the real judge and the scripted model."""

from pathlib import Path

import pytest

from tests.support import Model, settings_in
from verilog_taskapp.problems.load import load_problem_set
from verilog_taskapp.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, golden_cache: Path) -> Settings:
    """Those of this process: short limits, bundled problems."""
    return settings_in(tmp_path, cache_dir=golden_cache, run_cpu_s=1.0, wall_factor=60.0, inference_retries=0)


@pytest.fixture
def model(settings: Settings) -> Model:
    """The scripted model, which solves every other seed."""
    return Model(load_problem_set(settings), mode="mixed")
