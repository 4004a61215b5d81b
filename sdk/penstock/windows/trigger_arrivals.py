"""Triggers without parts that wait for what arrives: elements, what they hold, and signals from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from penstock.error import three_parts
from penstock.windows.trigger_base import FiresOnce, TriggerFn, shown
from penstock.windows.trigger_composites import Repeatedly


class _FiresOnceOnArrival(FiresOnce):
    """Fires once, when something has arrived."""

    def get_continuation_trigger(self) -> TriggerFn:
        """At each element: what comes has been judged already."""
        return AfterCount(1)


@dataclass(frozen=True, repr=False)
class AfterCount(_FiresOnceOnArrival):
    """Once, when a pane has that many elements (Beam's ``AfterCount``).

    Args:
        count: A whole number, 1 or more.

    Raises:
        ValueError: `count` is not.
    """

    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, Integral) or self.count < 1:
            what = f"the count of AfterCount must be a positive integer, but is {self.count!r}"
            raise ValueError(three_parts(what, hint="give a whole number, 1 or more"))


@dataclass(frozen=True, repr=False)
class AfterBytes(_FiresOnceOnArrival):
    """Once, when the values of a pane take that many bytes together (the paper's section 2.3).

    Args:
        size_bytes: A whole number, 1 or more.
        size_of: From a value to its size in bytes; by default the size of its pickled form.

    Raises:
        ValueError: `size_bytes` is not such a number.
        TypeError: `size_of` cannot be called.

    >>> AfterBytes(1_000_000, len)
    AfterBytes(1000000, len)
    """

    size_bytes: int
    size_of: Callable[[Any], int] | None = None

    def __post_init__(self) -> None:
        is_whole = isinstance(self.size_bytes, Integral) and not isinstance(self.size_bytes, bool)
        if not is_whole or self.size_bytes < 1:
            what = f"the size of AfterBytes must be a positive integer, but is {self.size_bytes!r}"
            raise ValueError(three_parts(what, hint="give a number of bytes, 1 or more"))
        if self.size_of is not None:
            _check_callable("AfterBytes", self.size_of)


@dataclass(frozen=True, repr=False)
class AfterPunctuation(_FiresOnceOnArrival):
    """Once, when a value arrives that a predicate holds for, such as an end mark (the paper's section 2.3).

    Args:
        predicate: A function of a value; in a collection of pairs, of the second part.

    Raises:
        TypeError: `predicate` cannot be called.

    >>> AfterPunctuation(str.isspace)
    AfterPunctuation(isspace)
    """

    predicate: Callable[[Any], Any]

    def __post_init__(self) -> None:
        _check_callable("AfterPunctuation", self.predicate)


@dataclass(frozen=True, init=False, repr=False)
class AfterPattern(_FiresOnceOnArrival):
    """Once, when values have arrived that fulfil each predicate in turn to the last.

    One value counts for one predicate. (The paper names pattern matching in its section 2.3.)

    Args:
        predicates: Functions of a value; in a collection of pairs, of the second part.
        contiguous: Whether no other value may come between those that match.

    Raises:
        ValueError: There are no predicates.
        TypeError: A predicate cannot be called, or `contiguous` is not True or False.

    >>> AfterPattern(str.isalpha, str.isdigit, contiguous=True)
    AfterPattern(isalpha, isdigit, contiguous=True)
    """

    predicates: tuple[Callable[[Any], Any], ...]
    contiguous: bool

    def __init__(self, *predicates: Callable[[Any], Any], contiguous: bool = False) -> None:
        if not predicates:
            hint = "write it like AfterPattern(is_opened, is_closed)"
            raise ValueError(three_parts("AfterPattern has no predicates", hint=hint))
        for predicate in predicates:
            _check_callable("AfterPattern", predicate)
        if not isinstance(contiguous, bool):
            what = f"contiguous is True or False, not {contiguous!r}"
            raise TypeError(three_parts(what, hint="pass the predicates one by one, before it"))
        object.__setattr__(self, "predicates", predicates)
        object.__setattr__(self, "contiguous", contiguous)

    def __repr__(self) -> str:
        arguments = [*map(shown, self.predicates), *["contiguous=True"] * self.contiguous]
        return f"AfterPattern({', '.join(arguments)})"


@dataclass(frozen=True, repr=False)
class AfterDelta(TriggerFn):
    """Whenever the result has moved far enough since the last pane, without end (Flink's ``DeltaTrigger``).

    Args:
        threshold: A distance, 0 or more; a pane fires when the result has moved by more.
        initial: What the first pane's result is compared with.
        distance: From the last pane's result and the present one to how far they are apart; by default the
            absolute value of their difference.

    Raises:
        ValueError: `threshold` is not such a number.
        TypeError: `distance` cannot be called.

    >>> AfterDelta(10).measure(3, -4)
    7
    >>> AfterDelta(10, initial=100).get_continuation_trigger()
    Repeatedly(AfterCount(1))
    """

    threshold: float
    initial: Any = 0
    distance: Callable[[Any, Any], Any] | None = None

    def __post_init__(self) -> None:
        is_number = isinstance(self.threshold, Real) and not isinstance(self.threshold, bool)
        # Not a number (nan) is neither less than 0 nor anything else.
        if not (is_number and self.threshold >= 0):
            what = f"the threshold of AfterDelta must be a number, 0 or more, but is {self.threshold!r}"
            raise ValueError(three_parts(what, hint="give the distance that a result may move unnoticed"))
        if self.distance is not None:
            _check_callable("AfterDelta", self.distance)

    @property
    def measure(self) -> Callable[[Any, Any], Any]:
        """The distance: the one given, or the default."""
        return _absolute_difference if self.distance is None else self.distance

    def get_continuation_trigger(self) -> TriggerFn:
        """At every element: what comes has been judged already."""
        return Repeatedly(AfterCount(1))


@dataclass(frozen=True, repr=False)
class AfterSignal(_FiresOnceOnArrival):
    """Once, when a signal of that name comes from outside of the pipeline (the paper's section 2.3).

    Raises:
        ValueError: `name` is empty.
        TypeError: `name` is not a string.

    >>> AfterSignal("the auditors are here")
    AfterSignal('the auditors are here')
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(
                three_parts(
                    f"the name of a signal is a string, not {self.name!r}", hint="write AfterSignal('flush')"
                )
            )
        if not self.name:
            raise ValueError(
                three_parts("the name of the signal is empty", hint="write AfterSignal('flush')")
            )


def _check_callable(owner: str, function: Any) -> None:
    if not callable(function):
        what = f"{owner} needs a function, but got {function!r}"
        raise TypeError(three_parts(what, hint="pass a function of a value, such as lambda value: value > 3"))


def _absolute_difference(one: Any, other: Any) -> Any:
    return abs(one - other)
