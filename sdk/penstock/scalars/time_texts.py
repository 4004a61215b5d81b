"""The functions that show times as text, and read times of text."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from penstock.scalars.casting import Compute, moment_of_micros, refuse, try_function, whole_micros
from penstock.scalars.function import Arguments, Resolve, ScalarFunction, choose_always
from penstock.scalars.resolving import SqlTypeError, cast, coerce, do_not_fit, readable, takes, try_cast
from penstock.scalars.time_patterns import compile_format, compile_reading
from penstock.scalars.times import in_utc
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, SqlType

_SECONDS = "yyyy-MM-dd HH:mm:ss"
"""The pattern of functions that take one and get none."""

# Values


def _show(time: datetime.datetime, pattern: str) -> str:
    return compile_format(pattern)(in_utc(time))


def _show_unix_time(seconds: int, pattern: str = _SECONDS) -> str:
    return compile_format(pattern)(moment_of_micros(seconds * 1_000_000))


def _read_moment(text: str, pattern: str) -> datetime.datetime:
    time = compile_reading(pattern)(text)
    try:
        return time.astimezone(datetime.UTC) if time.tzinfo else time.replace(tzinfo=datetime.UTC)
    except OverflowError:
        refuse("a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times")


def _read_local_time(text: str, pattern: str) -> datetime.datetime:
    return compile_reading(pattern)(text).replace(tzinfo=None)


def _unix_timestamp(time: datetime.date) -> int:
    """Whole seconds, without the fraction: before 1970 that is the second after, as in Spark."""
    micros = whole_micros(time)
    return micros // 1_000_000 if micros >= 0 else -(-micros // 1_000_000)


# Types


def _check_pattern(function: ScalarFunction, pattern: Scalar, read: Callable[[str], object]) -> None:
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str | None):
        what = f"the pattern of {function.name} is not a string literal"
        raise SqlTypeError(what, "write a pattern such as 'yyyy-MM-dd'")
    if pattern.value is not None:
        text = pattern.value
        readable(lambda: read(text))


def _with_format(signature: str) -> Resolve:
    """Takes a signature whose second argument is a pattern that times are shown by."""
    typed = takes(signature)

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        found = typed(function, arguments)
        if len(arguments) > 1:
            _check_pattern(function, arguments[1], compile_format)
        return found

    return resolve


def _reading(target: SqlType, is_try: bool) -> Resolve:
    """A cast of a text to a type of times, by a pattern or by the usual form of times."""

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        is_text = bool(arguments) and arguments[0].type.name in ("STRING", "ANY")
        if len(arguments) == 1 or (len(arguments) == 2 and not is_text):
            return (try_cast if is_try else cast)(arguments[0], target)
        if len(arguments) != 2:
            raise do_not_fit(function, arguments, "a string and a pattern such as 'yyyy-MM-dd'")
        _check_pattern(function, arguments[1], compile_reading)
        parts = (coerce(arguments[0], "STRING"), cast(arguments[1], STRING))
        if target.name == "DATE":
            return cast((TRY_TO_TIMESTAMP if is_try else TO_TIMESTAMP)(*parts), target)
        is_null = is_try or any(each.type.nullable for each in parts)
        return function.of(parts, target.or_null(is_null))

    return resolve


def _unix_timestamp_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if arguments and arguments[0].type.name == "STRING" and len(arguments) < 3:
        pattern = arguments[1] if len(arguments) == 2 else Literal(_SECONDS, STRING.or_null(False))
        return UNIX_TIMESTAMP(TO_TIMESTAMP(arguments[0], pattern))
    form = " -> BIGINT"
    if len(arguments) > 2:
        raise do_not_fit(function, arguments, "a time, or a string and a pattern such as 'yyyy-MM-dd'")
    return takes(f"DATE{form}", f"TIMESTAMP{form}", f"TIMESTAMP_NTZ{form}")(function, arguments[:1])


# Records


def _reads(name: str, target: SqlType, compute: Compute | None, *spellings: str) -> ScalarFunction:
    is_try = name.startswith("TRY_")
    return ScalarFunction(
        name=name,
        resolve=_reading(target, is_try),
        spellings=spellings,
        python=None if compute is None else choose_always(try_function(compute) if is_try else compute),
        spark=f"{name.lower()}({{all}})",
    )


TO_TIMESTAMP = _reads("TO_TIMESTAMP", TIMESTAMP, _read_moment, "TO_TIMESTAMP_LTZ")
TRY_TO_TIMESTAMP = _reads("TRY_TO_TIMESTAMP", TIMESTAMP, _read_moment)
DATE_FORMAT = ScalarFunction(
    name="DATE_FORMAT",
    resolve=_with_format("TIMESTAMP STRING -> STRING"),
    python=choose_always(_show),
    spark="date_format({all})",
)
UNIX_TIMESTAMP = ScalarFunction(
    name="UNIX_TIMESTAMP",
    resolve=_unix_timestamp_of,
    spellings=("TO_UNIX_TIMESTAMP",),
    python=choose_always(_unix_timestamp),
    spark="unix_timestamp({0})",
)

FUNCTIONS = (
    DATE_FORMAT,
    ScalarFunction(
        name="FROM_UNIXTIME",
        resolve=_with_format("BIGINT [STRING] -> STRING"),
        python=choose_always(_show_unix_time),
        spark="from_unixtime({all})",
    ),
    UNIX_TIMESTAMP,
    TO_TIMESTAMP,
    TRY_TO_TIMESTAMP,
    _reads("TO_TIMESTAMP_NTZ", TIMESTAMP_NTZ, _read_local_time),
    _reads("TO_DATE", DATE, None),
    _reads("TRY_TO_DATE", DATE, None),
)
"""The records."""
