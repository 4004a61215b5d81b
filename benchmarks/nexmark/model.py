"""The events of the auction house: persons, auctions and bids, and the lines of JSON that they are written as.

Times are in milliseconds since 1970, and prices in cents.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Person(NamedTuple):
    """Somebody who sells or bids, at the time of joining."""

    time: int
    id: int
    name: str
    email: str
    card: str
    city: str
    state: str
    extra: str


class Auction(NamedTuple):
    """Something that is for sale from a time until it expires, both included."""

    time: int
    id: int
    item: str
    description: str
    initial_bid: int
    reserve: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(NamedTuple):
    """A price that a person offers in an auction."""

    time: int
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    extra: str


Event = Person | Auction | Bid

KINDS: dict[str, Any] = {"person": Person, "auction": Auction, "bid": Bid}
"""The kinds of events, by the names that lines have for them."""

END = 999_999_999_999
"""The number of everybody and everything in the events that end a stream."""

_NAMES = {kind: name for name, kind in KINDS.items()}
_TIME_STARTS = len('{"time": ')


def to_line(event: Event) -> str:
    """An event as a line; its time comes first, and so can be read without the rest.

    >>> to_line(Bid(1500, 7, 8, 99, "web", "http://a.b", ""))[:40]
    '{"time": 1500, "kind": "bid", "auction":'
    """
    fields = event._asdict()
    return json.dumps({"time": fields.pop("time"), "kind": _NAMES[type(event)], **fields})


def parse(line: str) -> Event:
    """The event of a line; what Python does for each contender."""
    fields = json.loads(line)
    event: Event = KINDS[fields.pop("kind")](**fields)
    return event


def time_of(line: str) -> int:
    """The time of a line, in milliseconds."""
    return int(line[_TIME_STARTS : line.index(",")])
