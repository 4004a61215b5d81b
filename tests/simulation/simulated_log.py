"""A log with partitions, as a source that a user has written in Python, and how Spark asks such a source.

Records are appended to partitions, which appear with their first record. What the stream has told the log that it has
processed is removed: who reads it again fails. Now and then the log cannot be reached.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from penstock.io.custom.ranges import NumberedSource, RangesOfSource, SourceRange
from penstock.io.streaming.stream_sources import MAX_RECORDS
from penstock_spark.formats.ranges import stream as ranges_stream
from penstock_spark.formats.ranges.reading import StreamDecoder
from penstock_spark.reports.reporting import current_reporting
from penstock_spark.sources.scan import StreamScan
from penstock_spark.worker.batch import dumps_with_code
from tests.simulation.simulated_spark import Query, Source, Stream
from tests.simulation.simulated_world import World

_FAULTS_MAX = 4
_POLL_SECONDS = 0.1


@dataclass(eq=False)
class Partition:
    records: list[str] = field(default_factory=list)
    first: int = 0  # The number of the first record that is still there.


class Log:
    """The partitions."""

    def __init__(self, world: World, seed: int, faults: float) -> None:
        self.world = world
        self.partitions: dict[str, Partition] = {}
        self._random = Random(f"log {seed}")
        self._faults, self._left = faults, _FAULTS_MAX
        self._away_until = 0

    def append(self, partition: str, lines: tuple[str, ...]) -> None:
        self.partitions.setdefault(partition, Partition()).records.extend(lines)

    def may_fail(self, what: str) -> None:
        """Raises ConnectionError now and then, and sometimes for a while."""
        if self._left and self._random.random() < self._faults:
            self._left -= 1
            self._away_until = self.world.now_micros + self._random.choice((1, 300_000, 3_000_000))
        if self.world.now_micros < self._away_until:
            self.world.note(f"the log cannot be reached: {what}")
            raise ConnectionError(f"the log cannot be reached: {what}")


_logs: list[Log] = []
"""The log of the world that is simulated: the source travels to tasks, as sources of users do."""


def use(log: Log) -> None:
    """Lets sources read this log from now on."""
    _logs[:] = [log]


class Records(NumberedSource[str]):
    """The source."""

    range_records = 2

    def __init__(self, asks_once: bool, poll_seconds: float) -> None:
        self.asks_first_position_once = asks_once
        self.poll_seconds = poll_seconds

    def bounds(self) -> Mapping[str, tuple[int, int]]:
        log = _logs[0]
        log.world.look("look at the ends of the log")
        return {name: (part.first, len(part.records)) for name, part in sorted(log.partitions.items())}

    def last_position(self, start: Mapping[str, int], max_records: int | None) -> dict[str, int]:
        _logs[0].may_fail("where does it end?")
        return super().last_position(start, max_records)

    def read(self, piece: SourceRange) -> Iterator[list[str]]:
        log = _logs[0]
        for number in range(piece.start, piece.end):
            log.world.look(f"read the record {number} of {piece.partition}")
            log.may_fail(f"record {number} of {piece.partition}")
            part = log.partitions[piece.partition]
            if number < part.first:
                raise LookupError(f"the record {number} of {piece.partition} was removed")
            yield [part.records[number]]

    def commit(self, position: Mapping[str, int]) -> None:
        _logs[0].may_fail("commit")
        for name, number in position.items():
            part = _logs[0].partitions[name]
            part.first = max(part.first, number)


def open_log(source: Any, spark: Any, where: str) -> StreamScan:
    """As `penstock_spark.formats.ranges.stream.open_range_stream` does, with a simulated Spark."""
    described: RangesOfSource = source.source
    limit = dict(source.options).get(MAX_RECORDS)
    # The next driver may have a cluster of another size.
    parallelism = spark.world.random.choice((1, 2, 3))
    planning = dumps_with_code(
        ranges_stream._Planning(described.source, limit, parallelism, where, current_reporting())
    )
    made = ranges_stream._data_source("penstock-sim", planning, ())
    stream = Stream(spark, (Ranges(made=made),))
    decoder = partial(StreamDecoder, described.source, source.has_rejects, where)
    return StreamScan(stream, decoder, described.source.poll_seconds, announces=True)


@dataclass(eq=False)
class Ranges(Source):
    """A source of Spark's whose questions a Python class answers; Spark asks in an order of its own."""

    made: Any = None

    columns = ["ranges"]

    description = "PythonMicroBatchStream"

    def begin(self, query: Query, number: int) -> None:
        # Spark starts the process beside the driver anew.
        self._reader = self.made({}).streamReader(None)
        self._limit = self._reader.getDefaultReadLimit()
        self._asked_at = -1
        self._first: Any = None

    def start(self, before: Any) -> Any:
        """Spark asks for the first offset each time until there is one in its log."""
        if before is not None:
            return before
        asked = self._reader.initialOffset()
        # A query that has stood still may ask when records that another one has read are removed; its micro-batch was
        # planned before.
        self._first = asked if self._first is None else self._first
        return self._first

    def latest(self, before: Any, query: Query) -> Any:
        self._asked_at = query.world.now_micros
        # The first micro-batch runs even if there is nothing.
        return json.loads(json.dumps(self._reader.latestOffset(self.start(before), self._limit)))

    def has_news(self, before: Any, query: Query) -> bool:
        return query.world.now_micros >= self._asked_at + 1e6 * _POLL_SECONDS

    def wakes_in(self, before: Any, query: Query) -> float | None:
        return _POLL_SECONDS

    def newest(self) -> Any:
        return self._reader.reportLatestOffset()

    def committed(self, end: Any) -> None:
        if end is not None:
            self._reader.commit(end)

    def parts(self, start: Any, end: Any, clock_micros: int, query: Query) -> list[Any]:
        rows = [next(self._reader.read(each))[0] for each in self._reader.partitions(self.start(start), end)]
        return [[pa.RecordBatch.from_pydict({"ranges": [row], "clock": [clock_micros]})] for row in rows]
