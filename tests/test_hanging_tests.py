"""A test that hangs ends its process, which says what all of its threads wait for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.config import ExitCode

_PROGRAM = Path(__file__).with_name("hanging.py")


def run(test: str, seconds: float, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a test of `_PROGRAM` in a pytest of its own, in which a test hangs after `seconds`."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"{_PROGRAM}::{test}", *arguments]
    environment = {**os.environ, "PENSTOCK_TESTS_HANG_SECONDS": str(seconds)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_a_test_that_hangs_ends_with_the_stacks_of_its_threads() -> None:
    ended = run("test_that_hangs", 0.5)
    assert ended.returncode == 1
    assert "test_that_hangs has not ended for 0.5 s, so its process ends:\n" in ended.stderr
    assert "in _waits_for_ever" in ended.stderr
    assert "printed by a test that hangs" in ended.stderr


def test_a_test_that_does_not_hang_is_left_alone() -> None:
    assert run("test_that_does_not_hang", 60).returncode == ExitCode.OK


@pytest.mark.soak
@pytest.mark.spark
def test_a_test_that_hangs_shows_what_java_and_a_worker_wait_for() -> None:
    ended = run("test_whose_worker_hangs", 120)
    assert ended.returncode == 1
    assert "in waits_in_a_worker" in ended.stderr
    assert "Full thread dump" in ended.stderr
