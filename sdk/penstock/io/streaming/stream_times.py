"""The functions that find the times and partitions of a stream's elements."""

from __future__ import annotations

import contextlib
import datetime
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeAlias

from penstock.checks.meant_names import list_part_names
from penstock.checks.similar_names import hint_at_name
from penstock.error import noun_for, refusal
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp

__all__ = ["MicrosOf", "PartOf", "Selector"]

Selector: TypeAlias = str | Callable[[Any], Any]
"""The name of a field, or a function of the element."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MIN_MICROS, _MAX_MICROS = MIN_TIMESTAMP.micros, MAX_TIMESTAMP.micros
_MICROS_PER_SECOND = 1_000_000


@dataclass(frozen=True)
class PartOf:
    """A function from an element to its selected part; it can be pickled if the selector can.

    `argument` is the name of the user's argument, for errors.

    >>> PartOf("partition", "shard")({"shard": 7}), PartOf("partition", len)("abc")
    (7, 3)
    """

    argument: str
    selector: Selector

    def __call__(self, element: object) -> Any:
        """Returns the selected part; raises a ValueError if the element has no such field."""
        if not isinstance(self.selector, str):
            return self.selector(element)
        try:
            if isinstance(element, Mapping):
                return element[self.selector]
            return getattr(element, self.selector)
        except (KeyError, AttributeError):
            what = f"an element of type {type(element).__name__} has no field {self.selector!r}"
            otherwise = f"correct {self.argument}, or make it a function of the element"
            hint = hint_at_name(self.selector, list_part_names(element), otherwise)
            raise refusal(ValueError, what, hint=hint) from None

    def of_all(self, elements: Sequence[Any]) -> list[Any]:
        """Returns the selected part of each element.

        >>> PartOf("partition", "real").of_all([7, 8])
        [7, 8]
        """
        if not isinstance(self.selector, str):
            return list(map(self.selector, elements))
        kinds = set(map(type, elements))
        if kinds == {dict}:
            with contextlib.suppress(KeyError):
                return list(map(operator.itemgetter(self.selector), elements))
        # Python's getter splits names at dots.
        elif "." not in self.selector and not any(issubclass(kind, Mapping) for kind in kinds):
            with contextlib.suppress(AttributeError):
                return list(map(operator.attrgetter(self.selector), elements))
        return list(map(self, elements))


@dataclass(frozen=True)
class MicrosOf:
    """A function from an element to one of its times, in microseconds since 1970; see `PartOf`.

    The time may be a ``Timestamp``, a ``datetime`` (in UTC if it has no zone), or seconds since 1970.

    >>> MicrosOf("event_time", "at")({"at": 1.5})
    1500000
    """

    argument: str
    selector: Selector

    def __call__(self, element: object) -> int:
        """Returns the time; raises a TypeError or ValueError if the element has none, or one beyond all time."""
        return self._checked(element, PartOf(self.argument, self.selector)(element))

    def _checked(self, element: object, moment: object) -> int:
        # NaN, and pandas' NaT for an unknown time, differ from themselves.
        if moment is None or (isinstance(moment, float | datetime.datetime) and moment != moment):
            raise self.missing(type(element).__name__, moment)
        micros = _micros(moment)
        if micros is None:
            what = f"the {self._noun} of an element is {noun_for(moment)}, which is not a time"
            hint = (
                "use a Timestamp, a datetime or seconds since 1970; convert others in a function, such as "
                f"{self.argument}=lambda element: Timestamp.from_rfc3339(element.time)"
            )
            raise refusal(TypeError, what, hint=hint)
        if not _MIN_MICROS <= micros < _MAX_MICROS:
            raise self.beyond()
        return micros

    def missing(self, kind: str, moment: object) -> ValueError:
        """Returns the error about an element of a kind whose time is missing, such as None."""
        what = f"an element of type {kind} has no {self._noun}: it is {moment}"
        return refusal(ValueError, what, where="", hint=_PUT_ASIDE)

    def beyond(self) -> ValueError:
        """Returns the error about an element whose time is before the first one, or after the last one."""
        what = f"the {self._noun} of an element is beyond the ends of time"
        hint = f"pass numbers as seconds since 1970, not nanoseconds; {_PUT_ASIDE}"
        return refusal(ValueError, what, where="", hint=hint)

    def of_all(self, elements: Sequence[Any]) -> list[int]:
        """Returns the times of several elements; fast if all of them are whole seconds, Timestamps, or aware datetimes.

        >>> MicrosOf("event_time", len).of_all(["a", "abc"])
        [1000000, 3000000]
        """
        moments = PartOf(self.argument, self.selector).of_all(elements)
        kinds = set(map(type, moments))
        if kinds == {int}:
            micros = [moment * _MICROS_PER_SECOND for moment in moments]
        elif kinds == {Timestamp}:
            micros = [moment.micros for moment in moments]
        elif kinds == {datetime.datetime} and all(moment.tzinfo for moment in moments):
            micros = [(moment - _EPOCH) // _MICROSECOND for moment in moments]
        else:
            return [self._checked(*pair) for pair in zip(elements, moments, strict=True)]
        if min(micros) < _MIN_MICROS or max(micros) >= _MAX_MICROS:
            return [self._checked(*pair) for pair in zip(elements, moments, strict=True)]
        return micros

    @property
    def _noun(self) -> str:
        return self.argument.replace("_", " ")


_PUT_ASIDE = "pass rejects=True to as_stream to put such elements aside"


def _micros(moment: object) -> int | None:
    """Returns the microseconds of a time; None for any other value."""
    match moment:
        case Timestamp():
            return moment.micros
        case datetime.datetime():
            aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
            return (aware - _EPOCH) // _MICROSECOND
        case bool():
            return None
        case int():
            return moment * _MICROS_PER_SECOND
        case float() if math.isfinite(moment):
            return int(moment * _MICROS_PER_SECOND)
        case SupportsIndex():
            return operator.index(moment) * _MICROS_PER_SECOND
    return None
