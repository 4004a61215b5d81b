"""Every example runs on Spark, in the one session of the run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent
_HERE_ON = f"{_HERE}{os.sep}"
_EXAMPLES = _HERE.parents[1] / "examples"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_HERE_ON):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def _active_session(spark: SparkSession) -> None:
    """Starts the session before the first test, so that every pipeline of this folder runs in it."""


@pytest.fixture(autouse=True)
def _import_as_a_program_does(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Puts the examples' folders on the path for the test, and forgets their modules after it."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(_EXAMPLES / "cookbook")
    monkeypatch.syspath_prepend(_EXAMPLES)
    yield
    for name in set(sys.modules) - before:
        if _EXAMPLES in Path(getattr(sys.modules[name], "__file__", None) or "/").parents:
            del sys.modules[name]
