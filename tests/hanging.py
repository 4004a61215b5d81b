"""Tests that hang, for tests/test_hanging_tests.py, which runs them in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest


def _waits_for_ever() -> None:
    print("printed by a test that hangs")
    threading.Event().wait()


def test_that_hangs() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]):
        _waits_for_ever()


def test_that_does_not_hang() -> None:
    """Comes before the limit."""


@pytest.mark.spark
def test_whose_worker_hangs(spark: Any) -> None:
    def waits_in_a_worker(element: int) -> int:
        threading.Event().wait()
        return element

    spark.sparkContext.parallelize([1], 1).map(waits_in_a_worker).collect()
