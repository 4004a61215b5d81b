"""A batch of elements whose timestamps, windows and panes are stored once where they are all the same.

Most batches of a bounded pipeline share one timestamp, one window and one pane, so a step over them is a plain loop
over values. Steps keep the shared form wherever they can.

>>> batch = Batch([1, 2], 0, ("w",), None)
>>> batch.with_values(["a", "b"]).values
['a', 'b']
>>> batch.expand().timestamps
[0, 0]
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from itertools import compress
from typing import Any

from penstock.coders import registered_pickles
from penstock.elements.bounded_window import GlobalWindow
from penstock.error import refusal, split_hint
from penstock.utils.timestamp import MIN_TIMESTAMP
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN, PaneInfo, PaneInfoTiming
from penstock_spark.shipping.code_pickler import CodePickler
from penstock_spark.worker.sizes import estimated_bytes

CHUNK_ELEMENTS = 4096
"""The size of the batches that steps with many outputs cut: large enough to amortise, small enough to stay in cache."""

Windows = tuple[Any, ...]
GLOBAL: Windows = (GlobalWindow(),)
MIN_MICROS: int = MIN_TIMESTAMP.micros

ONLY_PANE = PaneInfo(True, True, PaneInfoTiming.ON_TIME, 0, 0)
"""The pane of every group of a bounded pipeline: the watermark passes each window once, after all its input."""


class Batch:
    __slots__ = ("panes", "timestamps", "values", "windows")

    def __init__(
        self,
        values: list[Any],
        timestamps: int | list[int] = MIN_MICROS,
        windows: Windows | list[Windows] = GLOBAL,
        panes: Any = PANE_INFO_UNKNOWN,
    ) -> None:
        self.values = values
        self.timestamps = timestamps  # Microseconds; one int for all elements, or a list with one for each.
        self.windows = windows  # A tuple of windows for all elements, or a list with a tuple for each.
        self.panes = panes  # A PaneInfo for all elements, or a list with one for each.

    @staticmethod
    def growing() -> Batch:
        """A batch without elements, to which `add` and `extend` add some."""
        return Batch([], [], [], [])

    def add(self, value: object, timestamp_micros: int, windows: Windows, pane: PaneInfo) -> None:
        self.values.append(value)
        self.timestamps.append(timestamp_micros)  # type: ignore[union-attr]
        self.windows.append(windows)  # type: ignore[union-attr]
        self.panes.append(pane)

    def extend(self, more: Batch) -> None:
        full: Any = more.expand()
        self.values += full.values
        self.timestamps += full.timestamps
        self.windows += full.windows
        self.panes += full.panes

    @property
    def shared(self) -> bool:
        return (
            not isinstance(self.timestamps, list)
            and not isinstance(self.windows, list)
            and not isinstance(self.panes, list)
        )

    @property
    def retracts(self) -> bool:
        """True if some element retracts an earlier one."""
        panes = self.panes
        if isinstance(panes, list):
            return any(pane.kind.is_retraction for pane in panes)
        return bool(panes.kind.is_retraction)

    @property
    def has_one_window_each(self) -> bool:
        windows = self.windows
        return set(map(len, windows)) <= {1} if isinstance(windows, list) else len(windows) == 1

    def estimated_bytes(self) -> int:
        """About how much memory its values take."""
        return estimated_bytes(self.values)

    def with_values(self, values: list[Any]) -> Batch:
        """The batch with other values and its own metadata: one for one, or any number if the metadata is shared."""
        return Batch(values, self.timestamps, self.windows, self.panes)

    def select(self, selectors: list[Any]) -> Batch:
        if all(selectors):
            return self
        return self._each(lambda column: list(compress(column, selectors)))

    def slice(self, start: int, stop: int) -> Batch:
        return self._each(lambda column: column[start:stop])

    def taken(self, places: list[int]) -> Batch:
        """The elements at these indexes, in that order."""
        return self._each(lambda column: [column[place] for place in places])

    def every(self, first: int, step: int) -> Batch:
        """Every `step`-th element, including the first one."""
        return self._each(lambda column: column[first::step])

    def _each(self, change: Callable[[list[Any]], list[Any]]) -> Batch:
        """The batch after a change of its values, and of the metadata that is not shared."""
        columns: tuple[Any, ...] = (self.values, self.timestamps, self.windows, self.panes)
        changed = [change(own) if isinstance(own, list) else own for own in columns]
        return Batch(*changed)

    def expand(self) -> Batch:
        """An equal batch with lists for all metadata."""
        count = len(self.values)
        return Batch(
            self.values,
            _expand(self.timestamps, count),
            _expand(self.windows, count),
            _expand(self.panes, count),
        )

    def collapse(self) -> Batch:
        """An equal batch whose shared metadata is stored once, so that later steps stay plain loops.

        >>> Batch(["a", "b"], [7, 7], [("v",), ("w",)]).collapse().timestamps
        7
        """
        return Batch(self.values, _collapse(self.timestamps), _collapse(self.windows), _collapse(self.panes))

    def explode(self) -> Batch:
        """Each element once for each of its windows.

        >>> Batch(["a", "b"], 0, [("v", "w"), ("v",)]).explode().values
        ['a', 'a', 'b']
        """
        if self.has_one_window_each:
            return self
        full = self.expand()
        single = [(window,) for own in full.windows for window in own]

        def repeated(metadata: Any) -> list[Any]:
            pairs = zip(metadata, full.windows, strict=True)
            return [item for item, own in pairs for _ in own]

        return Batch(repeated(full.values), repeated(full.timestamps), single, repeated(full.panes))

    def rows(self) -> Iterator[tuple[Any, int, Windows, Any]]:
        full = self.expand()
        return zip(full.values, full.timestamps, full.windows, full.panes, strict=True)  # type: ignore[arg-type]


def by_windows(
    windows: Windows | list[Windows], names: list[Any], values: list[Any]
) -> Iterator[tuple[Windows, list[Any], list[Any]]]:
    """Names and values of a batch, separated by distinct sets of windows.

    Elements of one window mostly share one tuple, which the step that assigned it keeps; so identity
    separates them, and a window with two tuples merely comes twice.

    >>> first, second = ("v",), ("w",)
    >>> list(by_windows([first, second, first], ["a", "b", "c"], [1, 2, 3]))
    [(('v',), ['a', 'c'], [1, 3]), (('w',), ['b'], [2])]
    """
    if not isinstance(windows, list):
        yield windows, names, values
        return
    found: dict[int, tuple[Windows, list[Any], list[Any]]] = {}
    for own, name, value in zip(windows, names, values, strict=True):
        part = found.get(id(own))
        if part is None:
            part = found[id(own)] = (own, [], [])
        part[1].append(name)
        part[2].append(value)
    yield from found.values()


def _expand(metadata: object, count: int) -> list[Any]:
    return metadata if isinstance(metadata, list) else [metadata] * count


def _collapse(metadata: object) -> Any:
    if not isinstance(metadata, list):
        return metadata
    first = metadata[0]
    # If they are not all the same, the last one mostly differs from the first.
    if metadata[-1] == first and metadata.count(first) == len(metadata):
        return first
    return metadata


def dumps(value: object) -> bytes:
    """Pickles data between stages.

    The C pickler is many times faster than cloudpickle; only objects of classes that a worker cannot import
    (those in the user's main program) need cloudpickle, which sends the class along. A registered coder
    writes the objects of its class.
    """
    try:
        return registered_pickles.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        try:
            return dumps_with_code(value)
        except Exception as error:
            said, hint = split_hint(str(error))
            raise refusal(
                TypeError,
                f"elements that have to leave the process cannot be pickled: {said}",
                hint=hint
                or "emit elements that hold plain data; open locks, files and connections in DoFn.setup",
            ) from error


def dumps_with_code(value: object) -> bytes:
    """Pickles a program with the functions and classes that a worker cannot import."""
    return registered_pickles.dumps(value, CodePickler)


loads: Callable[[bytes], Any] = pickle.loads


def encode_page(batch: Batch) -> bytes:
    return dumps((batch.values, batch.timestamps, batch.windows, batch.panes))


def decode_page(page: bytes) -> Batch:
    return Batch(*loads(page))
