"""Lets the tests of this folder import its modules, and the toy of Spark's aggregate."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runner"))
sys.path.insert(0, str(Path(__file__).parent))
