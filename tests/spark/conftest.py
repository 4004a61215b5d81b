"""Every test in this folder may use Spark, through the one session of the run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.error import UnsupportedByRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent
_HERE_ON = f"{_HERE}{os.sep}"


ON_CONNECT = frozenset(
    {
        "test_combine",
        "test_grouping",
        "test_io_pipelines",
        "test_joins",
        "test_metrics_on_spark",
        "test_pardo",
        "test_side_inputs",
        "test_state_and_timers",
        "test_windowing",
    }
)
"""The modules whose tests pass in a session of Spark Connect, except those of streams. Others were not tried there,
or look into Java."""

STREAMS_ON_CONNECT = frozenset(
    {
        "test_the_book_s_attribution[streaming]",
        "test_the_book_s_attribution[micro_batch]",
        "test_state_outlives_a_restart_is_a_table_and_is_not_read_as_something_else",
        "test_batches_and_duplicates_of_a_stream",
    }
)
"""The tests of these modules that run a stream, which a session of Spark Connect refuses."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_HERE_ON):
            item.add_marker(pytest.mark.spark)
            if config.getoption("--connect") and item.path.stem not in ON_CONNECT:
                item.add_marker(pytest.mark.skip(reason="not known to pass in a session of Spark Connect"))
            elif config.getoption("--connect") and item.name in STREAMS_ON_CONNECT:
                reason = "a stream does not run in a session of Spark Connect yet"
                item.add_marker(pytest.mark.xfail(strict=True, raises=UnsupportedByRunner, reason=reason))


@pytest.fixture(scope="session", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Starts the session before the first test, so that every pipeline of this folder runs in it."""
