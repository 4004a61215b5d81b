"""Fixed windows that differ from key to key, in when they start, or from element to element, in how long they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.base.bounded_window import IntervalWindow
from penstock.base.labels import label_from_callable
from penstock.base.where import here
from penstock.base.window_lengths import phase_micros, positive_micros
from penstock.coders.deterministic import encode_key
from penstock.error import three_parts
from penstock.utils.timestamp import Duration, DurationTypes, TimestampTypes
from penstock.windows.window_fn import IntervalWindowFn, NonMergingWindowFn, WindowFn, fixed_window


@dataclass(frozen=True, init=False, eq=False, repr=False)
class UnalignedFixedWindows(IntervalWindowFn, NonMergingWindowFn):
    """Fixed windows that start at another time for each key (paper, section 1.2; Beam has none).

    So the results of many keys do not all come at once. The phase of a key is a hash of its encoding, the same in
    every process and every run.

    Args:
        size: The length of each window, in seconds.
        offset: Added to the phase of every key; in seconds, taken modulo `size`.
        phase_of: A function from a key to its phase in seconds, in place of the hash.

    Raises:
        TypeError: An argument is of another type; or, when an element is put into a window, it is not a pair of key and
            value, or the key has no deterministic encoding.
        ValueError: `size` is less than a microsecond, or a number of seconds is not finite.

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
        """The one window of a pair of key and value."""
        match assign_context.element:
            case (key, _):
                start_micros = self.offset_micros + self._phase_micros(key)
                return [fixed_window(assign_context.timestamp.micros, self.size_micros, start_micros)]
            case element:
                kind = type(element).__name__
                what = f"an element of type {kind} is not a (key, value) pair, so its window has no phase"
                hint = "map the elements to 2-tuples first, for example with beam.WithKeys"
                raise TypeError(three_parts(what, where=f"in {self}", hint=hint))

    def _phase_micros(self, key: Any) -> int:
        if self.phase_of is None:
            digest = hashlib.blake2b(encode_key(key), digest_size=8).digest()
            return int.from_bytes(digest, "big") % self.size_micros
        return phase_micros("phase of a key", self.phase_of(key), self.size_micros, where=f"in {self}")

    def __repr__(self) -> str:
        phase_of = "" if self.phase_of is None else f", phase_of={_name(self.phase_of)}"
        return f"{type(self).__name__}(size={self.size}, offset={self.offset}{phase_of})"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class PerElementFixedWindows(IntervalWindowFn, NonMergingWindowFn):
    """Fixed windows whose size each element chooses (Streaming Systems, chapter 4; Beam has none).

    Elements of a key that choose the same size share windows; of these, one starts at the epoch.

    Args:
        size_of: A function from an element, in a keyed PCollection a pair of key and value, to a size in seconds. It
            must give the same size whenever it is called with the same element.

    Raises:
        TypeError: `size_of` is not a function; or, when an element is put into a window, its size is not a length.
        ValueError: When an element is put into a window, its size is less than a microsecond, or not finite.

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
        """The one window of an element."""
        size = self.size_of(assign_context.element)
        size_micros = positive_micros("size of an element's window", size, where=f"in {self}")
        return [fixed_window(assign_context.timestamp.micros, size_micros, 0)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size_of={_name(self.size_of)})"


def _function(noun: str, given: Any) -> Any:
    if callable(given):
        return given
    what = f"the {noun} parameter must be a function, but is {given!r}"
    raise TypeError(
        three_parts(what, where=here(), hint="give a function of one argument that returns seconds")
    )


def _name(function: Callable[..., Any]) -> str:
    return label_from_callable(function)
