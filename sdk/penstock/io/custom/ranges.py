"""Sources that users write in Python: a position in the data, ranges between two positions, and how a range is read."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from penstock.error import noun_for, refusal
from penstock.io.rejects import UNKNOWN_POSITION, Position
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import Streamable

__all__ = [
    "NumberedSource",
    "PartitionedSource",
    "RangeSource",
    "ReadFromSource",
    "SourceRange",
    "TimedElements",
    "UnreadableElement",
]

ElementT = TypeVar("ElementT")


class SourceRange(NamedTuple):
    """A part of a source that one task reads (penstock's own).

    Attributes:
        partition: The name of the partition that it belongs to; watermarks may follow each partition separately.
        start: Where it begins. If a partition has several ranges at once, their starts have an order: numbers, strings,
            or tuples of these.
        end: Where it ends.
    """

    partition: str
    start: Any
    end: Any


@dataclass(frozen=True)
class TimedElements:
    """Elements with their event times, as `RangeSource.read` may yield them (penstock's own).

    Attributes:
        elements: The elements.
        times_micros: The event time of each, in microseconds since 1970.
    """

    elements: Sequence[Any]
    times_micros: Sequence[int]


@dataclass(frozen=True)
class UnreadableElement:
    """Replaces an element that cannot be decoded (penstock's own).

    It is an error of the step, unless the read has an output for rejects, which then receives a
    `penstock.io.rejects.RejectedRecord`.

    Attributes:
        raw: The stored form, such as the bytes of a message.
        error: Why it cannot be decoded.
        source: The name of the file or topic that contains it; by default, the name of the range's partition.
        position: Its position in the source.
    """

    raw: Any
    error: Exception
    source: str | None = None
    position: Position = UNKNOWN_POSITION


class RangeSource(abc.ABC, Generic[ElementT]):
    """The base class of sources written in Python: derive your own, and read it with `ReadFromSource` (penstock's own).

    The driver asks for positions, divides the data between two positions into ranges, and passes each range to a task.
    The task reads the range and runs the next steps of the pipeline in the same process. In a stream, Spark's
    checkpoint keeps the positions, and a micro-batch that runs again reads the same ranges. So each element counts
    once, if `read` yields the same elements in the same order each time.

    A position is a value that JSON can hold: None, numbers, strings, lists and dicts with string keys. The source is
    pickled for the driver and for each task: open connections in its methods, not in its constructor.

    Attributes:
        has_times: Whether `read` yields `TimedElements`.
        asks_first_position_once: Whether a stream keeps the first position in its checkpoint before it reads
            anything, by a micro-batch without elements. Set it if `first_position` has a side effect. Otherwise, it is
            called more than once until the first micro-batch is committed, and should return the same position.
        poll_seconds: How long a stream waits before it asks for the last position again if there was nothing new.
        connection_errors: The exceptions that mean that the source cannot be reached now. While a pipeline runs, it
            waits for the source; a task reads its range again, and skips what it has read. If `commit` raises one, a
            warning is logged. When a pipeline starts, each is an error.
        patience_seconds: How long to wait for a source that cannot be reached.

    >>> class Squares(RangeSource[int]):
    ...     def first_position(self): return 0
    ...     def last_position(self, start, max_records): return 4
    ...     def read(self, piece): yield [number * number for number in range(piece.start, piece.end)]
    >>> squares = Squares()
    >>> [list(squares.read(piece)) for piece in squares.ranges(0, 4, parallelism=2)]
    [[[0, 1, 4, 9]]]
    """

    has_times: bool = False
    asks_first_position_once: bool = False
    poll_seconds: float = 0.1
    patience_seconds: float = 60.0
    connection_errors: tuple[type[Exception], ...] = (ConnectionError, TimeoutError)

    def describe(self) -> str:
        """Returns a line for ``explain`` and for errors, without passwords; by default the name of the class."""
        return type(self).__name__

    @abc.abstractmethod
    def first_position(self) -> Any:
        """Returns where reading begins; a stream no longer asks after its first micro-batch is committed."""

    @abc.abstractmethod
    def last_position(self, start: Any, max_records: int | None) -> Any:
        """Returns where the data that exists now ends, or `start` itself if there is nothing new.

        Args:
            start: The position up to which everything is read.
            max_records: About how many records may lie between `start` and the answer; None for no limit. A source that
                cannot count its records may ignore it.
        """

    def ranges(self, start: Any, end: Any, parallelism: int) -> Sequence[SourceRange]:
        """Returns the data between two positions, in parts; by default one range.

        A range without data makes its partition known to the watermark.

        Args:
            start: The first position.
            end: The position after the last record.
            parallelism: How many tasks run at a time.
        """
        return [SourceRange("", start, end)]

    @abc.abstractmethod
    def read(self, piece: SourceRange) -> Iterator[Any]:
        """Reads a range in a task, and yields its elements in parts, each small enough for memory.

        A part is a list of elements, some of which may be `UnreadableElement` values; or `TimedElements`; or a
        ``pyarrow.RecordBatch``, whose rows become ``Row`` values.
        """

    def commit(self, position: Any) -> None:
        """Called on the driver of a stream when everything before a position is processed, and is never read again."""

    def close(self) -> None:
        """Called on the driver after the last other call; releases what the methods have opened there."""


class PartitionedSource(RangeSource[ElementT]):
    """A source whose partitions each have a position of any kind, such as an identifier or a time (penstock's own).

    A subclass defines where each partition begins and ends, and reads a part of one. New partitions and limits are
    handled here. Each partition is read by one task at a time.

    >>> class Letters(PartitionedSource[str]):
    ...     def first_positions(self): return {"vowels": "a", "others": "b"}
    ...     def next_position(self, partition, start, max_records): return "j"
    ...     def read(self, piece): yield [f"{piece.start}-{piece.end}"]
    >>> letters = Letters()
    >>> letters.last_position({"vowels": "a"}, max_records=None)
    {'vowels': 'j', 'others': 'b'}
    >>> [list(letters.read(piece)) for piece in letters.ranges({"vowels": "a"}, {"vowels": "j"}, parallelism=2)]
    [[['a-j']]]
    """

    @abc.abstractmethod
    def first_positions(self) -> Mapping[str, Any]:
        """Returns, for each partition that exists now, the position of its first record."""

    @abc.abstractmethod
    def next_position(self, partition: str, start: object, max_records: int | None) -> Any:
        """Returns where the data of a partition ends now, or `start` itself if there is nothing new.

        Raise an error here if what follows `start` has been removed.

        Args:
            partition: The name of the partition.
            start: The position up to which it is read.
            max_records: About how many records may lie between `start` and the answer; None for no limit.
        """

    def first_position(self) -> dict[str, Any]:
        """Returns the beginning of each partition."""
        return dict(self.first_positions())

    def last_position(self, start: Mapping[str, Any], max_records: int | None) -> dict[str, Any]:
        """Returns the end of each partition, or less if there are too many records.

        A new partition is only announced: its records are read starting with the next position. A partition that no
        longer exists keeps its position, in case it returns.
        """
        first_positions = self.first_positions()
        known = [partition for partition in first_positions if partition in start]
        share = None if max_records is None else max(1, max_records // max(1, len(known)))
        ends = {partition: self.next_position(partition, start[partition], share) for partition in known}
        return {**start, **{name: ends.get(name, beginning) for name, beginning in first_positions.items()}}

    def ranges(self, start: Mapping[str, Any], end: Mapping[str, Any], parallelism: int) -> list[SourceRange]:
        """Returns a range for each partition, even if it has no records."""
        return [SourceRange(partition, start.get(partition, last), last) for partition, last in end.items()]


class NumberedSource(RangeSource[ElementT]):
    """A source whose partitions number their records, as a log or a queue does (penstock's own).

    A subclass defines which records exist, and reads a range of numbers. Positions, limits, new partitions, and the
    division of work are handled here. If records are removed before a stream has read them, the stream fails.

    Attributes:
        range_records: The number of records that justify a separate task.

    >>> class Log(NumberedSource[str]):
    ...     def bounds(self): return {"a": (10, 14), "b": (0, 1)}
    ...     def read(self, piece): yield [f"{piece.partition}{number}" for number in range(piece.start, piece.end)]
    >>> log = Log()
    >>> log.first_position(), log.last_position(log.first_position(), max_records=3)
    ({'a': 10, 'b': 0}, {'a': 12, 'b': 1})
    >>> [list(log.read(piece)) for piece in log.ranges({"a": 10, "b": 0}, {"a": 12, "b": 1}, parallelism=2)]
    [[['a10', 'a11']], [['b0']]]
    """

    range_records: int = 20_000

    @abc.abstractmethod
    def bounds(self) -> Mapping[str, tuple[int, int]]:
        """Returns, for each partition, the number of its first record, and the number after its last one."""

    def first_position(self) -> dict[str, int]:
        """Returns the first record of each partition."""
        return {partition: first for partition, (first, _) in self.bounds().items()}

    def last_position(self, start: Mapping[str, int], max_records: int | None) -> dict[str, int]:
        """Returns the end of each partition, or less if there are too many records.

        A new partition is only announced: its records are read starting with the next position.
        """
        bounds = self.bounds()
        # A partition that is gone keeps its position, in case it returns.
        ends = {
            **start,
            **{partition: first for partition, (first, _) in bounds.items() if partition not in start},
        }
        waiting = {}
        for partition, (first, end) in bounds.items():
            if partition in start:
                self._check(partition, start[partition], first, end)
                waiting[partition] = end - start[partition]
        for partition, count in divide_limit(waiting, max_records).items():
            ends[partition] += count
        return ends

    def ranges(self, start: Mapping[str, int], end: Mapping[str, int], parallelism: int) -> list[SourceRange]:
        """Returns a range for each partition, even without records; several ranges if it has many records."""
        counts = {partition: last - start.get(partition, last) for partition, last in end.items()}
        limit = max(self.range_records, -(-sum(counts.values()) // max(parallelism, 1)))
        return [
            SourceRange(
                partition, end[partition] - count + done, end[partition] - count + min(done + limit, count)
            )
            for partition, count in counts.items()
            for done in range(0, max(count, 1), limit)
        ]

    def _check(self, partition: str, start: int, first: int, end: int) -> None:
        what = f"partition {partition!r} of {self.describe()} "
        if end < start:
            what += f"ends before record {end}, but the stream has read it up to record {start}"
            raise refusal(
                ValueError, what, hint="if it was deleted and created again, start with a new checkpoint"
            )
        if first > start:
            what += f"begins at record {first}, but the stream has read it only up to record {start}"
            hint = "keep records longer; start with a new checkpoint to continue without the lost ones"
            raise refusal(ValueError, what, hint=hint)


def divide_limit(waiting: Mapping[str, int], limit: int | None) -> dict[str, int]:
    """Returns how many of the waiting records of each partition to read, in proportion, with a limit for their sum.

    >>> divide_limit({"a": 30, "b": 10, "c": 0}, 8), divide_limit({"a": 30}, None), divide_limit({"a": 5, "b": 5}, 1)
    ({'a': 6, 'b': 2, 'c': 0}, {'a': 30}, {'a': 1, 'b': 0})
    """
    total = sum(waiting.values())
    if limit is None or total <= limit:
        return dict(waiting)
    given = {partition: count * limit // total for partition, count in waiting.items()}
    left = limit - sum(given.values())
    # Those that rounding has treated worst get one more.
    for partition in sorted(waiting, key=lambda partition: -(waiting[partition] * limit % total))[:left]:
        given[partition] += 1
    return given


@dataclass(frozen=True, eq=False)
class RangesOfSource(Streamable):
    """The description of a `RangeSource` for the runner."""

    source: RangeSource[Any]

    reads_files = False
    limits_records = True
    has_partitions = True

    def describe(self) -> str:
        return self.source.describe()

    @property
    def has_times(self) -> bool:  # type: ignore[override]
        """True if its elements have their own event times."""
        return self.source.has_times

    @property
    def acknowledges(self) -> bool:  # type: ignore[override]
        """True if its class defines a method that acknowledges what is never read again."""
        return type(self.source).commit is not RangeSource.commit


class ReadFromSource(SourceTransform[ElementT]):
    """Reads a `RangeSource` (penstock's own; Beam has ``Read`` of a ``BoundedSource``).

    It reads the data that exists when the pipeline starts; with ``as_stream(...)``, it also reads every addition.

    Example: ``pipeline | ReadFromSource(Log()).as_stream(max_records_per_batch=100_000)``.

    Args:
        source: The source. Another type raises a TypeError.
        label: The name of the step.
        rejects: Whether there is a second output, tagged ``"rejected"``, with a `penstock.io.rejects.RejectedRecord`
            for each `UnreadableElement`; otherwise it is an error.

    >>> class Nothing(NumberedSource[int]):
    ...     def bounds(self): return {}
    ...     def read(self, piece): yield []
    >>> ReadFromSource(Nothing()).source.describe()
    'Nothing'
    """

    def __init__(
        self, source: RangeSource[ElementT], label: str | None = None, *, rejects: bool = False
    ) -> None:
        if not isinstance(source, RangeSource):
            what = f"ReadFromSource reads a RangeSource, but got {noun_for(source)}"
            raise refusal(TypeError, what, hint="derive your class from RangeSource or NumberedSource")
        super().__init__(RangesOfSource(source), label, rejects=rejects)
