"""The fuzzers share what makes their inputs and what judges the outcomes."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).parent
# Some of them use the plans and the folders of the tests of checkpoints.
sys.path[:0] = [str(_HERE), str(_HERE.parent / "runner")]
