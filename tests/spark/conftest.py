"""Every test in this folder may use Spark, through the one session of the run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent
_HERE_ON = f"{_HERE}{os.sep}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_HERE_ON):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Starts the session before the first test, so that every pipeline of this folder runs in it."""
