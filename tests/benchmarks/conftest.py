"""Lets the tests of this folder import the modules of the benchmarks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pytest

from tests.benchmarks.benchmark_programs import BENCHMARKS, Load


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Imports a module of the benchmarks, which import each other by their bare names, as programs do."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
