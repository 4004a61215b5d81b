"""Numbers one after the other (Beam's ``apache_beam.io.external.generate_sequence``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock import graph
from penstock.checks.whole_numbers import check_whole_number
from penstock.checks.window_lengths import positive_micros
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.elements.bounded_window import TimestampedValue
from penstock.error import refusal
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.schedules import Schedule
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import FlatMap, Map
from penstock.utils.timestamp import DurationTypes, Timestamp

__all__ = ["FULL_SPEED_PER_SECOND", "GenerateSequence", "SequenceSource"]

FULL_SPEED_PER_SECOND = 10_000
"""The numbers per second of a sequence that follows the clock without a given speed."""

_PIECES_MAX = 1000
_PIECE_NUMBERS_MIN = 10_000


@dataclass(frozen=True)
class SequenceSource(graph.Source):
    """Numbers that arrive one after the other by the clock; the time when each is due is its event time.

    >>> SequenceSource(0, 10, 5, 2_000_000).describe()
    'SequenceSource(5 every 2 s)'
    >>> SequenceSource(7, None, 5, 2_000_000).element(2, 800_000)
    TimestampedValue(9, Timestamp(0.8))
    """

    start: int
    stop: int | None = None  # The number after the last one.
    elements_per_period: int = FULL_SPEED_PER_SECOND
    period_micros: int = 1_000_000
    max_read_micros: int | None = None  # For how long numbers arrive.

    @property
    def is_bounded(self) -> bool:  # type: ignore[override]
        """True if the sequence ends."""
        return self.stop is not None or self.max_read_micros is not None

    def describe(self) -> str:
        return f"SequenceSource({self.elements_per_period} every {self.period_micros / 1e6:g} s)"

    def schedule_from(self, started_micros: int) -> Schedule:
        """Returns when the numbers are due if the pipeline starts at that time, with the first number."""
        schedule = Schedule(started_micros, self.period_micros, self.elements_per_period)
        counts = [] if self.stop is None else [self.stop - self.start]
        if self.max_read_micros is not None:
            counts.append(schedule.count_before(started_micros + self.max_read_micros))
        return replace(schedule, count=min(counts, default=None))

    def element(self, number: int, due_micros: int) -> TimestampedValue[int]:
        """Returns one of the numbers, counted from 0."""
        return TimestampedValue(self.start + number, Timestamp.from_micros(due_micros))


class GenerateSequence(PTransform[Any, Any]):
    """Emits consecutive integers, beginning with `start` (Beam's ``GenerateSequence``, as in Beam's Java SDK).

    With only a `stop`, all numbers exist from the beginning, at the minimum timestamp. Otherwise they
    follow the clock: the first arrives when the pipeline starts, and the time when each is due is its event time.
    Without `elements_per_period`, Java's numbers arrive as fast as possible; these arrive 10,000 a second.

    With `stop` or `max_read_time` the sequence is bounded.

    Args:
        start: The first number, not negative.
        stop: The number after the last one.
        elements_per_period: How many numbers arrive in a period.
        max_read_time: After how many seconds numbers stop arriving.
        expansion_service: Has no effect: there is nothing to expand.
        period: The length of a period, in seconds (penstock's own; Beam's Python has no such argument).

    >>> GenerateSequence(0, elements_per_period=100).source
    SequenceSource(start=0, stop=None, elements_per_period=100, period_micros=1000000, max_read_micros=None)
    """

    def __init__(
        self,
        start: int,
        stop: int | None = None,
        elements_per_period: int | None = None,
        max_read_time: DurationTypes | None = None,
        expansion_service: object = None,
        *,
        period: DurationTypes = 1,
    ) -> None:
        super().__init__()
        check_whole_number("start", start, 0)
        if stop is not None:
            check_whole_number("stop", stop, start)
        period_micros = positive_micros("period parameter", period)
        if elements_per_period is not None:
            check_whole_number("elements_per_period", elements_per_period, 1)
        elif period != 1:
            what = f"period={period!r} has no meaning without elements_per_period"
            raise refusal(ValueError, what, hint="say how many numbers come in a period")
        self.source = SequenceSource(
            start,
            stop,
            elements_per_period or FULL_SPEED_PER_SECOND,
            period_micros,
            None if max_read_time is None else positive_micros("max_read_time parameter", max_read_time),
        )
        self._pieces: list[range] | None = None
        if stop is not None and elements_per_period is None and max_read_time is None:
            self._pieces = _pieces(start, stop)

    def expand(self, pbegin: PBegin) -> PCollection[int]:
        """Returns the source if the numbers follow the clock; otherwise pieces of the sequence, for many tasks."""
        made: PCollection[int]
        if self._pieces is None:
            numbers = pbegin | "GenSequence" >> SourceTransform(self.source)
            made = numbers | "MapToTimestamped" >> Map(lambda number: number).with_output_types(int)
        else:
            pieces = pbegin | "Pieces" >> Create(self._pieces)
            made = pieces | "Numbers" >> FlatMap(lambda piece: piece).with_output_types(int)
        return made


def _pieces(start: int, stop: int) -> list[range]:
    """The numbers in pieces of equal size.

    >>> _pieces(0, 25_000)
    [range(0, 10000), range(10000, 20000), range(20000, 25000)]
    """
    size = max(_PIECE_NUMBERS_MIN, -(-(stop - start) // _PIECES_MAX))
    return [range(first, min(first + size, stop)) for first in range(start, stop, size)]
