"""*Streaming Systems*, chapter 9, as queries: each listing, row by row."""

from __future__ import annotations

import pytest

from tests.sql.book_chapter_9 import LISTINGS
from tests.sql.listings import Listing
from tests.sql.playing import played


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.name)
def test_the_listings_of_chapter_9(listing: Listing) -> None:
    assert played(listing) == listing.rows
