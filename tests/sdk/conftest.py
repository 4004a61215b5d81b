"""What tests of options need."""

import gc

import pytest


@pytest.fixture
def only_lasting_options() -> None:
    """Has the classes of options gone that earlier tests have defined: all that live are known to each pipeline."""
    gc.collect()
