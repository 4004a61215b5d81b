"""The lengths and offsets that WindowFns get in seconds, checked, as microseconds."""

from __future__ import annotations

import math

from penstock.error import noun_for, refusal
from penstock.utils.timestamp import Duration, DurationTypes, Timestamp, TimestampTypes
from penstock.where import here


def positive_micros(
    noun: str, length: DurationTypes, where: str | None = None, may_be_zero: bool = False
) -> int:
    """The microseconds of a length, which `noun` names in errors; `where` is by default the line of the user's program.

    Raises:
        TypeError: It is not a length.
        ValueError: It is less than a microsecond and not a zero that may be, or not finite.

    >>> positive_micros("size parameter", 1.5)
    1500000
    """
    _check_finite(noun, length, where)
    try:
        micros = Duration.of(length).micros
    except TypeError:
        raise _wrong_type(noun, length, where, "seconds as an int, a float or a Duration") from None
    if may_be_zero and (micros < 0 or length < 0):
        what = f"the {noun} must not be negative{_shown(length, where)}"
        raise refusal(ValueError, what, where=where or here(), hint="pass seconds, 0 or more")
    if micros <= 0 and not may_be_zero:
        what = f"the {noun} must be strictly positive{_shown(length, where)}"
        hint = "pass seconds, at least a microsecond (0.000001)"
        raise refusal(ValueError, what, where=where or here(), hint=hint)
    return micros


def phase_micros(
    noun: str, offset: TimestampTypes | Duration, cycle_micros: int, where: str | None = None
) -> int:
    """Returns the microseconds of an offset, seconds or a time, modulo a cycle; the rest is as in `positive_micros`.

    >>> phase_micros("offset parameter", -1, 60_000_000)
    59000000
    """
    _check_finite(noun, offset, where)
    try:
        phase = offset if isinstance(offset, Duration) else Timestamp.of(offset)
    except TypeError:
        raise _wrong_type(noun, offset, where, "seconds as an int, a float or a Timestamp") from None
    return phase.micros % cycle_micros


def _check_finite(noun: str, seconds: object, where: str | None) -> None:
    if isinstance(seconds, float) and not math.isfinite(seconds):
        what = f"the {noun} must be finite{_shown(seconds, where)}"
        raise refusal(ValueError, what, where=where or here(), hint="pass a number of seconds")


def _wrong_type(noun: str, given: object, where: str | None, wanted: str) -> TypeError:
    shown = _shown(given, where) or f", but is {noun_for(given)}"
    what = f"the {noun} must be a duration{shown}"
    return refusal(TypeError, what, where=where or here(), hint=f"pass {wanted}")


def _shown(given: object, where: str | None) -> str:
    """The given value, unless it was computed from an element: then there is a `where`."""
    return "" if where else f", but is {given!r}"
