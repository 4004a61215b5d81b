"""Lets the tests of this folder import its modules, and the query without Spark."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "shards")]
