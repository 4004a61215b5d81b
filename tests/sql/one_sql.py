"""The tables of *One SQL to Rule Them All* (SIGMOD 2019), section 6.

`Bid` is the query 7 of Nexmark in the paper's spelling; rows come and the watermark moves as in its example.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

from tests.sql.listings import Arrival, Listing, at


class Bid(NamedTuple):
    """A bid."""

    bidtime: datetime.datetime
    price: int
    item: str


def _bids(*bids: tuple[str, str, int, str]) -> dict[str, list[Arrival]]:
    return {"Bid": [Arrival(clock, Bid(at(time), price, item)) for clock, time, price, item in bids]}


BIDS = _bids(
    ("8:08", "8:07", 2, "A"),
    ("8:12", "8:11", 3, "B"),
    ("8:13", "8:05", 4, "C"),
    ("8:15", "8:09", 5, "D"),
    ("8:17", "8:13", 1, "E"),
    ("8:18", "8:17", 6, "F"),
)
WATERMARK = (("8:07", "8:05"), ("8:14", "8:08"), ("8:16", "8:12"), ("8:21", "8:20"))

QUERY_7 = """SELECT {}
      MaxBid.wstart, MaxBid.wend, Bid.bidtime, Bid.price, Bid.item
    FROM
      Bid,
      (SELECT
         MAX(TumbleBid.price) maxPrice,
         TumbleBid.wstart wstart,
         TumbleBid.wend wend
       FROM
         Tumble(
           data    => TABLE(Bid),
           timecol => DESCRIPTOR(bidtime),
           dur     => INTERVAL '10' MINUTE) TumbleBid
       GROUP BY TumbleBid.wend) MaxBid
    WHERE
      Bid.price = MaxBid.maxPrice AND
      Bid.bidtime >= MaxBid.wend - INTERVAL '10' MINUTE AND
      Bid.bidtime < MaxBid.wend
    {}"""
_TUMBLE = "Tumble(data => TABLE(Bid), timecol => DESCRIPTOR(bidtime), dur => INTERVAL '10' MINUTES)"
_HOP = (
    "Hop(data => TABLE(Bid), timecol => DESCRIPTOR(bidtime), dur => INTERVAL '10' MINUTES, "
    "hopsize => INTERVAL '5' MINUTES)"
)
_AT_16 = "| 08:00 | 08:10 | 08:09 | 5 | D |"
_AT_21 = _AT_16 + "\n| 08:10 | 08:20 | 08:17 | 6 | F |"


def _table(name: str, query: str, expected: str, until: str = "8:21") -> Listing:
    return Listing(name, query, expected, BIDS, until=until, watermark=WATERMARK)


LISTINGS = [
    _table(
        "query 7 at 8:13",
        QUERY_7.format("TABLE", ""),
        "| 08:00 | 08:10 | 08:05 | 4 | C |\n| 08:10 | 08:20 | 08:11 | 3 | B |",
        "8:13",
    ),
    _table("query 7 at 8:21", QUERY_7.format("TABLE", ""), _AT_21),
    _table(
        "Tumble",
        f"SELECT TABLE wstart, wend, bidtime, price, item FROM {_TUMBLE}",
        """
        | 08:00 | 08:10 | 08:07 | 2 | A |
        | 08:10 | 08:20 | 08:11 | 3 | B |
        | 08:00 | 08:10 | 08:05 | 4 | C |
        | 08:00 | 08:10 | 08:09 | 5 | D |
        | 08:10 | 08:20 | 08:13 | 1 | E |
        | 08:10 | 08:20 | 08:17 | 6 | F |
        """,
    ),
    _table(
        "Hop",
        f"SELECT TABLE wstart, wend, bidtime, price, item FROM {_HOP}",
        """
        | 08:00 | 08:10 | 08:07 | 2 | A |
        | 08:05 | 08:15 | 08:07 | 2 | A |
        | 08:05 | 08:15 | 08:11 | 3 | B |
        | 08:10 | 08:20 | 08:11 | 3 | B |
        | 08:00 | 08:10 | 08:05 | 4 | C |
        | 08:05 | 08:15 | 08:05 | 4 | C |
        | 08:00 | 08:10 | 08:09 | 5 | D |
        | 08:05 | 08:15 | 08:09 | 5 | D |
        | 08:05 | 08:15 | 08:13 | 1 | E |
        | 08:10 | 08:20 | 08:13 | 1 | E |
        | 08:10 | 08:20 | 08:17 | 6 | F |
        | 08:15 | 08:25 | 08:17 | 6 | F |
        """,
    ),
    _table(
        "sums of Tumble",
        f"SELECT TABLE wstart, wend, SUM(price) FROM {_TUMBLE} GROUP BY wend",
        "| 08:00 | 08:10 | 11 |\n| 08:10 | 08:20 | 10 |",
    ),
    _table(
        "sums of Hop",
        f"SELECT TABLE wstart, wend, SUM(price) FROM {_HOP} GROUP BY wend",
        """
        | 08:00 | 08:10 | 11 |
        | 08:05 | 08:15 | 15 |
        | 08:10 | 08:20 | 10 |
        | 08:15 | 08:25 | 6  |
        """,
    ),
    _table(
        "EMIT STREAM",
        QUERY_7.format("", "EMIT STREAM"),
        """
        | 08:00 | 08:10 | 08:07 | 2 | A |      | 08:08 | 0 |
        | 08:10 | 08:20 | 08:11 | 3 | B |      | 08:12 | 0 |
        | 08:00 | 08:10 | 08:07 | 2 | A | undo | 08:13 | 1 |
        | 08:00 | 08:10 | 08:05 | 4 | C |      | 08:13 | 2 |
        | 08:00 | 08:10 | 08:05 | 4 | C | undo | 08:15 | 3 |
        | 08:00 | 08:10 | 08:09 | 5 | D |      | 08:15 | 4 |
        | 08:10 | 08:20 | 08:11 | 3 | B | undo | 08:18 | 1 |
        | 08:10 | 08:20 | 08:17 | 6 | F |      | 08:18 | 2 |
        """,
    ),
    # A table of what is emitted has the rows that the watermark has passed, and not all rows at its end.
    *(
        Listing(
            f"EMIT AFTER WATERMARK at {clock}",
            QUERY_7.format("STREAM", "EMIT AFTER WATERMARK"),
            expected,
            BIDS,
            until=clock,
            watermark=WATERMARK,
        )
        for clock, expected in (("8:13", ""), ("8:16", _AT_16), ("8:21", _AT_21))
    ),
    _table(
        "EMIT STREAM AFTER WATERMARK",
        QUERY_7.format("", "EMIT STREAM AFTER WATERMARK"),
        """
        | 08:00 | 08:10 | 08:09 | 5 | D | | 08:16 | 0 |
        | 08:10 | 08:20 | 08:17 | 6 | F | | 08:21 | 0 |
        """,
    ),
    # F comes at the very instant of an emission, and belongs to it.
    _table(
        "EMIT STREAM AFTER DELAY",
        QUERY_7.format("", "EMIT STREAM AFTER DELAY INTERVAL '6' MINUTES"),
        """
        | 08:00 | 08:10 | 08:05 | 4 | C |      | 08:14 | 0 |
        | 08:10 | 08:20 | 08:17 | 6 | F |      | 08:18 | 0 |
        | 08:00 | 08:10 | 08:05 | 4 | C | undo | 08:21 | 1 |
        | 08:00 | 08:10 | 08:09 | 5 | D |      | 08:21 | 2 |
        """,
    ),
]
