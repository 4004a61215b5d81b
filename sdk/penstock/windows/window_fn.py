"""What a WindowFn is: the pair of functions that puts elements into windows, and makes one window of several.

The ready-made ones are in `penstock.transforms.window`. To write another, derive from `NonMergingWindowFn` and
define `assign`, which sees the element:

>>> from penstock.transforms.window import IntervalWindow
>>> class ByPlan(NonMergingWindowFn):
...     def assign(self, context):
...         user, plan = context.element
...         seconds = 60 if plan == "gold" else 3600
...         start = context.timestamp - context.timestamp % seconds
...         return [IntervalWindow(start, start + seconds)]
>>> ByPlan().assign(WindowFn.AssignContext(90, element=("ann", "gold")))
[[60.0, 120.0)]

One that merges derives from `WindowFn` and defines `merge` as well. Its windows may carry data of the element, which
`merge` then sees; such a window says when it equals another, and hashes by the same. Here, a round of a game lasts
from its first element until half a minute after its last one, whatever other rounds there are meanwhile:

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

from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.base.bounded_window import BoundedWindow, IntervalWindow
from penstock.coders.coders import IntervalWindowCoder, PickleCoder
from penstock.utils.timestamp import Timestamp, TimestampTypes

if TYPE_CHECKING:
    from penstock.coders.coders import Coder


class MergeScope(Enum):
    """Which windows of a key a merging WindowFn has to be asked about when a new one joins them (penstock's own).

    The narrower the scope, the less work a long history of windows is. Windows that were there before have been
    merged already.

    Attributes:
        ALL: All of them.
        OVERLAPPING: The new one, and those that overlap or touch it: no others can merge.
        NEIGHBOURS: As for OVERLAPPING; moreover, windows that have been merged never overlap, so that sorted by
            their starts they can be merged by looking at the next one only.
    """

    ALL = "all"
    OVERLAPPING = "overlapping"
    NEIGHBOURS = "neighbours"


class WindowFn(ABC):
    """Says which windows an element is in, and which windows become one (Beam's ``WindowFn``).

    A subclass defines `assign`; one that merges also defines `merge`, one that does not derives from
    `NonMergingWindowFn`.

    Attributes:
        merge_scope: Which windows `merge` has to be asked about (penstock's own). A subclass that defines `merge`
            is asked about all, unless it sets this too.

    >>> class Daily(NonMergingWindowFn):
    ...     def assign(self, context):
    ...         day = context.timestamp - context.timestamp % 86400
    ...         return [IntervalWindow(day, day + 86400)]
    >>> from penstock.transforms.window import IntervalWindow
    >>> Daily().assign(WindowFn.AssignContext(90000))
    [[86400.0, 172800.0)]
    """

    merge_scope: ClassVar[MergeScope] = MergeScope.ALL

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Takes back what an inherited `merge_scope` promises about a `merge` that the class no longer has."""
        super().__init_subclass__(**keywords)
        nearest = next(base for base in cls.__mro__ if vars(base).keys() & {"merge", "merge_scope"})
        if "merge_scope" not in vars(nearest):
            cls.merge_scope = MergeScope.ALL

    class AssignContext:
        """What `assign` may look at.

        Args:
            timestamp: The element's event time.
            element: The element; in a keyed PCollection, the pair of key and value.
            window: The window it has been in until now.
        """

        __slots__ = ("element", "timestamp", "window")

        def __init__(
            self, timestamp: TimestampTypes, element: Any = None, window: BoundedWindow | None = None
        ) -> None:
            self.timestamp = Timestamp.of(timestamp)
            self.element = element
            self.window = window

    class MergeContext:
        """The windows that `merge` looks at; the runner's subclass takes the result.

        Args:
            windows: Windows of one key, all of them unless the `merge_scope` is narrower.
        """

        def __init__(self, windows: Iterable[BoundedWindow]) -> None:
            self.windows = list(windows)

        def merge(self, to_be_merged: Iterable[BoundedWindow], merge_result: BoundedWindow) -> None:
            """Replaces `to_be_merged`, which are some of `windows`, by `merge_result`."""
            raise NotImplementedError

    @abstractmethod
    def assign(self, assign_context: WindowFn.AssignContext) -> Iterable[BoundedWindow]:
        """The windows of an element; in none, it is in no result of the grouping that follows.

        The same element and timestamp must always have the same windows: work may be done twice.
        """

    @abstractmethod
    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Calls ``merge_context.merge`` for each set of windows that becomes one.

        The sets share no window, and windows in none of them stay as they are. The answer depends on nothing but the
        windows, and not on their order; the windows that result, asked about again, stay as they are.
        """

    def is_merging(self) -> bool:
        """Whether `merge` may do something."""
        return True

    def get_window_coder(self) -> Coder:
        """The coder of this function's windows."""
        return PickleCoder()

    def get_transformed_output_time(self, window: BoundedWindow, input_timestamp: Timestamp) -> Timestamp:
        """The timestamp an element counts with under ``OUTPUT_AT_EARLIEST_TRANSFORMED``: here, its own."""
        return input_timestamp


class NonMergingWindowFn(WindowFn):
    """A WindowFn whose windows stay as they are (Beam's name)."""

    def is_merging(self) -> bool:
        return False

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Merges nothing."""


class ByFields:
    """Equality by exact class and all attributes, including the attributes of a user's subclass."""

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
        """The windows of a timestamp in microseconds (penstock's own)."""

    def assign(self, assign_context: WindowFn.AssignContext) -> list[IntervalWindow]:
        return list(self.assign_micros(assign_context.timestamp.micros))


def fixed_window(timestamp_micros: int, size_micros: int, offset_micros: int) -> IntervalWindow:
    """The window around a timestamp, of those of one size that follow each other from an offset on.

    >>> fixed_window(-1, 60_000_000, 5_000_000)
    [-55.0, 5.0)
    """
    start_micros = timestamp_micros - (timestamp_micros - offset_micros) % size_micros
    return IntervalWindow.from_micros(start_micros, start_micros + size_micros)
