"""Lets the tests of this folder import its modules that are not tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
