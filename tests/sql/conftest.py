"""Lets the tests of this folder import its modules, and the engines without Spark of other folders."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path[:0] = [str(_HERE), *(str(_HERE.parent / name) for name in ("shards", "runner", "machines"))]
