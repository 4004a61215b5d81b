"""*One SQL to Rule Them All*: each of its tables, row by row."""

from __future__ import annotations

import pytest
from listings import Listing
from one_sql import LISTINGS
from playing import played


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.name)
def test_the_tables_of_one_sql(listing: Listing) -> None:
    assert played(listing) == listing.rows
