"""The programs of the benchmarks, as tests run them: with tiny inputs, and what they have written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

_SECONDS_MAX = 600
_QUICK_START = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Several Javas start for a few small jobs: this halves what that takes."""

TAKES_MINUTES = pytest.mark.skipif(
    not os.environ.get("PENSTOCK_BENCHMARKS"),
    reason="takes a while: set PENSTOCK_BENCHMARKS=1 to see that the benchmarks still run",
)

Load = Callable[[str], ModuleType]
"""Imports a module of the benchmarks."""


def numbers_of(program: str, folder: Path, *options: str) -> tuple[Any, str]:
    """The numbers that a program has written, and what it has printed."""
    results = folder / "numbers.json"
    printed = run_program(program, folder, *options, f"--results={results}")
    return json.loads(results.read_text()), printed


def run_program(program: str, folder: Path, *options: str) -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / program), *options, f"--folder={folder}"],
        env={**os.environ, **_QUICK_START},
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
