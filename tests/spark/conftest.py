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


ON_CONNECT = frozenset(
    {
        "test_available_now",
        "test_big_groups",
        "test_bundle_finalizers",
        "test_combine",
        "test_combiners",
        "test_connect_servers",
        "test_dead_letters",
        "test_exact_division",
        "test_grouping",
        "test_io_pipelines",
        "test_joins",
        "test_metrics_on_spark",
        "test_pardo",
        "test_regex",
        "test_runtime_type_checks",
        "test_side_inputs",
        "test_state_and_timers",
        "test_streams",
        "test_triggers_in_batch",
        "test_util",
        "test_what_dofns_return",
        "test_windowing",
    }
)
"""The modules whose tests pass in a session of Spark Connect. Others were not tried there, or look into Java."""

ALL = "PENSTOCK_TESTS_ALL_ON_CONNECT"
"""The environment variable with which ``--connect`` also runs all other modules."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_HERE_ON):
            item.add_marker(pytest.mark.spark)
            if config.getoption("--connect") and item.path.stem not in ON_CONNECT and ALL not in os.environ:
                item.add_marker(pytest.mark.skip(reason="not known to pass in a session of Spark Connect"))


@pytest.fixture(scope="session", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Starts the session before the first test, so that every pipeline of this folder runs in it."""
