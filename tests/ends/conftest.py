"""Every test in this folder that has the mark ``spark`` uses the one session of the run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
