"""The queries as pipelines of penstock: each is a function from the events to the rows of the answer.

The same functions serve in batch and on streams; only `read_batch` and `read_stream` know which of both it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import penstock as beam
from nexmark.model import Auction, Bid, Event, Person, parse, time_of
from nexmark.readings import Row
from nexmark.settings import (
    AUCTION_STEP,
    CATEGORY,
    EURO_PER_MILLE,
    HOT_PERIOD,
    LAST_AUCTIONS,
    SESSION_GAP,
    STATES,
    TOP_BIDS,
    WATERMARK_DELAY,
    WINDOW,
    WINNING_PERIOD,
)
from nexmark.winning import WinningBid, WinningBids, at_millis, rank
from penstock.io.watermarks import BoundedDisorder
from penstock.relations.joins import JoinRows
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterProcessingTime, Repeatedly
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    SlidingWindows,
    TimestampedValue,
)

Events = Any
"""A PCollection of events."""

Rows = Any
"""A PCollection of tuples."""


def read_batch(pipeline: beam.Pipeline, source: str, has_times: bool = True) -> Events:
    """The events of some files, each at its time if that matters."""
    return parsed(pipeline | beam.io.ReadFromText(f"{source}/lines/*.txt"), has_times)


def read_stream(pipeline: beam.Pipeline, source: str) -> Events:
    """The events of the same files, one file after the other."""
    lines = beam.io.ReadFromText(f"{source}/lines/*.txt").as_stream(
        event_time=lambda line: at_millis(time_of(line)),
        watermark=BoundedDisorder(WATERMARK_DELAY),
        max_files_per_batch=1,
        existing_only=True,
    )
    # The times are there already.
    return parsed(pipeline | lines, has_times=False)


def parsed(lines: Any, has_times: bool) -> Events:
    """The events of lines, each at its time if that matters."""
    events = lines | "Parse" >> beam.Map(parse)
    return events | "At its time" >> beam.Map(at_its_time) if has_times else events


def at_its_time(event: Event) -> TimestampedValue:
    return TimestampedValue(event, at_millis(event.time))


def only(kind: type) -> Any:
    """The events of a kind, which what follows may count on."""
    return f"{kind.__name__}s" >> beam.Filter(lambda event: isinstance(event, kind)).with_output_types(kind)


def q0(events: Events) -> Rows:
    return events | only(Bid)


def q1(events: Events) -> Rows:
    def in_euro(bid: Bid) -> Row:
        return bid.auction, bid.bidder, bid.price * EURO_PER_MILLE // 1_000, bid.time

    return events | only(Bid) | "In euro" >> beam.Map(in_euro)


def q2(events: Events) -> Rows:
    return (
        events
        | only(Bid)
        | "Some auctions" >> beam.Filter(lambda bid: bid.auction % AUCTION_STEP == 0)
        | "Price" >> beam.Map(lambda bid: (bid.auction, bid.price))
    )


def q3(events: Events) -> Rows:
    persons = (
        events
        | only(Person)
        | "Near" >> beam.Filter(lambda person: person.state in STATES)
        | "By id" >> beam.Map(lambda person: (person.id, (person.name, person.city, person.state)))
    )
    auctions = (
        events
        | only(Auction)
        | "Of a category" >> beam.Filter(lambda auction: auction.category == CATEGORY)
        | "By seller" >> beam.Map(lambda auction: (auction.seller, auction.id))
    )
    sold = (persons, auctions) | JoinRows("inner")
    return sold | "Row" >> beam.MapTuple(lambda _, person_auction: (*person_auction[0], person_auction[1]))


def q4(events: Events) -> Rows:
    def row(category_mean: tuple[int, float], window: Any = beam.DoFn.WindowParam) -> Row:
        return category_mean[0], end_millis(window), int(category_mean[1])

    return (
        events
        | WinningBids()
        | "Price" >> beam.Map(lambda winning: (winning.category, winning.price))
        | "Windows" >> beam.WindowInto(SlidingWindows(WINDOW, WINNING_PERIOD))
        | beam.combiners.Mean.PerKey()
        | "Row" >> beam.Map(row)
    )


def q5(events: Events) -> Rows:
    def rows(counts: list[tuple[int, int]], window: Any = beam.DoFn.WindowParam) -> Iterator[Row]:
        for auction, count in counts:
            yield end_millis(window), auction, count

    return (
        events
        | only(Bid)
        | "Auction" >> beam.Map(lambda bid: bid.auction)
        | "Windows" >> beam.WindowInto(SlidingWindows(WINDOW, HOT_PERIOD))
        | beam.combiners.Count.PerElement()
        | "Hottest" >> beam.CombineGlobally(AllWithMost()).without_defaults()
        | "Rows" >> beam.FlatMap(rows)
    )


Counted = tuple[int, int]
"""An auction and how many bids it has."""


class AllWithMost(beam.CombineFn):
    """Those that have the greatest count: one, or several that are equal."""

    def create_accumulator(self) -> list[Counted]:
        return []

    def add_input(self, most: list[Counted], counted: Counted) -> list[Counted]:
        if not most or counted[1] > most[0][1]:
            return [counted]
        return [*most, counted] if counted[1] == most[0][1] else most

    def merge_accumulators(self, accumulators: Iterable[list[Counted]]) -> list[Counted]:
        merged: list[Counted] = []
        for accumulator in accumulators:
            for counted in accumulator:
                merged = self.add_input(merged, counted)
        return merged

    def extract_output(self, most: list[Counted]) -> list[Counted]:
        return most


def q6(events: Events) -> Rows:
    def by_seller(winning: WinningBid) -> tuple[int, tuple[int, int, int]]:
        return winning.seller, (winning.expires, winning.auction, winning.price)

    each_time = beam.WindowInto(
        GlobalWindows(),
        trigger=Repeatedly(AfterCount(1)),
        accumulation_mode=AccumulationMode.ACCUMULATING,
    )
    return (
        events
        | WinningBids()
        | "By seller" >> beam.Map(by_seller)
        | "Each time" >> each_time
        | beam.CombinePerKey(MeanOfLast(LAST_AUCTIONS))
        | "Row" >> beam.MapTuple(lambda seller, counted_mean: (seller, *counted_mean))
    )


class MeanOfLast(beam.CombineFn):
    """Counts (time, number, price), and computes the mean price of the last ones."""

    def __init__(self, count: int) -> None:
        self.count = count

    def create_accumulator(self) -> tuple[int, list[tuple[int, int, int]]]:
        return 0, []

    def add_input(self, accumulator: Any, sold: tuple[int, int, int]) -> Any:
        count, last = accumulator
        return count + 1, sorted([*last, sold])[-self.count :]

    def merge_accumulators(self, accumulators: Iterable[Any]) -> Any:
        counts, lasts = zip(*accumulators, strict=True)
        return sum(counts), sorted(sold for last in lasts for sold in last)[-self.count :]

    def extract_output(self, accumulator: Any) -> tuple[int, int]:
        count, last = accumulator
        return count, sum(price for _, _, price in last) // max(len(last), 1)


def q7(events: Events) -> Rows:
    def row(highest: list[Bid], window: Any = beam.DoFn.WindowParam) -> Row:
        [bid] = highest
        return end_millis(window), bid.auction, bid.bidder, bid.price, bid.time

    return (
        events
        | only(Bid)
        | "Windows" >> beam.WindowInto(FixedWindows(WINDOW))
        | "Highest" >> beam.combiners.Top.Of(1, key=rank).without_defaults()
        | "Row" >> beam.Map(row)
    )


def q8(events: Events) -> Rows:
    def row(person: tuple[int, str], window: Any = beam.DoFn.WindowParam) -> Row:
        return *person, end_millis(window)

    windowed = events | "Windows" >> beam.WindowInto(FixedWindows(WINDOW))
    persons = windowed | only(Person) | "By id" >> beam.Map(lambda person: (person.id, person.name))
    sellers = windowed | only(Auction) | "By seller" >> beam.Map(lambda auction: (auction.seller, None))
    return (persons, sellers) | JoinRows("semi") | "Row" >> beam.Map(row)


def q9(events: Events) -> Rows:
    return events | WinningBids()


def q11(events: Events) -> Rows:
    def row(bidder_count: tuple[int, int], window: Any = beam.DoFn.WindowParam) -> Row:
        return *bidder_count, window.start.micros // 1_000, end_millis(window)

    return (
        events
        | only(Bid)
        | "By bidder" >> beam.Map(lambda bid: (bid.bidder, None))
        | "Sessions" >> beam.WindowInto(Sessions(SESSION_GAP))
        | beam.combiners.Count.PerKey()
        | "Row" >> beam.Map(row)
    )


def q12(events: Events) -> Rows:
    windows = beam.WindowInto(
        GlobalWindows(),
        trigger=Repeatedly(AfterProcessingTime.aligned_to(WINDOW)),
        accumulation_mode=AccumulationMode.DISCARDING,
    )
    return (
        events
        | only(Bid)
        | "By bidder" >> beam.Map(lambda bid: (bid.bidder, None))
        | "Time of the clock" >> windows
        | beam.combiners.Count.PerKey()
    )


def q19(events: Events) -> Rows:
    def rows(auction_bids: tuple[int, list[Bid]], window: Any = beam.DoFn.WindowParam) -> Iterator[Row]:
        auction, bids = auction_bids
        for place, bid in enumerate(bids, 1):
            yield end_millis(window), auction, place, bid.bidder, bid.price, bid.time

    return (
        events
        | only(Bid)
        | "By auction" >> beam.Map(lambda bid: (bid.auction, bid))
        | "Windows" >> beam.WindowInto(FixedWindows(WINDOW))
        | "Best" >> beam.combiners.Top.PerKey(TOP_BIDS, key=rank)
        | "Rows" >> beam.FlatMap(rows)
    )


def end_millis(window: Any) -> int:
    return int(window.end.micros) // 1_000


PIPELINES: dict[str, Callable[[Events], Rows]] = {
    each.__name__: each for each in (q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q11, q12, q19)
}
