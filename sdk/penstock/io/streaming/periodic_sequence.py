"""Elements at regular times: `PeriodicImpulse` and `PeriodicSequence` (Beam's module).

An impulse whose times are all in the past is bounded input. One that continues into the future is an unbounded source,
`PeriodicSource`. Sequences come from elements, so a splittable DoFn makes them.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock import graph
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.elements.bounded_window import TimestampedValue
from penstock.error import refusal, three_parts
from penstock.functions.dofn import DoFn
from penstock.functions.dofn_parameters import RestrictionProvider
from penstock.functions.splitting import TrackerView
from penstock.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.schedules import Schedule
from penstock.io.watermark_estimators import ManualWatermarkEstimator
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.transforms.grouping.windowing import WindowInto
from penstock.typehints import Any as AnyHint
from penstock.typehints import Union
from penstock.utils.timestamp import MAX_TIMESTAMP, Duration, Timestamp, TimestampTypes
from penstock.windows.window_fn import FixedWindows

_SECONDS = Union[float, int]

__all__ = [
    "ImpulseSeqGenDoFn",
    "ImpulseSeqGenRestrictionProvider",
    "PeriodicImpulse",
    "PeriodicSequence",
    "PeriodicSource",
    "RebaseMode",
]


class RebaseMode(enum.Enum):
    """Which ends of an impulse move so that it starts when the pipeline does (Beam's name)."""

    REBASE_NONE = 0
    REBASE_ALL = 1
    """Both, by the same time."""
    REBASE_START = 2


@dataclass(frozen=True, eq=False)
class PeriodicSource(graph.Source):
    """Emits elements at regular intervals, each when the wall clock reaches its time.

    >>> source = PeriodicSource(0, 25, 10)
    >>> [due for due, _ in source.schedule()]
    [0, 10, 20]
    >>> [(due, value.value) for due, value in PeriodicSource(0, 25, 10, ("a", "b")).schedule(first=1)]
    [(10, 'b'), (20, 'a')]
    """

    start_micros: int
    stop_micros: int
    interval_micros: int
    data: tuple[Any, ...] = ()
    """The elements, repeated as needed; pairs of a `Timestamp` and a value have that event time; () means the times."""

    rebase: RebaseMode = RebaseMode.REBASE_NONE
    seconds: tuple[float, float] | None = None
    """The start and the interval in the program's own numbers: elements are integers if both are."""

    is_bounded = False

    def __post_init__(self) -> None:
        if self.interval_micros <= 0:
            what = f"the interval of a sequence is {self.interval_micros / 1e6:g} seconds"
            raise refusal(ValueError, what, hint="pass seconds, more than 0")
        if self.start_micros > self.stop_micros:
            seconds = f"{self.start_micros / 1e6:g} and {self.stop_micros / 1e6:g} seconds"
            what = f"a sequence cannot start after it stops: the times are {seconds}"
            raise refusal(ValueError, what, hint="pass a start that is before the stop")

    def describe(self) -> str:
        return f"PeriodicSource(every {self.interval_micros / 1e6:g} s)"

    @property
    def count(self) -> int:
        """The number of elements."""
        return -((self.start_micros - self.stop_micros) // self.interval_micros)

    def starting_at(self, now_micros: int) -> PeriodicSource:
        """Returns the source without rebasing, for a pipeline that starts now."""
        if self.rebase is RebaseMode.REBASE_NONE:
            return self
        length = self.stop_micros - self.start_micros
        stop = now_micros + length if self.rebase is RebaseMode.REBASE_ALL else self.stop_micros
        return PeriodicSource(now_micros, min(stop, MAX_TIMESTAMP.micros), self.interval_micros, self.data)

    def schedule(self, first: int = 0) -> Iterator[tuple[int, TimestampedValue[Any]]]:
        """Yields the time at which each element is due, in microseconds, and the element, from number `first` on."""
        due = self.start_micros + first * self.interval_micros
        while due < self.stop_micros:
            yield due, self.element(first, due)
            first += 1
            due += self.interval_micros

    def schedule_from(self, started_micros: int) -> Schedule:
        """Returns the times at which the elements are due, if the pipeline starts at that time."""
        source = self.starting_at(started_micros)
        return Schedule(source.start_micros, source.interval_micros, count=source.count)

    def element(self, number: int, due_micros: int) -> TimestampedValue[Any]:
        """Returns the element of a number, which is due at that time."""
        due = Timestamp.from_micros(due_micros)
        if not self.data:
            if self.seconds is None or self.rebase is not RebaseMode.REBASE_NONE:
                return TimestampedValue(due_micros / 1e6, due)
            start, interval = self.seconds
            return TimestampedValue(start + interval * number, due)
        chosen = self.data[number % len(self.data)]
        if _has_timestamp(chosen):
            return TimestampedValue(chosen[1], chosen[0])
        return TimestampedValue(chosen, due)


class ImpulseSeqGenRestrictionProvider(RestrictionProvider):
    """The numbers of a sequence's elements, as restrictions (Beam's name)."""

    def initial_restriction(self, element: Sequence[Any]) -> OffsetRange:
        return OffsetRange(0, _sequence(element).count)

    def create_tracker(self, restriction: OffsetRange) -> OffsetRestrictionTracker:
        return OffsetRestrictionTracker(restriction)

    def restriction_size(self, element: Sequence[Any], restriction: OffsetRange) -> float:
        return restriction.size()

    def truncate(self, element: Sequence[Any], restriction: OffsetRange) -> None:
        """Ends a sequence in a drain."""


class ImpulseSeqGenDoFn(DoFn):
    """Emits, for ``(start, stop, interval)``, its elements, each when its time has come (Beam's name)."""

    def __init__(self, data: Sequence[Any] | None = None) -> None:
        super().__init__()
        self._data = tuple(data or ())

    @DoFn.unbounded_per_element()
    def process(
        self,
        element: Sequence[Any],
        tracker: TrackerView = DoFn.RestrictionParam(ImpulseSeqGenRestrictionProvider()),
        estimator: ManualWatermarkEstimator = DoFn.WatermarkEstimatorParam(
            ManualWatermarkEstimator.default_provider()
        ),
    ) -> Iterable[TimestampedValue[Any]]:
        """Yields the elements that are due; the rest is left until the next one is."""
        first = tracker.current_restriction().start
        for number, (due_micros, value) in enumerate(_sequence(element, self._data).schedule(first), first):
            due = Timestamp.from_micros(due_micros)
            if due > Timestamp.now():
                _advance(estimator, due)
                tracker.defer_remainder(due)
                return
            if not tracker.try_claim(number):
                return
            _advance(estimator, value.timestamp)
            yield value


def _sequence(element: Sequence[Any], data: tuple[Any, ...] = ()) -> PeriodicSource:
    start, stop, interval_seconds = element
    return _source(start, stop, interval_seconds, data)


def _advance(estimator: ManualWatermarkEstimator, time: Timestamp) -> None:
    """Moves a watermark to a time, unless data with times of its own has already led it further."""
    watermark = estimator.current_watermark()
    if watermark is None or time > watermark:
        estimator.set_watermark(time)


class _PastSequence(DoFn):
    """An impulse that has ended already: its output is bounded."""

    def __init__(self, data: tuple[Any, ...]) -> None:
        super().__init__()
        self._data = data

    def process(self, element: Sequence[Any]) -> Iterable[TimestampedValue[Any]]:
        return (value for _, value in _sequence(element, self._data).schedule())


class PeriodicSequence(PTransform[Any, Any]):
    """Emits, for ``(start, stop, interval)``, the times from start to before stop, in seconds (Beam's name).

    Start and stop are timestamps or seconds since the epoch, the interval is in seconds. An element is emitted when the
    clock reaches its time. As in Beam, the result is unbounded: the pipeline is a stream, and a grouping needs windows
    or a trigger.

    Raises:
        ValueError: While the pipeline runs, if a sequence starts after its end, or its interval is not above 0.

    Example: ``Create([(0, 60, 10)]) | PeriodicSequence()`` emits six numbers.
    """

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        return pcoll | "GenSequence" >> ParDo(ImpulseSeqGenDoFn()).with_output_types(_SECONDS)


class PeriodicImpulse(PTransform[Any, Any]):
    """Emits an element every `fire_interval` seconds, from the start until before the end (Beam's name).

    An impulse that is completely in the past when it is built, and is not rebased, is bounded; any other is unbounded.

    Args:
        start_timestamp: The time of the first element; by default when the transform is built.
        stop_timestamp: No element is emitted at or after this time; by default, the impulse stops when `data` ends, or
            never.
        fire_interval: Seconds between two elements.
        apply_windowing: Whether each element gets a fixed window of `fire_interval` seconds.
        data: The elements; repeated, with a warning, if the impulse is longer. Pairs of a `Timestamp` and a
            value have that event time, and must be enough. By default, elements are their own times, in seconds
            since the epoch: integers if the start and the interval are.
        rebase: Which of the two times move to the time when the pipeline starts.

    Raises:
        ValueError: If the start is after the end, the interval is not above 0, data with timestamps is too
            short, or the start moves to a time when the impulse has ended.

    Example: ``pipeline | PeriodicImpulse(fire_interval=60)`` ticks every minute.
    """

    def __init__(
        self,
        start_timestamp: TimestampTypes | None = None,
        stop_timestamp: TimestampTypes = MAX_TIMESTAMP,
        fire_interval: float = 360.0,
        apply_windowing: bool = False,
        data: Sequence[Any] | None = None,
        rebase: RebaseMode = RebaseMode.REBASE_NONE,
    ) -> None:
        super().__init__()
        start = Timestamp.now() if start_timestamp is None else Timestamp.of(start_timestamp)
        stop = Timestamp.of(stop_timestamp)
        if data:
            stop = _checked_stop(start, stop, Duration(fire_interval), data)
        if rebase is RebaseMode.REBASE_START and stop <= Timestamp.now():
            what = "an impulse that starts with the run (REBASE_START) has a stop_timestamp in the past"
            hint = "give a later stop_timestamp, or move both with RebaseMode.REBASE_ALL"
            raise refusal(ValueError, what, where="at PeriodicImpulse", hint=hint)
        self._start = start if start_timestamp is None else start_timestamp
        self.source = _source(self._start, stop, fire_interval, tuple(data or ()), rebase)
        self._interval_seconds = fire_interval
        self._apply_windowing = apply_windowing

    def expand(self, pbegin: PBegin) -> PCollection[Any]:
        source = self.source
        output_type = AnyHint if source.data else _SECONDS
        if source.rebase is RebaseMode.REBASE_NONE and source.stop_micros <= Timestamp.now().micros:
            bounds = (self._start, Timestamp(micros=source.stop_micros), self._interval_seconds)
            made = ParDo(_PastSequence(source.data)).with_output_types(output_type)
            ticks = pbegin | "ImpulseElement" >> Create([bounds]) | "GenSequence" >> made
        else:
            ticks = pbegin | "GenSequence" >> SourceTransform(source)
            ticks |= "MapToTimestamped" >> Map(lambda tick: tick).with_output_types(output_type)
        if self._apply_windowing:
            ticks |= "ApplyWindowing" >> WindowInto(FixedWindows(self._interval_seconds))
        return ticks


def _source(
    start: TimestampTypes,
    stop: TimestampTypes,
    interval_seconds: float,
    data: tuple[Any, ...],
    rebase: RebaseMode = RebaseMode.REBASE_NONE,
) -> PeriodicSource:
    interval_micros = Duration(interval_seconds).micros
    seconds = start.micros / 1e6 if isinstance(start, Timestamp) else start, interval_seconds
    return PeriodicSource(
        Timestamp.of(start).micros, Timestamp.of(stop).micros, interval_micros, data, rebase, seconds
    )


def _has_timestamp(element: object) -> bool:
    return isinstance(element, tuple) and len(element) == 2 and isinstance(element[0], Timestamp)


def _checked_stop(start: Timestamp, stop: Timestamp, interval: Duration, data: Sequence[Any]) -> Timestamp:
    """The end of an impulse with data: by default, the data's end."""
    data_end = Timestamp(micros=start.micros + len(data) * interval.micros)
    if stop == MAX_TIMESTAMP:
        return data_end
    if data_end < stop:
        what = "the data is not enough to span the impulse's whole duration"
        where = "at PeriodicImpulse"
        if _has_timestamp(data[0]):
            hint = "give more data, or an earlier stop_timestamp"
            raise refusal(ValueError, what, where=where, hint=hint)
        warnings.warn(three_parts(what, where=where, hint="the data will be repeated"), stacklevel=3)
    return stop
