"""Lets the tests of this folder import its modules that are not tests."""

import gc
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def only_lasting_options() -> None:
    """Has the classes of options gone that earlier tests have defined: all that live are known to each pipeline."""
    gc.collect()
