"""Beam's suites of triggers, state, windows, side inputs, combiners, files and data frames, unchanged, on Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("apache_beam")
sys.path.append(str(Path(__file__).parent))
from beams_tests import cases_of, is_marked

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.filterwarnings("ignore")]

MODULES = [
    "dataframe.transforms_test",
    "io.fileio_test",
    "testing.test_stream_test",
    "transforms.combiners_test",
    "transforms.sideinputs_test",
    "transforms.trigger_test",
    "transforms.userstate_test",
    "transforms.window_test",
]

MISSES: dict[str, str] = {}


def is_for_runners(test: Any) -> bool:
    """Whether a test is about pipelines, and not one of those that validate every runner, which run every day."""
    return not is_marked(test, "it_validatesrunner")


globals().update(cases_of(MODULES, is_for_runners, MISSES))
