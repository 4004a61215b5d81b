"""What tests of options need."""

import gc

import pytest

from penstock.options.base import list_option_classes


@pytest.fixture
def only_lasting_options() -> None:
    """Has the classes of options gone that earlier tests have defined: all that live are known to each pipeline."""
    # Behind thousands of other tests, this takes a second.
    if any("<locals>" in each.__qualname__ for each in list_option_classes()):
        gc.collect()
