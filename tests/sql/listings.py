"""Listings of queries: a query, the rows that come and when, and what must be seen, as text."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import penstock as beam
from penstock.testing.test_stream import TestStream
from penstock.transforms.sql import Catalog, SqlTransform
from penstock.transforms.window import TimestampedValue
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming, ValueKind, WindowedValue
from penstock.windows.window_fn import GlobalWindow

DAY = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LAST_YEAR = 9999


def at(clock: str) -> datetime.datetime:
    """A time of the day of all listings.

    >>> at("12:05:19")
    datetime.datetime(2026, 1, 1, 12, 5, 19, tzinfo=datetime.timezone.utc)
    """
    hours, minutes, *seconds = map(int, clock.split(":"))
    return DAY.replace(hour=hours, minute=minutes, second=seconds[0] if seconds else 0)


class Arrival(NamedTuple):
    """A row that comes, or goes.

    Attributes:
        at: The processing time.
        row: The row.
        undone: Whether it is taken back.
    """

    at: str
    row: Any
    undone: bool = False


@dataclass(frozen=True)
class Listing:
    """A listing.

    Attributes:
        name: Its name in the source.
        query: The query.
        expected: What is seen: a line for each row, with its cells between bars, in the order of emission. Rows of a
            table have no order. Of all snapshots, a line with a time begins each.
        tables: The arrivals at each table.
        until: The processing time until which the clock goes.
        watermark: Pairs of a processing time, and the event time that the watermark passes then.
        views: Queries that the query reads, by name.
        tick_seconds: How long the clock stands still at most, so that emissions of different keys come in the order of
            their times; 0 if only arrivals move it.
    """

    name: str
    query: str
    expected: str
    tables: Mapping[str, Sequence[Arrival]]
    until: str = "12:10"
    watermark: tuple[tuple[str, str], ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)
    tick_seconds: int = 0

    @property
    def rendering(self) -> str:
        """``STREAM``, ``TABLE`` or ``TVR``."""
        word = self.query.split()[1]
        return word if word in ("TABLE", "TVR") else "STREAM"

    @property
    def rows(self) -> list[Any]:
        """What is expected, as `shown` gives it."""
        lines = [line.strip() for line in self.expected.strip().splitlines()]
        if self.rendering == "TVR":
            return _snapshots(lines)
        rows = [cells(line) for line in lines if line]
        return sorted(rows) if self.rendering == "TABLE" else rows

    def transform(self) -> SqlTransform:
        """The query as a transform."""
        catalog = Catalog()
        for name, query in self.views.items():
            catalog.create_view(name, query)
        return SqlTransform(self.query, catalog=catalog)


def _snapshots(lines: Iterable[str]) -> list[Any]:
    found: list[tuple[str, list[Any]]] = []
    for line in lines:
        if "|" in line:
            found[-1][1].append(cells(line))
        else:
            found.append((line, []))
    return [(start, sorted(rows)) for start, rows in found]


def cells(line: str) -> tuple[str, ...]:
    """The cells of a line.

    >>> cells("| Julie | 7 | |")
    ('Julie', '7', '')
    """
    return tuple(cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|"))


def shown(listing: Listing, elements: Sequence[Any]) -> list[Any]:
    """What a query gives, as text."""
    if listing.rendering == "TVR":
        return [
            (text_of(each.start), sorted(tuple(map(text_of, row)) for row in each.rows)) for each in elements
        ]
    rows = [tuple(map(text_of, row)) for row in elements]
    return sorted(rows) if listing.rendering == "TABLE" else rows


def text_of(value: Any) -> str:
    """A value as listings write it.

    >>> text_of(None), text_of(at("12:01")), text_of(at("12:01:30")), text_of((at("12:01"), at("12:03")))
    ('-', '12:01', '12:01:30', '[12:01,12:03)')
    """
    if value is None:
        return "-"
    if hasattr(value, "micros"):
        value = datetime.datetime.fromtimestamp(value.micros / 1_000_000, datetime.UTC)
    if isinstance(value, datetime.datetime):
        if value.year == LAST_YEAR:
            return "inf"
        return value.strftime("%H:%M:%S").removesuffix(":00")
    if isinstance(value, tuple):
        return f"[{','.join(map(text_of, value))})"
    return str(value)


def stream_of(listing: Listing, until: str | None = None, ends: bool = False) -> TestStream:
    """The arrivals and the watermark as a stream with an output for each table."""
    until = until or listing.until
    events: list[tuple[datetime.datetime, int, str, Any]] = [
        (at(arrival.at), 0, name, arrival)
        for name, arrivals in listing.tables.items()
        for arrival in arrivals
    ]
    events += [(at(clock), 1, "", passed) for clock, passed in listing.watermark]
    if listing.tick_seconds:
        begin, tick = min(each[0] for each in events), datetime.timedelta(seconds=listing.tick_seconds)
        ticks = (at(until) - begin) // tick
        events += [(begin + number * tick, -1, "", None) for number in range(ticks)]
    stream = TestStream(output_tags=listing.tables)
    now = datetime.datetime.fromtimestamp(0, datetime.UTC)
    for when, _, name, event in sorted(events, key=lambda each: each[:2]):
        if when > at(until):
            break
        if when > now:
            # What comes at one instant is there before anything that is due then.
            stream.advance_processing_time((when - now).total_seconds(), due_first=False)
            now = when
        if name:
            stream.add_elements([_element(event)], tag=name)
        elif event:
            for tag in listing.tables:
                stream.advance_watermark_to(at(event).timestamp(), tag=tag)
    if at(until) > now:
        stream.advance_processing_time((at(until) - now).total_seconds())
    if ends or listing.rendering == "TABLE":
        for tag in listing.tables:
            stream.advance_watermark_to_infinity(tag=tag)
    return stream


def _element(arrival: Arrival) -> Any:
    moment = getattr(arrival.row, "EventTime", at(arrival.at)).timestamp()
    return TimestampedValue((arrival.row, arrival.undone), moment)


class AsChange(beam.DoFn):
    """From a row, and whether it is taken back, to the row as a change."""

    accepts_retractions = True
    emits_retractions = True

    def process(self, element: Any, windowed: Any = beam.DoFn.WindowedValueParam) -> Any:
        row, undone = element
        kind = ValueKind.DELETE if undone else ValueKind.INSERT
        pane = PaneInfo(True, False, PaneInfoTiming.EARLY, 0, -1, kind)
        yield WindowedValue(row, windowed.timestamp, (GlobalWindow(),), pane)


def inputs_of(listing: Listing, streams: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of `stream_of` as inputs of the query."""
    found = {}
    for name, arrivals in listing.tables.items():
        changes = any(arrival.undone for arrival in arrivals)
        step = beam.ParDo(AsChange()) if changes else beam.Map(_row)
        found[name] = streams[name] | f"Rows of {name}" >> step.with_output_types(type(arrivals[0].row))
    return found


def _row(element: Any) -> Any:
    return element[0]
