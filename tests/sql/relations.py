"""Random changes of the tables that random queries read, and what a query must give and gives after each of them."""

from __future__ import annotations

import atexit
import datetime
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import duckdb

import penstock as beam
from penstock.elements.row import Row
from penstock.io import WriteToMemory
from penstock.testing.test_stream import TestStream
from penstock.transforms.sql import SqlTransform
from penstock.transforms.window import TimestampedValue
from penstock.utils.windowed_value import ValueKind, WindowedValue, unknown_pane
from tests.runner.plain_runner import Settings, collect, run_plain
from tests.shards.toy_query import ToyQuery
from tests.sql.random_queries import TABLES, Text

EPOCH = datetime.datetime(2026, 1, 1)
SECONDS = (EPOCH - datetime.datetime(1970, 1, 1)).total_seconds()
Rows = Counter[str]
"""Rows as text, since TRUE equals 1 in Python, and how often each is there."""


class A(NamedTuple):
    """A row of the first table."""

    k: int | None
    s: str | None
    v: int | None
    ts: datetime.datetime | None


class B(NamedTuple):
    """A row of the second table."""

    k: int | None
    s: str | None
    w: int | None
    ts: datetime.datetime | None


KINDS: Mapping[str, type] = {"a": A, "b": B}


class FormsOfA(NamedTuple):
    """A row of the first table whose equal values look different."""

    k: Decimal | None
    s: str | None
    v: float | None
    ts: datetime.datetime | None


class FormsOfB(NamedTuple):
    """A row of the second table, whose numbers have other types."""

    k: int | None
    s: str | None
    w: Decimal | None
    ts: datetime.datetime | None


KINDS_WITH_FORMS: Mapping[str, type] = {"a": FormsOfA, "b": FormsOfB}


class Change(NamedTuple):
    """Rows that come to a table or are taken back, at once."""

    table: str
    rows: tuple[tuple[int, tuple[Any, ...]], ...]


class Advance(NamedTuple):
    """The watermark of a table, or with no table the clock; in seconds. None is the end."""

    table: str | None
    seconds: float | None


class Cut(NamedTuple):
    """The end of a micro-batch."""


class Input(NamedTuple):
    """What happens to the tables, whether rows are taken back, and whether equal values look different."""

    events: tuple[Any, ...]
    retracts: bool
    has_forms: bool = False

    @property
    def kinds(self) -> Mapping[str, type]:
        return KINDS_WITH_FORMS if self.has_forms else KINDS

    def in_forms(self, random: Random) -> Input:
        """The same, with each value in any form, even where a row is taken back."""

        def formed(event: Any) -> Any:
            if not isinstance(event, Change):
                return event
            rows = [(sign, _formed(random, event.table, row)) for sign, row in event.rows]
            return Change(event.table, tuple(rows))

        return Input(tuple(map(formed, self.events)), self.retracts, has_forms=True)

    @property
    def happenings(self) -> list[Any]:
        return [each for each in self.events if not isinstance(each, Cut)]

    def rows(self, table: str, number: int) -> list[tuple[Any, ...]]:
        """The rows of a table after a number of events."""
        found: Counter[tuple[Any, ...]] = Counter()
        for event in self.happenings[:number]:
            if isinstance(event, Change) and event.table == table:
                for sign, row in event.rows:
                    found[row] += sign
        return list(found.elements())

    def seen_rows(self, table: str) -> list[tuple[Any, ...]]:
        """All rows of a table that never loses one, each with the watermark of its arrival in microseconds."""
        seen_micros, found = 0, []
        for event in self.happenings:
            match event:
                case Advance(name, seconds) if name == table:
                    seen_micros = int((SECONDS + (seconds or 0)) * 1_000_000)
                case Change(name, rows) if name == table:
                    found += [(*row, seen_micros) for _, row in rows]
        return found


def random_input(seed: int, late: bool = True, retracts: bool = True) -> Input:
    """The events of a seed.

    Args:
        seed: The seed.
        late: Whether rows may come after the watermark has passed their time.
        retracts: Whether rows may be taken back.
    """
    random = Random(seed)
    retracts = retracts and random.random() < 0.4
    tables = [name for name in TABLES if random.random() < 0.93]
    there: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    watermarks = dict.fromkeys(TABLES, 0.0)
    events: list[Any] = []
    for _ in range(random.choice([4, 8, 12])):
        what = random.random()
        if what < 0.12:
            events.append(Cut())
        elif what < 0.2:
            events.append(Advance(None, random.choice([1, 5])))
        elif what < 0.35:
            name = random.choice(list(TABLES))
            watermarks[name] += random.choice([3, 10])
            events.append(Advance(name, watermarks[name]))
        elif tables:
            name = random.choice(tables)
            changes = []
            for _ in range(random.choice([1, 1, 2, 3])):
                if retracts and there[name] and random.random() < 0.4:
                    row = there[name].pop(random.randrange(len(there[name])))
                    changes.append((-1, row))
                else:
                    row = _row(random, there[name], 0.0 if late else watermarks[name])
                    there[name].append(row)
                    changes.append((1, row))
            events.append(Change(name, tuple(changes)))
    return Input(tuple(events), retracts)


