"""Lets the tests of this folder import its modules, and some of the machines' and the runner's tests."""

from __future__ import annotations

import sys
from pathlib import Path

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(_TESTS / name) for name in ("shards", "machines", "runner")]
