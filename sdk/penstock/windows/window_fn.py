"""WindowFns: pairs of functions that assign elements to windows, and merge windows.

Arguments are in seconds, as in Beam, but everything inside is in whole microseconds. For your own WindowFn, derive from
`NonMergingWindowFn` and define `assign`, which sees the element:

>>> from penstock.transforms.window import IntervalWindow
>>> class ByPlan(NonMergingWindowFn):
...     def assign(self, context):
...         user, plan = context.element
...         seconds = 60 if plan == "gold" else 3600
...         start = context.timestamp - context.timestamp % seconds
...         return [IntervalWindow(start, start + seconds)]
>>> ByPlan().assign(WindowFn.AssignContext(90, element=("ann", "gold")))
[[60.0, 120.0)]

A WindowFn that merges derives from `WindowFn` and also defines `merge`. Its windows may carry data of the element,
which `merge` then sees; such a window defines equality and the hash with this data. Here, a round of a game lasts from
its first element until half a minute after its last one, independent of other rounds:

>>> class Round(IntervalWindow):
...     def __init__(self, start, end, name):
...         super().__init__(start, end)
...         self.name = name
...     def __eq__(self, other):
...         return super().__eq__(other) and self.name == other.name
...     def __hash__(self):
...         return hash((self.start, self.end, self.name))
>>> class Rounds(WindowFn):
...     def assign(self, context):
...         player, name = context.element
...         return [Round(context.timestamp, context.timestamp + 30, name)]
...     def merge(self, context):
...         for name in {window.name for window in context.windows}:
...             parts = [window for window in context.windows if window.name == name]
...             if len(parts) > 1:
...                 start, end = min(part.start for part in parts), max(part.end for part in parts)
...                 context.merge(parts, Round(start, end, name))
>>> class Shown(WindowFn.MergeContext):
...     def merge(self, to_be_merged, merge_result):
...         print(*to_be_merged, "become", merge_result, merge_result.name)
>>> elements = [(0, ("ann", "final")), (5, ("bob", "first")), (50, ("bob", "final"))]
>>> contexts = [WindowFn.AssignContext(time, element) for time, element in elements]
>>> Rounds().merge(Shown(window for context in contexts for window in Rounds().assign(context)))
[0.0, 30.0) [50.0, 80.0) become [0.0, 80.0) final
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.base.labels import label_from_callable
from penstock.checks.window_lengths import phase_micros, positive_micros
from penstock.coders.coders import GlobalWindowCoder, IntervalWindowCoder, PickleCoder
from penstock.coders.deterministic import encode_key
from penstock.elements.bounded_window import BoundedWindow, GlobalWindow, IntervalWindow
from penstock.error import refusal
from penstock.utils.timestamp import MIN_TIMESTAMP, Duration, DurationTypes, Timestamp, TimestampTypes
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN, HomogeneousWindowedBatch, PaneInfo, WindowedValue

if TYPE_CHECKING:
    from penstock.coders.coders import Coder


class MergeScope(Enum):
    """Which windows of a key a merging WindowFn must see when a new one joins them (penstock's own).

    A narrower scope means less work in a long history of windows. Windows that were there before have already been
    merged.

    Attributes:
        ALL: All of them.
        OVERLAPPING: The new one, and the windows that overlap or touch it: no others can merge.
        NEIGHBOURS: As for OVERLAPPING; also, merged windows never overlap, so that windows sorted by start merge only
            with the next one.
    """

    ALL = "all"
    OVERLAPPING = "overlapping"
    NEIGHBOURS = "neighbours"


class WindowFn(ABC):
    """Assigns elements to windows, and merges windows (Beam's ``WindowFn``).

    A subclass defines `assign`. If it merges, it also defines `merge`; otherwise it derives from `NonMergingWindowFn`.

    Attributes:
        merge_scope: Which windows `merge` must see (penstock's own). A subclass that defines `merge` sees all windows,
            unless it also sets this.

    >>> class Daily(NonMergingWindowFn):
    ...     def assign(self, context):
    ...         day = context.timestamp - context.timestamp % 86400
    ...         return [IntervalWindow(day, day + 86400)]
    >>> from penstock.transforms.window import IntervalWindow
    >>> Daily().assign(WindowFn.AssignContext(90000))
    [[86400.0, 172800.0)]
    """

    merge_scope: ClassVar[MergeScope] = MergeScope.ALL

    def __init_subclass__(cls, **keywords: object) -> None:
        """Resets an inherited `merge_scope` if the class has another `merge`."""
        super().__init_subclass__(**keywords)
        nearest = next(base for base in cls.__mro__ if vars(base).keys() & {"merge", "merge_scope"})
        if "merge_scope" not in vars(nearest):
            cls.merge_scope = MergeScope.ALL

    class AssignContext:
        """The facts that `assign` may use: the element (in a keyed PCollection, a pair), its time and last window."""

        __slots__ = ("element", "timestamp", "window")

        def __init__(
            self, timestamp: TimestampTypes, element: Any = None, window: BoundedWindow | None = None
        ) -> None:
            self.timestamp = Timestamp.of(timestamp)
            self.element = element
            self.window = window

    class MergeContext:
        """The windows of one key that `merge` may merge; the runner's subclass takes the result."""

        def __init__(self, windows: Iterable[BoundedWindow]) -> None:
            self.windows = list(windows)

        def merge(self, to_be_merged: Iterable[BoundedWindow], merge_result: BoundedWindow) -> None:
            """Replaces `to_be_merged`, which are some of `windows`, with `merge_result`."""
            raise NotImplementedError

    @abstractmethod
    def assign(self, assign_context: WindowFn.AssignContext) -> Iterable[BoundedWindow]:
        """Returns the windows of an element; an element without windows is not in any result of the next grouping.

        The same element and timestamp must always have the same windows, because work may be repeated.
        """

    @abstractmethod
    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Calls ``merge_context.merge`` for each set of windows that merge.

        The sets have no common windows, and windows outside all sets stay unchanged. The answer depends only on the
        windows, not on their order; if `merge` sees the resulting windows again, they stay unchanged.
        """

    def is_merging(self) -> bool:
        """True if `merge` may merge windows."""
        return True

    def get_window_coder(self) -> Coder:
        """Returns the coder of this function's windows."""
        return PickleCoder()

    def get_transformed_output_time(self, window: BoundedWindow, input_timestamp: Timestamp) -> Timestamp:
        """Returns the timestamp of an element for ``OUTPUT_AT_EARLIEST_TRANSFORMED``: by default its own."""
        return input_timestamp


class NonMergingWindowFn(WindowFn):
    """A WindowFn whose windows never merge (Beam's name)."""

    def is_merging(self) -> bool:
        return False

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Merges nothing."""


class ByFields:
    """Equality of the exact class and all attributes, including attributes of a user's subclass."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__qualname__, repr(self)))


class IntervalWindowFn(ByFields, WindowFn):
    """A WindowFn that assigns intervals."""

    def get_window_coder(self) -> Coder:
        return IntervalWindowCoder()


class ByTimestamp(IntervalWindowFn):
    """A WindowFn that assigns intervals by the timestamp alone."""

    @abstractmethod
    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        """Returns the windows of a timestamp in microseconds (penstock's own)."""

    def assign(self, assign_context: WindowFn.AssignContext) -> list[IntervalWindow]:
        return list(self.assign_micros(assign_context.timestamp.micros))


def fixed_window(timestamp_micros: int, size_micros: int, offset_micros: int) -> IntervalWindow:
    """Returns the window around a timestamp, among windows of one size that follow each other, starting at an offset.

    >>> fixed_window(-1, 60_000_000, 5_000_000)
    [-55.0, 5.0)
    """
    start_micros = timestamp_micros - (timestamp_micros - offset_micros) % size_micros
    return IntervalWindow.from_micros(start_micros, start_micros + size_micros)


class GlobalWindows(ByFields, NonMergingWindowFn):
    """Assigns every element to the `GlobalWindow` (Beam's ``GlobalWindows``).

    >>> GlobalWindows().assign(WindowFn.AssignContext(5))
    [GlobalWindow]
    """

    @classmethod
    def windowed_value(
        cls, value: object, timestamp: Timestamp = MIN_TIMESTAMP, pane_info: PaneInfo = PANE_INFO_UNKNOWN
    ) -> WindowedValue:
        """Returns an element in the global window."""
        return WindowedValue(value, timestamp, (GlobalWindow(),), pane_info)

    @classmethod
    def windowed_batch(
        cls, batch: object, timestamp: Timestamp = MIN_TIMESTAMP, pane_info: PaneInfo = PANE_INFO_UNKNOWN
    ) -> HomogeneousWindowedBatch:
        """Returns a batch of elements in the global window."""
        return HomogeneousWindowedBatch.of(batch, timestamp, (GlobalWindow(),), pane_info)

    @classmethod
    def windowed_value_at_end_of_window(cls, value: object) -> WindowedValue:
        """Returns an element in the global window, at its end."""
        return cls.windowed_value(value, GlobalWindow().max_timestamp())

    def assign(self, assign_context: WindowFn.AssignContext) -> list[GlobalWindow]:
        return [GlobalWindow()]

    def get_window_coder(self) -> Coder:
        return GlobalWindowCoder()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True, init=False, eq=False)
class FixedWindows(ByTimestamp, NonMergingWindowFn):
    """Assigns elements to windows of one size that follow each other (Beam's ``FixedWindows``).

    Args:
        size: The length of each window, in seconds.
        offset: A time when a window starts, in seconds from the epoch; taken modulo `size`.

    >>> FixedWindows(60, offset=5).assign_micros(-1)
    ([-55.0, 5.0),)
    """

    size: Duration
    offset: Duration
    size_micros: int = field(repr=False)
    offset_micros: int = field(repr=False)

    def __init__(self, size: DurationTypes, offset: TimestampTypes | Duration = 0) -> None:
        size_micros = positive_micros("size parameter", size)
        offset_micros = phase_micros("offset parameter", offset, size_micros)
        vars(self).update(
            size=Duration.from_micros(size_micros),
            offset=Duration.from_micros(offset_micros),
            size_micros=size_micros,
            offset_micros=offset_micros,
        )

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        return (fixed_window(timestamp_micros, self.size_micros, self.offset_micros),)


@dataclass(frozen=True, init=False, eq=False)
class SlidingWindows(ByTimestamp, NonMergingWindowFn):
    """Assigns elements to windows of one size, one of which starts in every period (Beam's ``SlidingWindows``).

    A period longer than the size leaves gaps between the windows; elements in a gap are in no window.

    With ``TimestampCombiner.OUTPUT_AT_EARLIEST``, an open window holds back the output watermark to its earliest
    element, which is earlier than the ends of earlier windows. So in later steps, the results of those windows must
    wait for this window. With ``OUTPUT_AT_EARLIEST_TRANSFORMED`` they do not.

    Args:
        size: The length of each window, in seconds.
        period: The time from one window's start to the next one's, in seconds.
        offset: A time when a window starts, in seconds from the epoch; taken modulo `period`.

    >>> SlidingWindows(60, 30).assign_micros(0)
    ([0.0, 60.0), [-30.0, 30.0))
    """

    size: Duration
    period: Duration
    offset: Duration
    size_micros: int = field(repr=False)
    period_micros: int = field(repr=False)
    offset_micros: int = field(repr=False)

    def __init__(
        self, size: DurationTypes, period: DurationTypes, offset: TimestampTypes | Duration = 0
    ) -> None:
        size_micros = positive_micros("size parameter", size)
        period_micros = positive_micros("period parameter", period)
        offset_micros = phase_micros("offset parameter", offset, period_micros)
        vars(self).update(
            size=Duration.from_micros(size_micros),
            period=Duration.from_micros(period_micros),
            offset=Duration.from_micros(offset_micros),
            size_micros=size_micros,
            period_micros=period_micros,
            offset_micros=offset_micros,
        )

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        latest_micros = timestamp_micros - (timestamp_micros - self.offset_micros) % self.period_micros
        starts_micros = range(latest_micros, timestamp_micros - self.size_micros, -self.period_micros)
        return tuple(IntervalWindow.from_micros(start, start + self.size_micros) for start in starts_micros)

    def get_transformed_output_time(self, window: BoundedWindow, input_timestamp: Timestamp) -> Timestamp:
        """Returns the element's timestamp, but not before the end of the window before this one.

        So an open window never holds back the results of the previous one, which overlaps it.

        >>> SlidingWindows(60, 30).get_transformed_output_time(IntervalWindow(0, 60), Timestamp(5))
        Timestamp(30)
        """
        return Timestamp.from_micros(max(input_timestamp.micros, window.end_micros - self.period_micros))


class _SessionWindows(ByTimestamp):
    gap_micros: int

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        return (IntervalWindow.from_micros(timestamp_micros, timestamp_micros + self.gap_micros),)


@dataclass(frozen=True, init=False, eq=False)
class Sessions(_SessionWindows):
    """Assigns each run of elements of a key without a long gap to one window (Beam's ``Sessions``).

    Args:
        gap_size: An element this many seconds after the previous one, or more, starts a new session.
        merge_touching: Whether an element exactly `gap_size` after the previous one still joins its session
            (penstock's own; in Beam it never does).

    >>> Sessions(10).assign_micros(5_000_000)
    ([5.0, 15.0),)
    """

    merge_scope: ClassVar[MergeScope] = MergeScope.NEIGHBOURS

    gap_size: Duration
    merge_touching: bool
    gap_micros: int = field(repr=False)

    def __init__(self, gap_size: DurationTypes, merge_touching: bool = False) -> None:
        gap_micros = positive_micros("gap_size parameter", gap_size)
        vars(self).update(
            gap_size=Duration.from_micros(gap_micros),
            merge_touching=_flag(merge_touching),
            gap_micros=gap_micros,
        )

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Merges each run of sessions that overlap (or touch, with `merge_touching`)."""
        _merge_runs(merge_context, self.merge_touching)


@dataclass(frozen=True, init=False, eq=False)
class BoundedSessions(_SessionWindows):
    """Assigns elements to sessions of limited length (Streaming Systems, chapter 4; Beam has none).

    A longer run of elements becomes several sessions, one after the other; a session may begin before the previous one
    has ended. Where a run is divided depends on earlier merges, and so on the order of elements and results. In batch,
    where all elements are known, a run is divided from its start.

    Args:
        gap_size: An element this many seconds after the previous one, or more, starts a new session.
        max_size: The maximum length of a session with its last gap, in seconds.
        merge_touching: Whether an element exactly `gap_size` after the previous one still joins its session.

    >>> BoundedSessions(60, max_size=180).assign_micros(5_000_000)
    ([5.0, 65.0),)
    """

    merge_scope: ClassVar[MergeScope] = MergeScope.OVERLAPPING

    gap_size: Duration
    max_size: Duration
    merge_touching: bool
    gap_micros: int = field(repr=False)
    max_micros: int = field(repr=False)

    def __init__(
        self, gap_size: DurationTypes, max_size: DurationTypes, merge_touching: bool = False
    ) -> None:
        gap_micros = positive_micros("gap_size parameter", gap_size)
        max_micros = positive_micros("max_size parameter", max_size)
        if max_micros < gap_micros:
            what = f"the max_size parameter is {max_size!r}, less than the gap_size parameter, {gap_size!r}"
            hint = "pass at least the gap: it is the length of a session with one element"
            raise refusal(ValueError, what, hint=hint)
        vars(self).update(
            gap_size=Duration.from_micros(gap_micros),
            max_size=Duration.from_micros(max_micros),
            merge_touching=_flag(merge_touching),
            gap_micros=gap_micros,
            max_micros=max_micros,
        )

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Merges runs of sessions that overlap (or touch, with `merge_touching`), each only up to `max_size`."""
        _merge_runs(merge_context, self.merge_touching, self.max_micros)


def _merge_runs(
    merge_context: WindowFn.MergeContext, merge_touching: bool, max_micros: float = math.inf
) -> None:
    windows = list(merge_context.windows)
    for session, places in merge_runs(windows, merge_touching, max_micros):
        if len(places) > 1:
            merge_context.merge([windows[place] for place in places], session)


def merge_runs(
    windows: Sequence[Any], merge_touching: bool, max_micros: float = math.inf
) -> Iterator[tuple[IntervalWindow, list[int]]]:
    """Yields the sessions that windows make, each with the places of its windows in the sequence, in order of time.

    >>> windows = [IntervalWindow(5, 15), IntervalWindow(20, 30), IntervalWindow(0, 10)]
    >>> list(merge_runs(windows, merge_touching=False))
    [([0.0, 15.0), [2, 0]), ([20.0, 30.0), [1])]
    """
    session, run = GrowingSession(merge_touching, max_micros), list[int]()
    bounds = [(window.start_micros, window.end_micros) for window in windows]
    for place in sorted(range(len(windows)), key=bounds.__getitem__):
        if run and not session.takes(*bounds[place]):
            yield IntervalWindow.from_micros(*session.bounds), run
            run = []
        if not run:
            session.begin(*bounds[place])
        run.append(place)
    if run:
        yield IntervalWindow.from_micros(*session.bounds), run


class GrowingSession:
    """A session that grows by the windows that come in the order of their starts.

    Args:
        merge_touching: Whether a window that starts where the session ends belongs to it.
        max_micros: The maximum length of a session.

    >>> session = GrowingSession(merge_touching=False)
    >>> session.begin(0, 10)
    >>> session.takes(5, 15), session.takes(15, 25), session.bounds
    (True, False, (0, 15))
    """

    __slots__ = ("_end_micros", "_max_micros", "_reach_micros", "_start_micros")

    def __init__(self, merge_touching: bool, max_micros: float = math.inf) -> None:
        self._reach_micros = 1 if merge_touching else 0
        self._max_micros = max_micros
        self._start_micros = self._end_micros = 0

    @property
    def bounds(self) -> tuple[int, int]:
        """The start and the end, in microseconds."""
        return self._start_micros, self._end_micros

    def begin(self, start_micros: int, end_micros: int) -> None:
        """Becomes the session of one window alone."""
        self._start_micros, self._end_micros = start_micros, end_micros

    def takes(self, start_micros: int, end_micros: int) -> bool:
        """True if a window belongs to it, which then reaches to the window's end, or farther."""
        if start_micros >= self._end_micros + self._reach_micros:
            return False
        if end_micros > self._end_micros:
            # Tests the bound before a window joins: merged sessions cannot be taken apart again.
            if end_micros - self._start_micros > self._max_micros:
                return False
            self._end_micros = end_micros
        return True


def _flag(merge_touching: bool) -> bool:
    if isinstance(merge_touching, bool):
        return merge_touching
    what = f"the merge_touching parameter must be True or False, but is {merge_touching!r}"
    hint = "use BoundedSessions(gap_size, max_size) for sessions with a maximum length"
    raise refusal(TypeError, what, hint=hint)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class UnalignedFixedWindows(IntervalWindowFn, NonMergingWindowFn):
    """Assigns elements to fixed windows that start at a different time for each key (paper, section 1.2; not in Beam).

    So the results of many keys are not all emitted at once. The phase of a key is a hash of its encoding, the same in
    every process and every run.

    Args:
        size: The length of each window, in seconds.
        offset: Added to the phase of every key; in seconds, taken modulo `size`.
        phase_of: A function from a key to its phase in seconds, instead of the hash.

    >>> windows = UnalignedFixedWindows(60, phase_of={"a": 0, "b": 20}.get)
    >>> [windows.assign(WindowFn.AssignContext(70, element=(key, 1))) for key in "ab"]
    [[[60.0, 120.0)], [[20.0, 80.0)]]
    """

    size: Duration
    offset: Duration
    phase_of: Callable[[Any], Any] | None
    size_micros: int
    offset_micros: int

    def __init__(
        self,
        size: DurationTypes,
        offset: TimestampTypes | Duration = 0,
        phase_of: Callable[[Any], Any] | None = None,
    ) -> None:
        size_micros = positive_micros("size parameter", size)
        offset_micros = phase_micros("offset parameter", offset, size_micros)
        vars(self).update(
            size=Duration.from_micros(size_micros),
            offset=Duration.from_micros(offset_micros),
            phase_of=None if phase_of is None else _function("phase_of", phase_of),
            size_micros=size_micros,
            offset_micros=offset_micros,
        )

    def assign(self, assign_context: WindowFn.AssignContext) -> list[IntervalWindow]:
        match assign_context.element:
            case (key, _):
                start_micros = self.offset_micros + self._phase_micros(key)
                return [fixed_window(assign_context.timestamp.micros, self.size_micros, start_micros)]
            case element:
                kind = type(element).__name__
                what = f"an element of type {kind} is not a (key, value) pair, so its window has no phase"
                hint = "map the elements to 2-tuples first, for example with beam.WithKeys"
                raise refusal(TypeError, what, where=f"in {self}", hint=hint)

    def _phase_micros(self, key: object) -> int:
        if self.phase_of is None:
            digest = hashlib.blake2b(encode_key(key), digest_size=8).digest()
            return int.from_bytes(digest, "big") % self.size_micros
        return phase_micros("phase of a key", self.phase_of(key), self.size_micros, where=f"in {self}")

    def __repr__(self) -> str:
        phase_of = "" if self.phase_of is None else f", phase_of={label_from_callable(self.phase_of)}"
        return f"{type(self).__name__}(size={self.size}, offset={self.offset}{phase_of})"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class PerElementFixedWindows(IntervalWindowFn, NonMergingWindowFn):
    """Assigns elements to fixed windows whose size each element chooses (Streaming Systems, chapter 4; not in Beam).

    Elements of a key that choose the same size share windows; one of these windows starts at the epoch.

    Args:
        size_of: A function from an element, in a keyed PCollection a pair of key and value, to a size in seconds. It
            must return the same size whenever it is called with the same element.

    >>> def size_by_plan(element):
    ...     user, plan = element
    ...     return 60 if plan == "gold" else 3600
    >>> PerElementFixedWindows(size_by_plan).assign(WindowFn.AssignContext(70, element=("ann", "gold")))
    [[60.0, 120.0)]
    """

    size_of: Callable[[Any], DurationTypes]

    def __init__(self, size_of: Callable[[Any], DurationTypes]) -> None:
        vars(self).update(size_of=_function("size_of", size_of))

    def assign(self, assign_context: WindowFn.AssignContext) -> list[IntervalWindow]:
        size = self.size_of(assign_context.element)
        size_micros = positive_micros("size of an element's window", size, where=f"in {self}")
        return [fixed_window(assign_context.timestamp.micros, size_micros, 0)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size_of={label_from_callable(self.size_of)})"


def _function(noun: str, given: object) -> object:
    if callable(given):
        return given
    what = f"the {noun} parameter must be a function, but is {given!r}"
    raise refusal(TypeError, what, hint="pass a function of one argument that returns seconds")
