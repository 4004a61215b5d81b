"""Finds out which advertisement led to a goal, such as a purchase: the pipeline of Streaming Systems, chapter 7.

Visits to pages and impressions of advertisements arrive out of order. When the watermark has reached a goal, everything
that may have led to it is there, and the pipeline walks its trail back to an impression. It deletes state that is older
than 90 days.

python examples/attribution.py
"""

from __future__ import annotations

import penstock as beam
from _attribution_records import Impression, Visit
from penstock.coders import FastPrimitivesCoder, PickleCoder, StrUtf8Coder, TimestampCoder
from penstock.io import WriteToConsole
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_stream import TestStream
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import (
    MapStateSpec,
    ReadModifyWriteStateSpec,
    SetStateSpec,
    TimerSpec,
    on_timer,
)
from penstock.transforms.window import TimestampedValue
from penstock.utils.timestamp import Timestamp

DAY = 86_400
HORIZON_DAYS = 90


class Attribute(beam.DoFn):
    """Turns (user, visit or impression) into lines that say how an impression led the user to a goal."""

    VISITS = MapStateSpec("visits", StrUtf8Coder(), PickleCoder())
    IMPRESSIONS = MapStateSpec("impressions", StrUtf8Coder(), PickleCoder())
    GOALS = SetStateSpec("goals", PickleCoder())
    EARLIEST_GOAL = ReadModifyWriteStateSpec("earliest goal", TimestampCoder())
    ATTRIBUTION = TimerSpec("attribution", TimeDomain.WATERMARK)
    COLLECTION = TimerSpec("collection", TimeDomain.WATERMARK)
    KEPT_UNTIL = ReadModifyWriteStateSpec("collected until", FastPrimitivesCoder())

    def process(
        self,
        element,
        visits=beam.DoFn.StateParam(VISITS),
        impressions=beam.DoFn.StateParam(IMPRESSIONS),
        goals=beam.DoFn.StateParam(GOALS),
        earliest=beam.DoFn.StateParam(EARLIEST_GOAL),
        attribution=beam.DoFn.TimerParam(ATTRIBUTION),
        collection=beam.DoFn.TimerParam(COLLECTION),
        kept_until=beam.DoFn.StateParam(KEPT_UNTIL),
    ):
        _, record = element
        if isinstance(record, Impression):
            # The first impression counts, however often it is shown.
            impressions.put_if_absent(f"{record.source}:{record.target}", record)
        elif record.is_goal:
            goals.add(record)
            when, known = Timestamp.of(record.seconds), earliest.read()
            if known is None or when < known:
                earliest.write(when)
                attribution.set(when)
        else:
            visits.put(record.url, record)
        until = record.seconds + HORIZON_DAYS * DAY
        if kept_until.read() is None or until < kept_until.read():
            kept_until.write(until)
            collection.set(until)

    @on_timer(ATTRIBUTION)
    def attribute(
        self,
        now=beam.DoFn.TimestampParam,
        visits=beam.DoFn.StateParam(VISITS),
        impressions=beam.DoFn.StateParam(IMPRESSIONS),
        goals=beam.DoFn.StateParam(GOALS),
        earliest=beam.DoFn.StateParam(EARLIEST_GOAL),
        attribution=beam.DoFn.TimerParam(ATTRIBUTION),
    ):
        waiting = []
        for goal in goals.read():
            if Timestamp.of(goal.seconds) > now:
                waiting.append(goal)
                continue
            goals.remove(goal)
            line = _trail(goal, visits, impressions)
            if line:
                yield line
        if waiting:
            when = min(Timestamp.of(goal.seconds) for goal in waiting)
            earliest.write(when)
            attribution.set(when)
        else:
            earliest.clear()

    @on_timer(COLLECTION)
    def collect(
        self,
        now=beam.DoFn.TimestampParam,
        visits=beam.DoFn.StateParam(VISITS),
        impressions=beam.DoFn.StateParam(IMPRESSIONS),
        collection=beam.DoFn.TimerParam(COLLECTION),
        kept_until=beam.DoFn.StateParam(KEPT_UNTIL),
    ):
        oldest = None
        for cells in (visits, impressions):
            for key, record in cells.entries():
                if Timestamp.of(record.seconds + HORIZON_DAYS * DAY) <= now:
                    cells.remove(key)
                elif oldest is None or record.seconds < oldest:
                    oldest = record.seconds
        kept_until.clear()
        if oldest is not None:
            kept_until.write(oldest + HORIZON_DAYS * DAY)
            collection.set(oldest + HORIZON_DAYS * DAY)


def _trail(goal, visits, impressions):
    """Follows a goal back to an impression; returns None if there was none."""
    trail, visit = [goal.url], goal
    while True:
        impression = impressions.get(f"{visit.referer}:{visit.url}")
        if impression is not None:
            return f"imp={impression.number} {' → '.join([impression.source, *trail])}"
        visit = visits.get(visit.referer)
        if visit is None or visit.url in trail:
            return None
        trail.insert(0, visit.url)


def clock(text):
    """Converts a time of day to seconds since midnight.

    >>> clock("12:01:30")
    43290
    """
    hours, minutes, seconds = map(int, text.split(":"))
    return hours * 3_600 + minutes * 60 + seconds


SIGN_UP, SHOP = "http://xyz.com/", "http://xyz.com/thing"
SEARCH, SEARCH_THING = "http://search.com?q=xyz", "http://search.com?q=thing"

RECORDS: dict[str, Visit | Impression] = {
    "signI": Impression(123, SEARCH, SIGN_UP, clock("12:01:00")),
    "signV": Visit(SIGN_UP, clock("12:01:10"), SEARCH),
    "signG": Visit(f"{SIGN_UP}join-mailing-list", clock("12:01:30"), SIGN_UP, True),
    "shI": Impression(456, SEARCH_THING, SHOP, clock("12:02:00")),
    "shI2": Impression(789, SEARCH_THING, SHOP, clock("12:02:10")),
    "shV1": Visit(SHOP, clock("12:02:30"), SEARCH_THING),
    "shV2": Visit(f"{SHOP}/add-to-cart", clock("12:03:00"), SHOP),
    "shV3": Visit(f"{SHOP}/purchase", clock("12:03:20"), f"{SHOP}/add-to-cart"),
    "shG": Visit(f"{SHOP}/receipt", clock("12:03:45"), f"{SHOP}/purchase", True),
    "unI": Impression(0, SEARCH_THING, "http://xyz.com/other-thing", clock("12:04:00")),
    "unV": Visit("http://xyz.com/other-thing", clock("12:04:20"), "http://search.com?q=other thing"),
}
"""The records of the book's test."""

SCRIPT = "12:00:00 shV2 shG shV3 signG 12:00:30 signI 12:01:00 shI signV 12:01:30 shI2 shV1 12:03:45 unI 12:04:00 unV"
"""Their order of arrival, with the watermark between them."""


def recorded():
    """The book's test as a stream."""
    stream = TestStream()
    for name in SCRIPT.split():
        if name in RECORDS:
            record = RECORDS[name]
            stream = stream.add_elements([TimestampedValue(("UserX", record), record.seconds)])
        else:
            stream = stream.advance_watermark_to(clock(name))
    return stream.advance_watermark_to_infinity()


def run(argv=None):
    with beam.Pipeline(options=PipelineOptions(argv)) as pipeline:
        _ = pipeline | recorded() | beam.ParDo(Attribute()) | WriteToConsole()


if __name__ == "__main__":
    run()
