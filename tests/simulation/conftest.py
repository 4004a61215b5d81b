"""Lets the tests of this folder import its modules, and keeps lists in segments that would be too short for that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock_spark.stream import segments

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def short_lists_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs have few elements: a list of three small numbers is kept in segments."""
    monkeypatch.setattr(segments, "SEAL_BYTES", 12)