def _row(random: Random, there: list[tuple[Any, ...]], start: float) -> tuple[Any, ...]:
    if there and random.random() < 0.2:
        copy = random.choice(there)
        if copy[3] is None or copy[3] >= EPOCH + datetime.timedelta(seconds=start):
            return copy
    time = None
    if random.random() < 0.93:
        time = EPOCH + datetime.timedelta(seconds=start + random.choice([0, 3, 5, 7, 12, 20]))
    return (
        random.choice([None, 0, 1, 1, 2]),
        random.choice([None, "x", "y", "y", ""]),
        random.choice([None, -1, 0, 1, 2, 3]),
        time,
    )


def _formed(random: Random, table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    key, text, number, time = row
    if table == "a":
        return _decimal(random, key), text, _float(random, number), _zoned(random, time)
    return key, text, _decimal(random, number), _zoned(random, time)


def _decimal(random: Random, number: int | None) -> Decimal | None:
    if number is None:
        return None
    sign = "-" if number == 0 and random.random() < 0.3 else ""
    return Decimal(sign + random.choice(["{}", "{}.0", "{}.00", "{}E+0"]).format(number))


def _float(random: Random, number: int | None) -> float | None:
    """A number as a float; the greatest one is the number above all."""
    if number is None:
        return None
    return math.nan if number == 3 else random.choice([0.0, -0.0]) if number == 0 else float(number)


def _zoned(random: Random, time: datetime.datetime | None) -> datetime.datetime | None:
    if time is None:
        return None
    zone = datetime.timezone(datetime.timedelta(hours=random.choice([-5, 0, 9])))
    return time.replace(tzinfo=datetime.UTC).astimezone(zone)


def _without_zone(value: Any) -> Any:
    """A value as DuckDB takes it."""
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


# What must be


def expected(query: Text, given: Input, numbers: Iterable[int]) -> Iterator[Rows]:
    """The rows of a query by DuckDB, after each number of events."""
    connection = connected(given.has_forms)
    known: dict[Any, Rows] = {}
    for number in numbers:
        tables = tuple(tuple(given.rows(name, number)) for name in TABLES)
        if tables not in known:
            for name, rows in zip(TABLES, tables, strict=True):
                connection.execute(f"DELETE FROM {name}")
                if rows:
                    connection.executemany(
                        f"INSERT INTO {name} VALUES (?, ?, ?, ?)",
                        [tuple(map(_without_zone, row)) for row in rows],
                    )
            known[tables] = as_rows(connection.execute(query.other).fetchall(), given.has_forms)
        yield known[tables]


def expected_with_lateness(query: str, given: Input) -> Rows:
    """The rows of a query by DuckDB over all rows, with the watermarks of their arrival."""
    connection = connected()
    for name in TABLES:
        connection.execute(f"DELETE FROM {name}_seen")
        if rows := given.seen_rows(name):
            connection.executemany(f"INSERT INTO {name}_seen VALUES (?, ?, ?, ?, ?)", rows)
    return as_rows(connection.execute(query).fetchall())


_CONNECTIONS: dict[bool, Any] = {}
atexit.register(_CONNECTIONS.clear)
_TYPES = {"INTEGER": "BIGINT", "STRING": "VARCHAR", "TIME": "TIMESTAMP"}
_TYPES_WITH_FORMS = {("a", "k"): "DECIMAL(18, 2)", ("a", "v"): "DOUBLE", ("b", "w"): "DECIMAL(18, 2)"}


def connected(has_forms: bool = False) -> Any:
    """The database, with empty tables."""
    if has_forms not in _CONNECTIONS:
        # Its other plan of ASOF JOIN joins rows whose time is NULL.
        connection = duckdb.connect(config={"asof_loop_join_threshold": "1000000"})
        connection.execute("SET threads = 1")
        # DuckDB's other way to join by time, for larger tables, finds a partner for a row whose time is NULL.
        connection.execute("SET asof_loop_join_threshold = 1_000_000")
        # NULL comes where Spark has it, unless a query says otherwise.
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for name, columns in TABLES.items():
            types = [(_TYPES_WITH_FORMS if has_forms else {}).get((name, column)) for column, _ in columns]
            made = ", ".join(
                f"{column} {of_form or _TYPES[kind]}"
                for (column, kind), of_form in zip(columns, types, strict=True)
            )
            connection.execute(f"CREATE TABLE {name} ({made})")
            connection.execute(f"CREATE TABLE {name}_seen ({made}, seen BIGINT)")
        _CONNECTIONS[has_forms] = connection
    return _CONNECTIONS[has_forms]


def as_rows(rows: Iterable[Iterable[Any]], has_forms: bool = False) -> Rows:
    """Rows as text; if values have several forms, all that are equal as one."""
    plain = _form_of if has_forms else _plain
    return Counter(repr(tuple(map(plain, row))) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, list):
        return list(map(_plain, value))
    return {name: _plain(each) for name, each in value.as_dict().items()} if isinstance(value, Row) else value


def _form_of(value: Any) -> Any:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        # The mean of decimals has more digits than that of floats.
        return f"{float(value):.12g}".replace("-0", "0") if not value else f"{float(value):.12g}"
    return _plain(_without_zone(value))


# What is


class ComeOrGo(beam.DoFn):
    """From what happens to a row to the row, or its retraction."""

    def __init__(self, kind, emits_retractions):
        self._kind = kind
        self.emits_retractions = emits_retractions

    def process(self, change, seen=beam.DoFn.WindowedValueParam):
        sign, row = change
        pane = unknown_pane(ValueKind.INSERT if sign > 0 else ValueKind.DELETE)
        yield WindowedValue(self._kind(*row), seen.timestamp, seen.windows, pane)


def streams(pipeline: beam.Pipeline, given: Input) -> dict[str, Any]:
    """The tables of an input as PCollections of rows."""
    stream = TestStream(output_tags=[*TABLES])
    for event in given.events:
        match event:
            case Cut():
                stream = stream.end_micro_batch()
            case Advance(None, seconds):
                stream = stream.advance_processing_time(seconds)
            case Advance(table, seconds):
                stream = stream.advance_watermark_to(SECONDS + seconds, table)
            case Change(table, rows):
                stream = stream.add_elements([_timed(row) for row in rows], table)
    for name in TABLES:
        stream = stream.advance_watermark_to_infinity(name)
    changes = pipeline | stream
    return {
        name: changes[name]
        | f"Rows of {name}" >> beam.ParDo(ComeOrGo(kind, given.retracts)).with_output_types(kind)
        for name, kind in given.kinds.items()
    }


def _timed(change: tuple[int, tuple[Any, ...]]) -> TimestampedValue:
    time = _without_zone(change[1][3])
    return TimestampedValue(
        change, SECONDS if time is None else (time - datetime.datetime(1970, 1, 1)).total_seconds()
    )


class Changes(NamedTuple):
    """What a query gave with a micro-batch: how many events there were by its end, and signs and rows.

    Also how many rows were dropped as late by then; None if a step counts changes that come late, and not rows.
    """

    events: int
    changes: list[tuple[int, Any]]
    dropped: int | None = None


def changes(
    query: str, given: Input, mode: str = "streaming", shards: int = 2, events_per_batch: int | None = 1
) -> Iterator[Changes]:
    """What a query over streams gives, micro-batch by micro-batch."""
    pipeline = beam.Pipeline()
    result = streams(pipeline, given) | SqlTransform(query)
    result | beam.Changelog() | WriteToMemory([])
    holds = any(step.label.endswith("/Emit") for step in pipeline.to_graph().steps)
    toy = ToyQuery(pipeline, mode, shards, events_per_batch)
    firsts = [*toy.timeline.firsts, len(toy.timeline.clocks_micros)]
    for _, end in itertools.pairwise(firsts):
        found = [each for sink in toy.batch().values() for each in sink]
        dropped = None if holds else toy.counted("elements_dropped_as_late")
        yield Changes(end - 1, [(-1 if kind.is_retraction else 1, row) for kind, row in found], dropped)


def final_rows(query: str, given: Input) -> Rows:
    """What a query over the final rows gives in batch."""
    pipeline = beam.Pipeline()
    tables = {
        name: pipeline
        | f"Rows of {name}"
        >> beam.Create(
            [kind(*row) for row in given.rows(name, len(given.happenings))], reshuffle=False
        ).with_output_types(kind)
        for name, kind in given.kinds.items()
    }
    found = collect(tables | SqlTransform(query))
    run_plain(pipeline, Settings())
    return as_rows(found, given.has_forms)
