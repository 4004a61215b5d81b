"""One table of the types of values: what each is in Python and in SQL, what it can hold, and the values at its edges.

A border is where values leave Python or arrive: columns of Arrow, rows of Spark, files, databases, queries. Each border
reads this table, and adds only how it spells a type.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.typehints.column_types import LOCAL_DATETIME, UNSIGNED, ValueTypeConstraint, decimal_of
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP

DECIMAL_DIGITS = 38
"""The maximum number of digits of a decimal in a column."""

DECIMAL_SCALE = 18
"""The digits after the point of a decimal whose type says nothing about them."""

FLOAT_DIGIT_BITS = {16: 11, 32: 24, 64: 53}
"""By the bits of a float, the bits of its digits: it has each integer up to 2 to the power of them."""

FLOAT_GREATEST = {16: 65504.0, 32: 3.4028234663852886e38, 64: 1.7976931348623157e308}
"""By the bits of a float, the largest one that is finite."""

_UTC = datetime.UTC
_MICROS_MAX = (1 << 63) - 1


def _unchanged(value: object) -> object:
    return value


def _in_utc(value: datetime.datetime) -> datetime.datetime:
    return value.astimezone(_UTC)


# Classes of NumPy and pandas are known by what they have: a table that imports nothing serves programs without them.


def _is_truth(kind: type) -> bool:
    return kind.__name__ in ("bool", "bool_")


def _is_whole(kind: type) -> bool:
    return hasattr(kind, "__index__") and not _is_truth(kind)


def _is_number(kind: type) -> bool:
    return issubclass(kind, numbers.Real) and not _is_truth(kind)


def _is_decimal(kind: type) -> bool:
    return issubclass(kind, decimal.Decimal) or _is_whole(kind)


def _is_text(kind: type) -> bool:
    return issubclass(kind, str)


def _is_binary(kind: type) -> bool:
    return not issubclass(kind, str)


def _is_time(kind: type) -> bool:
    is_plain = issubclass(kind, datetime.date | datetime.time | datetime.timedelta)
    return is_plain or kind.__name__ in ("datetime64", "timedelta64")


def _is_date(kind: type) -> bool:
    return _is_time(kind) and not issubclass(kind, datetime.datetime)


def _is_nothing(kind: type) -> bool:
    return kind is type(None)


@dataclass(frozen=True, eq=False)
class ValueType:
    """A type of values; there is one object for each, also in other processes.

    Attributes:
        name: What it is called in tables and messages.
        hint: The type hint of its values.
        sql: The name of its type in SQL (``penstock.scalars.types``); ``ANY`` if SQL has none.
        limits: What a value of it may be, as a clause for hints.
        takes: True if the objects of a class may stand for its values, NumPy's and pandas' included. A library may
            still refuse some; what it would change is refused here.
        edges: The values that are likely to go wrong. A border that has the type carries all of them.
        beyond: Values that look like those of this type and are none. A border refuses them, or returns them
            equal and of their own class; it never changes them.
        least: The smallest value, for a type that has an order and an end.
        greatest: The largest one.
        returned: From a value that was written to the value that is read; the values of one class are equal, but an
            instant may come with another offset.
    """

    name: str
    hint: Any
    sql: str
    limits: str
    takes: Callable[[type], bool]
    edges: tuple[Any, ...] = ()
    beyond: tuple[Any, ...] = ()
    least: Any = None
    greatest: Any = None
    returned: Callable[[Any], Any] = _unchanged

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name,)

    @property
    def python(self) -> type:
        """The class of the values.

        >>> LOCAL_TIME.python, INTEGER.python
        (<class 'datetime.datetime'>, <class 'int'>)
        """
        return self.hint.value_class if isinstance(self.hint, ValueTypeConstraint) else self.hint

    def same(self, one: Any, other: Any) -> bool:
        """True if two values are identical for a user: equal, of one class, and both NaN, or both -0.0.

        >>> FLOAT.same(0.0, -0.0), FLOAT.same(math.nan, math.nan), FLOAT.same(1.0, 1)
        (False, True, False)
        """
        if type(one) is not type(other):
            return False
        if isinstance(one, float | decimal.Decimal) and math.isnan(one):
            return math.isnan(other)
        if isinstance(one, float):
            return bool(one == other) and math.copysign(1, one) == math.copysign(1, other)
        if isinstance(one, datetime.datetime | datetime.time):
            # Keys with other zones are other keys.
            return bool(one == other) and one.tzinfo == other.tzinfo
        return bool(one == other)


def _moments(zone: datetime.tzinfo | None) -> tuple[datetime.datetime, ...]:
    return tuple(
        each.replace(tzinfo=zone)
        for each in (
            datetime.datetime.min,
            # Around the end of the Julian calendar, the epoch, and what 64 bits hold of nanoseconds.
            datetime.datetime(1582, 10, 14, 23, 59, 59, 999_999),
            datetime.datetime(1600, 1, 1),
            datetime.datetime(1677, 9, 21, 0, 12, 43, 145_224),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime.datetime(1970, 1, 1),
            # In Berlin, the first is in a gap, and the second is twice.
            datetime.datetime(2026, 3, 29, 2, 30),
            datetime.datetime(2026, 10, 25, 2, 30, fold=0),
            datetime.datetime(2262, 4, 11, 23, 47, 16, 854_776),
            datetime.datetime.max,
        )
    )


def _at(hours: int, minutes: int, seconds: int) -> datetime.timezone:
    return datetime.timezone(datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds))


_ZONED = (
    # The offsets of Monrovia before 1972 and of Paris before 1911 had seconds.
    datetime.datetime(1960, 5, 6, 7, 8, 9, tzinfo=_at(0, -44, -30)),
    datetime.datetime(1900, 1, 1, tzinfo=_at(0, 9, 21)),
    datetime.datetime(2026, 1, 1, tzinfo=_at(14, 0, 0)),
)

BOOLEAN = ValueType("boolean", bool, "BOOLEAN", "True or False", _is_truth, (False, True), (1, "True"))
INTEGER = ValueType(
    "integer",
    int,
    "BIGINT",
    "an int has 64 bits",
    _is_whole,
    (0, 1, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)),
    (2**63, -(2**63) - 1, 1.5, True, "7"),
    least=-(2**63),
    greatest=2**63 - 1,
)
UNSIGNED_INTEGER = ValueType(
    "unsigned integer",
    UNSIGNED,
    "BIGINT",
    "an int without a sign is from 0 to 2**64 - 1",
    _is_whole,
    (0, 1, 2**63 - 1, 2**63, 2**64 - 1),
    (-1, 2**64, 1.5),
    least=0,
    greatest=2**64 - 1,
)
FLOAT = ValueType(
    "float",
    float,
    "DOUBLE",
    "a float has 64 bits",
    _is_number,
    (0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1 + 0.2, 2.0**53),
    (2**53 + 1, True, "1.5"),
)
DECIMAL = ValueType(
    "decimal",
    decimal.Decimal,
    "DECIMAL",
    f"a Decimal has at most {DECIMAL_DIGITS} digits, and no more after the point than its type says",
    _is_decimal,
    tuple(
        map(
            decimal.Decimal,
            (
                "0",
                "1.50",
                "-0.000000000000000001",
                "9" * 20 + "." + "9" * 18,
                "-" + "9" * 20 + "." + "9" * 18,
            ),
        )
    ),
    (*map(decimal.Decimal, ("1E20", "1E-19", "NaN", "Infinity")), 1.5),
)
WIDE_DECIMAL = ValueType(
    "wide decimal",
    decimal_of(DECIMAL_DIGITS, 0),
    "DECIMAL",
    DECIMAL.limits,
    _is_decimal,
    (decimal.Decimal(0), decimal.Decimal("9" * 38), decimal.Decimal("-" + "9" * 38)),
    (decimal.Decimal(10**38), decimal.Decimal("0.5")),
)
TEXT = ValueType(
    "text",
    str,
    "STRING",
    "a string has no halves of characters (lone surrogates)",
    _is_text,
    (
        "",
        " ",
        "a",
        "é",
        "\U0001f600",
        "a\r\nb\tc",
        "\x00",
        '"',
        "'",
        "\\",
        ",",
        "null",
        "NaN",
        "7",
        "1e5",
        "#",
    ),
    ("\ud800", b"text", 7),
)
BINARY = ValueType(
    "bytes",
    bytes,
    "BINARY",
    "a value of bytes cannot be a string",
    _is_binary,
    (b"", b"\x00\xff", b"text"),
    ("text", 7),
)
DATE = ValueType(
    "date",
    datetime.date,
    "DATE",
    "a date has no time of day",
    _is_date,
    (
        datetime.date.min,
        datetime.date(1582, 10, 4),
        datetime.date(1582, 10, 10),
        datetime.date(1600, 1, 1),
        datetime.date(1969, 12, 31),
        datetime.date(1970, 1, 1),
        datetime.date(2024, 2, 29),
        datetime.date.max,
    ),
    (datetime.datetime(2026, 1, 2, 3), 7, "2026-01-02"),
    least=datetime.date.min,
    greatest=datetime.date.max,
)
TIME = ValueType(
    "time of day",
    datetime.time,
    "ANY",
    "a time of day has microseconds and no zone",
    _is_time,
    (datetime.time.min, datetime.time(0, 0, 0, 1), datetime.time(12, 30), datetime.time.max),
    (datetime.time(1, tzinfo=_UTC), 7),
)
INSTANT = ValueType(
    "instant",
    datetime.datetime,
    "TIMESTAMP",
    "an instant is a datetime with a zone",
    _is_time,
    (*_moments(_UTC), *_ZONED),
    (datetime.datetime(2026, 1, 1), MIN_TIMESTAMP, MAX_TIMESTAMP, 7, 1.5),
    least=datetime.datetime.min.replace(tzinfo=_UTC),
    greatest=datetime.datetime.max.replace(tzinfo=_UTC),
    returned=_in_utc,
)
LOCAL_TIME = ValueType(
    "local time",
    LOCAL_DATETIME,
    "TIMESTAMP_NTZ",
    "a local time is a datetime without a zone",
    _is_time,
    _moments(None),
    (datetime.datetime(2026, 1, 1, tzinfo=_UTC), 7),
    least=datetime.datetime.min,
    greatest=datetime.datetime.max,
)
DURATION = ValueType(
    "duration",
    datetime.timedelta,
    "INTERVAL",
    "a timedelta has 64 bits of microseconds",
    _is_time,
    tuple(
        datetime.timedelta(microseconds=each)
        # Below, pyarrow accepts no timedelta with a fraction of a second.
        for each in (
            0,
            1,
            -1,
            999,
            1000,
            -86_400_000_000,
            2_678_400_000_000,
            _MICROS_MAX,
            -_MICROS_MAX // 10**6 * 10**6 + 10**6,
        )
    ),
    (datetime.timedelta.max, datetime.timedelta.min, 7),
    # NumPy takes the number below this one for no time at all.
    least=datetime.timedelta(microseconds=-_MICROS_MAX),
    greatest=datetime.timedelta(microseconds=_MICROS_MAX),
)
NOTHING = ValueType("null", type(None), "NULL", "None", _is_nothing, (), (0, ""))

TYPES = (
    *(BOOLEAN, INTEGER, UNSIGNED_INTEGER, FLOAT, DECIMAL, WIDE_DECIMAL, TEXT, BINARY),
    *(DATE, TIME, INSTANT, LOCAL_TIME, DURATION, NOTHING),
)
"""All types."""

_BY_NAME = {each.name: each for each in TYPES}


def _named(name: str) -> ValueType:
    return _BY_NAME[name]


IN_FOLDERS = (TEXT, INTEGER, UNSIGNED_INTEGER, BOOLEAN, DATE)
"""The types whose values are in names of folders, such as ``day=2026-01-02``."""

TIMES = (TIME, INSTANT, LOCAL_TIME, DURATION)
"""The types whose values count from somewhere, in a unit of seconds."""
