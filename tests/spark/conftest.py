"""Every test in this folder may use Spark, through the one session of the run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent
# Tests import the program that they kill, and workers what that has defined; and expressions of SQL by chance.
sys.path[:0] = [str(_HERE), str(_HERE.parent / "sdk" / "sql"), str(_HERE.parent / "runner")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Starts the session before the first test, so that every pipeline of this folder runs in it."""
