"""The queries in the plainest Python: all events in a list, no windows but by arithmetic.

Each returns the rows of a query's answer as tuples, in any order. ``queries`` says in words what a query asks for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from nexmark.model import Auction, Bid, Event, Person
from nexmark.settings import (
    AUCTION_STEP,
    CATEGORY,
    EURO_PER_MILLE,
    HOT_PERIOD,
    LAST_AUCTIONS,
    SESSION_GAP,
    STATES,
    TOP_BIDS,
    WINDOW,
    WINNING_PERIOD,
)

Row = tuple[Any, ...]
Kind = TypeVar("Kind", Person, Auction, Bid)


def q0(events: list[Event]) -> Iterable[Row]:
    return _all(Bid, events)


def q1(events: list[Event]) -> Iterable[Row]:
    for bid in _all(Bid, events):
        yield bid.auction, bid.bidder, bid.price * EURO_PER_MILLE // 1_000, bid.time


def q2(events: list[Event]) -> Iterable[Row]:
    return [(bid.auction, bid.price) for bid in _all(Bid, events) if bid.auction % AUCTION_STEP == 0]


def q3(events: list[Event]) -> Iterable[Row]:
    persons = {person.id: person for person in _all(Person, events) if person.state in STATES}
    for auction in _all(Auction, events):
        if auction.category == CATEGORY and auction.seller in persons:
            person = persons[auction.seller]
            yield person.name, person.city, person.state, auction.id


def q4(events: list[Event]) -> Iterable[Row]:
    prices: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for _, _, category, expires, _, price, _ in q9(events):
        for end in _window_ends(expires, WINNING_PERIOD):
            prices[category, end].append(price)
    return [(*key, sum(each) // len(each)) for key, each in prices.items()]


def q5(events: list[Event]) -> Iterable[Row]:
    counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for bid in _all(Bid, events):
        for end in _window_ends(bid.time, HOT_PERIOD):
            counts[end][bid.auction] += 1
    for end, found in counts.items():
        most = max(found.values())
        yield from ((end, auction, count) for auction, count in found.items() if count == most)


def q6(events: list[Event]) -> Iterable[Row]:
    closed: defaultdict[int, list[int]] = defaultdict(list)
    for _, seller, _, _, _, price, _ in sorted(q9(events), key=lambda row: (row[3], row[0])):
        prices = closed[seller]
        prices.append(price)
        last = prices[-LAST_AUCTIONS:]
        yield seller, len(prices), sum(last) // len(last)


def q7(events: list[Event]) -> Iterable[Row]:
    highest: dict[int, Bid] = {}
    for bid in _all(Bid, events):
        [end] = _window_ends(bid.time, WINDOW)
        highest[end] = max(highest.get(end, bid), bid, key=_rank)
    return [(end, bid.auction, bid.bidder, bid.price, bid.time) for end, bid in highest.items()]


def q8(events: list[Event]) -> Iterable[Row]:
    sellers = {(auction.seller, _window_ends(auction.time, WINDOW)[0]) for auction in _all(Auction, events)}
    for person in _all(Person, events):
        [end] = _window_ends(person.time, WINDOW)
        if (person.id, end) in sellers:
            yield person.id, person.name, end


def q9(events: list[Event]) -> Iterable[Row]:
    auctions = {auction.id: auction for auction in _all(Auction, events)}
    best: dict[int, Bid] = {}
    for bid in _all(Bid, events):
        auction = auctions.get(bid.auction)
        if auction and auction.time <= bid.time <= auction.expires:
            best[auction.id] = max(best.get(auction.id, bid), bid, key=_rank)
    for number, bid in best.items():
        _, _, _, _, _, _, expires, seller, category, _ = auctions[number]
        yield number, seller, category, expires, bid.bidder, bid.price, bid.time


def q11(events: list[Event]) -> Iterable[Row]:
    times: defaultdict[int, list[int]] = defaultdict(list)
    for bid in _all(Bid, events):
        times[bid.bidder].append(bid.time)
    for bidder, found in times.items():
        start = end = count = 0
        for time in sorted(found):
            if count and time >= end:
                yield bidder, count, start, end
                count = 0
            start = start if count else time
            end, count = time + SESSION_GAP * 1_000, count + 1
        yield bidder, count, start, end


def q12(events: list[Event]) -> Iterable[Row]:
    return Counter(bid.bidder for bid in _all(Bid, events)).items()


def q19(events: list[Event]) -> Iterable[Row]:
    groups: defaultdict[tuple[int, int], list[Bid]] = defaultdict(list)
    for bid in _all(Bid, events):
        [end] = _window_ends(bid.time, WINDOW)
        groups[end, bid.auction].append(bid)
    for (end, auction), bids in groups.items():
        best = sorted(bids, key=_rank, reverse=True)[:TOP_BIDS]
        for place, bid in enumerate(best, 1):
            yield end, auction, place, bid.bidder, bid.price, bid.time


def _all(kind: type[Kind], events: Iterable[Event]) -> Iterator[Kind]:
    return (event for event in events if isinstance(event, kind))


def _rank(bid: Bid) -> tuple[int, int, int]:
    return bid.price, -bid.time, -bid.bidder


def _window_ends(time: int, period: int) -> list[int]:
    """The ends of the windows that a time is in, all in milliseconds; windows start every `period` seconds."""
    step, size = period * 1_000, WINDOW * 1_000
    newest = time // step * step
    return [start + size for start in range(newest, newest - size, -step)]


READINGS: dict[str, Callable[[list[Event]], Iterable[Row]]] = {
    each.__name__: each for each in (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q11, q12, q19)
}
