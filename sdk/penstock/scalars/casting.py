"""Casts: conversions of values from one SQL type to another."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

from penstock.checks.time_zones import find_time_zone
from penstock.elements.row import Row
from penstock.error import three_parts
from penstock.scalars.nested_values import key_of_map, make_row, of_elements
from penstock.scalars.types import DIGITS_MAX, SqlType
from penstock.scalars.widths import (
    refuse_width,
    shortest_digits,
    single,
    single_of_exact,
    with_width,
)

Compute = Callable[..., Any]
"""A function that computes a value in Python."""

DECIMALS = decimal.Context(
    prec=38,
    rounding=decimal.ROUND_HALF_UP,
    Emin=-(10**6),
    Emax=37,
    traps=[decimal.Overflow, decimal.InvalidOperation, decimal.DivisionByZero],
)
"""The arithmetic of decimals: 38 digits, rounded half up."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_OFFSET_MAX = datetime.timedelta(hours=18)


def refuse(what: str, hint: str) -> NoReturn:
    """Raises the ArithmeticError of a value that has no result; the error does not show the value."""
    raise ArithmeticError(three_parts(what, hint=hint))


def overflow() -> NoReturn:
    """Refuses an integer of more than 64 bits."""
    refuse_width(64)


def whole(value: int) -> int:
    """Returns a number of at most 64 bits; any other is refused.

    >>> whole(-(1 << 63)) == -(1 << 63)
    True
    """
    return value if -(1 << 63) <= value < 1 << 63 else overflow()


def _refuse_cast(source: str, target: str) -> NoReturn:
    refuse(
        f"an SQL expression casts a {source} to {target}, and the value is not one",
        "TRY_CAST returns NULL instead",
    )


def divide_by_zero() -> NoReturn:
    """Refuses a division by zero."""
    refuse("an SQL expression divides by zero", "write NULLIF(divisor, 0) to get NULL instead")


def with_digits(value: Decimal, target: SqlType) -> Decimal:
    """Returns a decimal rounded half up to the digits after the point of its type; refuses one with too many digits.

    >>> with_digits(Decimal("1.005"), SqlType("DECIMAL", precision=4, scale=2))
    Decimal('1.01')
    """
    if target.precision is None or target.scale is None:
        return value
    if value.adjusted() > DIGITS_MAX:
        _too_many(target)
    found = value.quantize(Decimal(1).scaleb(-target.scale), decimal.ROUND_HALF_UP, _ANY_DIGITS)
    if not found:
        # Spark's zero has no sign.
        return found.copy_abs()
    return found if found.adjusted() < target.precision - target.scale else _too_many(target)


_ANY_DIGITS = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def _too_many(target: SqlType) -> NoReturn:
    kind = target.or_null()
    refuse(
        f"a number of an SQL expression has more digits than {kind}", "CAST to a wider DECIMAL or to DOUBLE"
    )


# Times


def whole_micros(time: datetime.date) -> int:
    """Microseconds from 1970 to an instant, a local time or the start of a date.

    >>> whole_micros(datetime.date(1969, 12, 31))
    -86400000000
    """
    if not isinstance(time, datetime.datetime):
        return (time.toordinal() - _EPOCH.toordinal()) * 86_400_000_000
    return ((time if time.tzinfo else time.replace(tzinfo=datetime.UTC)) - _EPOCH) // _MICROSECOND


def moment_of_micros(micros: int, zone: datetime.tzinfo | None = datetime.UTC) -> datetime.datetime:
    """Returns the instant `micros` microseconds after 1970; a local time if `zone` is None."""
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=micros)
    except OverflowError:
        _refuse_year()
    return moment if zone else moment.replace(tzinfo=None)


def date_of_days(ordinal: int) -> datetime.date:
    """Returns the date of a number of days, as ``date.toordinal`` counts them."""
    if not 1 <= ordinal <= datetime.date.max.toordinal():
        _refuse_year()
    return datetime.date.fromordinal(ordinal)


def _refuse_year() -> NoReturn:
    refuse("a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times")


# Text

_SPACES = "".join(map(chr, range(33))) + "\x7f"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_TRUE = frozenset(["t", "true", "y", "yes", "1"])
_FALSE = frozenset(["f", "false", "n", "no", "0"])
_SPECIAL_FLOATS = {
    **dict.fromkeys(["inf", "+inf", "infinity", "+infinity"], math.inf),
    **dict.fromkeys(["-inf", "-infinity"], -math.inf),
    **dict.fromkeys(["nan", "+nan", "-nan"], math.nan),
}
_DATE = r"([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_DATE_TEXT = re.compile(rf"\+?{_DATE}(?:[ T].*)?)?)?", re.DOTALL)
_MOMENT_TEXT = re.compile(
    rf"\+?{_DATE}(?:[ T]([0-9]{{1,2}})(?::([0-9]{{1,2}})(?::([0-9]{{1,2}})(?:\.([0-9]*))?(.*))?)?)?)?)?",
    re.DOTALL,
)
_OFFSET = re.compile(r"([+-])([0-9]{1,2})(?::?([0-9]{1,2})(?::?([0-9]{2}))?)?")


def text_of(value: object) -> str:
    """Returns a value as ``CAST(value AS STRING)`` writes it.

    >>> text_of(1e10), text_of(0.5), text_of(datetime.timedelta(hours=-25)), text_of(True)
    ('1.0E10', '0.5', "INTERVAL '-1 01:00:00' DAY TO SECOND", 'true')
    """
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return _text_of_float(value, repr(value))
        case Decimal():
            return format(value, "f")
        case datetime.datetime():
            moment = value if value.tzinfo in (datetime.UTC, None) else value.astimezone(datetime.UTC)
            clock = moment.replace(tzinfo=None, microsecond=0).isoformat(" ")
            return clock + _fraction(value.microsecond)
        case datetime.timedelta():
            micros = abs(value // _MICROSECOND)
            sign = "-" if value < datetime.timedelta(0) else ""
            seconds, fraction = divmod(micros, 1_000_000)
            clock = (
                f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{_fraction(fraction)}"
            )
            return f"INTERVAL '{sign}{seconds // 86_400} {clock}' DAY TO SECOND"
        case bytes():
            return _text_of_bytes(value)
    return str(value)


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        refuse("an SQL expression casts bytes to STRING that are not UTF-8", "keep them as BINARY")


def _fraction(micros: int) -> str:
    return f".{micros:06d}".rstrip("0") if micros else ""


def text_of_single(value: float) -> str:
    """Returns a float of 32 bits as ``CAST(value AS STRING)`` writes it.

    >>> text_of_single(single(0.1)), text_of_single(single(1e10))
    ('0.1', '1.0E10')
    """
    return _text_of_float(value, shortest_digits(value) if math.isfinite(value) else "")


def _text_of_float(value: float, shortest: str) -> str:
    """Returns a float as Java writes it: with the digits of the shortest decimal, and with exponents of its own."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(shortest).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    if len(text) == 1:
        # Java writes two digits at least, and those that are nearest.
        sign, digits, exponent = Decimal(f"{value:.1e}").as_tuple()
        text = "".join(map(str, digits)).rstrip("0") or "0"
    assert isinstance(exponent, int)
    point = len(digits) + exponent
    minus = "-" if sign else ""
    if not value:
        return f"{minus}0.0"
    if -3 < point <= 7:
        padded = text.ljust(point, "0") if point > 0 else "0" * (1 - point) + text
        point = max(point, 1)
        return f"{minus}{padded[:point]}.{padded[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _boolean_of_text(text: str) -> bool:
    word = text.strip(_SPACES).lower()
    if word in _TRUE:
        return True
    return False if word in _FALSE else _refuse_cast("text", "BOOLEAN")


def _whole_of_text(text: str) -> int:
    text = text.strip(_SPACES)
    if not _WHOLE.fullmatch(text):
        _refuse_cast("text", "BIGINT")
    # Python refuses to read thousands of digits, and they are too many anyway.
    digits = text.lstrip("+-").lstrip("0")
    return overflow() if len(digits) > 19 else whole(int(text))


def _float_of_text(text: str) -> float:
    text = text.strip(_SPACES)
    # Java, and so Spark, takes the suffixes of its own source text.
    number = text[:-1] if text[-1:] in ("d", "D", "f", "F") else text
    if _FLOAT.fullmatch(number):
        return float(number)
    if _HEXADECIMAL.fullmatch(number):
        return _float_of_hexadecimal(number)
    special = _SPECIAL_FLOATS.get(text.lower())
    return _refuse_cast("text", "DOUBLE") if special is None else special


def _float_of_hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def _decimal_of_text(text: str) -> Decimal:
    text = text.strip(_SPACES)
    if not _FLOAT.fullmatch(text):
        _refuse_cast("text", "DECIMAL")
    return _decimal(Decimal(text))


def _exact_decimal_of_text(text: str) -> Decimal:
    text = text.strip(_SPACES)
    return Decimal(text) if _FLOAT.fullmatch(text) else _refuse_cast("text", "DECIMAL")


def _exact_decimal_of_float(value: float) -> Decimal | None:
    return Decimal(repr(value)) if math.isfinite(value) else None


def _decimal(value: str | int | float | Decimal) -> Decimal:
    """Returns the decimal of a number, with at most 38 digits."""
    try:
        return DECIMALS.create_decimal(value)
    except (decimal.Overflow, decimal.InvalidOperation):
        refuse("a decimal of an SQL expression has more than 38 digits", "CAST it AS DOUBLE")


def _date_of_text(text: str) -> datetime.date:
    found = _DATE_TEXT.fullmatch(text.strip(_SPACES))
    if not found:
        _refuse_cast("text", "DATE")
    year, month, day = found.groups("1")
    try:
        return datetime.date(int(year), int(month), int(day))
    except ValueError:
        _refuse_cast("text", "DATE")


def _moment_of_text(text: str) -> datetime.datetime:
    local, zone = _local_time_and_zone(text, "TIMESTAMP")
    try:
        return local.replace(tzinfo=zone).astimezone(datetime.UTC)
    except OverflowError:
        _refuse_year()


def _local_time_of_text(text: str) -> datetime.datetime:
    return _local_time_and_zone(text, "TIMESTAMP_NTZ")[0]


def _local_time_and_zone(text: str, target: str) -> tuple[datetime.datetime, datetime.tzinfo]:
    found = _MOMENT_TEXT.fullmatch(text.strip(_SPACES))
    if not found:
        _refuse_cast("text", target)
    year, month, day = (int(found.group(place) or 1) for place in (1, 2, 3))
    hour, minute, second = (int(found.group(place) or 0) for place in (4, 5, 6))
    micros = int((found.group(7) or "")[:6].ljust(6, "0"))
    zone = _zone((found.group(8) or "").strip(_SPACES), target)
    try:
        return datetime.datetime(year, month, day, hour, minute, second, micros), zone
    except ValueError:
        _refuse_cast("text", target)


def zone_of_name(name: str) -> datetime.tzinfo:
    """Returns the time zone of a name, such as Europe/Berlin or +02:00.

    >>> zone_of_name("+02:00").utcoffset(None)
    datetime.timedelta(seconds=7200)
    """
    try:
        if name:
            return _zone(name, "time zone")
    except ArithmeticError:
        pass
    refuse(
        "a time zone of an SQL expression is unknown",
        "write a name such as Europe/Berlin, or an offset such as +02:00",
    )


def _zone(name: str, target: str) -> datetime.tzinfo:
    prefix = re.match("(?:UTC|GMT|UT)(?=[+-])", name)
    offset = _OFFSET.fullmatch(name, prefix.end() if prefix else 0)
    if offset:
        sign, hours, minutes, seconds = offset.groups("0")
        length = datetime.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        if int(minutes) > 59 or int(seconds) > 59 or length > _OFFSET_MAX:
            _refuse_cast("text", target)
        return datetime.timezone(-length if sign == "-" else length)
    if name in ("", "Z", "GMT", "UT"):
        return datetime.UTC
    try:
        return find_time_zone(name)
    except ValueError:
        _refuse_cast("text", target)


# Other values


def _whole_of_float(value: float) -> int:
    # As in Spark, 2 to the power of 63 is not refused: it is the largest number.
    if not -(2.0**63) <= value <= 2.0**63:
        overflow()
    return min(int(value), (1 << 63) - 1)


def _decimal_of_float(value: float) -> Decimal | None:
    return _decimal(repr(value)) if math.isfinite(value) else None


def _moment_of_float(value: float) -> datetime.datetime:
    if not math.isfinite(value):
        _refuse_cast("DOUBLE", "TIMESTAMP")
    return moment_of_micros(math.trunc(value * 1_000_000))


def _moment_of_decimal(value: Decimal) -> datetime.datetime:
    return moment_of_micros(math.trunc(DECIMALS.scaleb(value, 6)))


def _utc_date(moment: datetime.datetime) -> datetime.date:
    return moment.astimezone(datetime.UTC).date()


def _at_midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)


def _single_of_text(text: str) -> float:
    value = _float_of_text(text)
    number = text.strip(_SPACES).rstrip("dDfF")
    return single_of_exact(Decimal(number), value) if _FLOAT.fullmatch(number) else single(value)


_OF_SINGLES: dict[tuple[str, str], Compute] = {
    ("BIGINT", "DOUBLE"): lambda value: single_of_exact(value, float(value)),
    ("DECIMAL", "DOUBLE"): lambda value: single_of_exact(value, float(value)),
    ("STRING", "DOUBLE"): _single_of_text,
}
"""The casts to floats of 32 bits, where rounding to 64 bits first may be wrong."""

_CASTS: dict[tuple[str, str], Compute] = {
    ("BOOLEAN", "BIGINT"): int,
    ("BOOLEAN", "DOUBLE"): float,
    ("BOOLEAN", "DECIMAL"): lambda value: Decimal(int(value)),
    ("BIGINT", "BOOLEAN"): bool,
    ("BIGINT", "DOUBLE"): float,
    ("BIGINT", "DECIMAL"): Decimal,
    ("BIGINT", "TIMESTAMP"): lambda value: moment_of_micros(value * 1_000_000),
    ("DOUBLE", "BOOLEAN"): bool,
    ("DOUBLE", "BIGINT"): _whole_of_float,
    ("DOUBLE", "DECIMAL"): _decimal_of_float,
    ("DOUBLE", "TIMESTAMP"): _moment_of_float,
    ("DECIMAL", "BOOLEAN"): bool,
    ("DECIMAL", "BIGINT"): lambda value: whole(int(value)),
    ("DECIMAL", "DOUBLE"): float,
    ("DECIMAL", "TIMESTAMP"): _moment_of_decimal,
    ("STRING", "BOOLEAN"): _boolean_of_text,
    ("STRING", "BIGINT"): _whole_of_text,
    ("STRING", "DOUBLE"): _float_of_text,
    ("STRING", "DECIMAL"): _decimal_of_text,
    ("STRING", "BINARY"): str.encode,
    ("STRING", "DATE"): _date_of_text,
    ("STRING", "TIMESTAMP"): _moment_of_text,
    ("STRING", "TIMESTAMP_NTZ"): _local_time_of_text,
    ("DATE", "TIMESTAMP"): _at_midnight,
    ("DATE", "TIMESTAMP_NTZ"): lambda value: _at_midnight(value).replace(tzinfo=None),
    ("TIMESTAMP", "BIGINT"): lambda value: whole_micros(value) // 1_000_000,
    ("TIMESTAMP", "DOUBLE"): lambda value: whole_micros(value) / 1_000_000,
    ("TIMESTAMP", "DECIMAL"): lambda value: DECIMALS.scaleb(Decimal(whole_micros(value)), -6),
    ("TIMESTAMP", "DATE"): _utc_date,
    ("TIMESTAMP", "TIMESTAMP_NTZ"): lambda value: value.astimezone(datetime.UTC).replace(tzinfo=None),
    ("TIMESTAMP_NTZ", "DATE"): datetime.datetime.date,
    ("TIMESTAMP_NTZ", "TIMESTAMP"): lambda value: value.replace(tzinfo=datetime.UTC),
    **{
        (name, "STRING"): text_of
        for name in (
            *("BOOLEAN", "BIGINT", "DOUBLE", "DECIMAL", "BINARY"),
            *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
        )
    },
}
"""The casts; a pair of types that is not here has no cast."""

_CLASSES: dict[str, type | tuple[type, ...]] = {
    "BOOLEAN": bool,
    "BIGINT": int,
    "DOUBLE": float,
    "DECIMAL": Decimal,
    "STRING": str,
    "BINARY": bytes,
    "TIMESTAMP": datetime.datetime,
    "TIMESTAMP_NTZ": datetime.datetime,
    "DATE": datetime.date,
    "INTERVAL": datetime.timedelta,
    "ARRAY": (list, tuple),
    "MAP": dict,
    "STRUCT": Row,
}
"""The Python class of each type's values; a class that derives from another comes before it."""


def can_cast(source: SqlType, target: SqlType) -> bool:
    """True if values of a type can become values of another.

    >>> can_cast(SqlType("STRING"), SqlType("DATE")), can_cast(SqlType("DATE"), SqlType("BIGINT"))
    (True, False)
    """
    if source.is_nested and target.is_nested:
        is_alike = source.name == target.name and len(source.fields) == len(target.fields)
        return is_alike and all(map(can_cast, source.parts, target.parts))
    if source.is_nested and target.name == "STRING":
        return all(
            each.name == "NULL" or each.name == "STRING" or can_cast(each, target) for each in source.parts
        )
    known = source.name in ("NULL", "ANY") or target.name == "ANY" or source.name == target.name
    return known or (source.name, target.name) in _CASTS


def cast_function(source: SqlType, target: SqlType, exact: bool = False) -> Compute:
    """Returns the function that makes values of a type from values of another.

    Args:
        source: The type of the values.
        target: The type of the results.
        exact: Whether values of type ANY only may have the type, and do not change.
    """
    if source.name == "ANY" and target.name != "ANY":
        return _expecting(target) if exact else _casting_any(target)
    if source.is_nested:
        return _nested_cast(source, target, cast_function)
    names = source.name, target.name
    if names == ("DOUBLE", "STRING") and source.bits == 32:
        return text_of_single
    if target.name == "DOUBLE" and target.bits == 32 and names in _OF_SINGLES:
        return _OF_SINGLES[names]
    found = _CASTS.get(names, _as_it_is)
    if target.bits < source.bits or source.name != target.name:
        found = with_width(found, target)
    if target.name == "DECIMAL" and target.precision is not None:
        return _to_digits(_EXACT_DECIMALS.get(source.name, found), target)
    return found


def _nested_cast(source: SqlType, target: SqlType, of_part: Callable[..., Compute]) -> Compute:
    """A cast of arrays, maps and structs, part by part."""
    if target.name == "STRING":
        return _nested_text(source)
    if source == target:
        return _as_it_is
    casts = [of_part(one, other) for one, other in zip(source.parts, target.parts, strict=False)]
    if all(each is _as_it_is for each in casts) and _names_of(source) == _names_of(target):
        return _as_it_is
    if source.name == "STRUCT":
        names = _names_of(target)
        return lambda row: make_row(
            names, [None if each is None else cast(each) for cast, each in zip(casts, row, strict=True)]
        )
    if source.name == "ARRAY":
        return of_elements(casts[0])
    of_key, of_value = casts
    return lambda held: {
        key_of_map(of_key(key)): None if each is None else of_value(each) for key, each in held.items()
    }


def try_cast_function(source: SqlType, target: SqlType) -> Compute:
    """The function that casts values, with None for those, and for parts of arrays and structs, that do not fit."""
    if source.is_nested and target.is_nested and source.name != "MAP":
        return _nested_cast(source, target, try_cast_function)
    cast = cast_function(source, target)
    return cast if cast is _as_it_is else try_function(cast)


def _names_of(kind: SqlType) -> tuple[str, ...]:
    return tuple(name for name, _ in kind.fields)


def _nested_text(kind: SqlType) -> Compute:
    """The text that Spark shows of an array, a map or a struct."""
    writers = [_nested_text(each) if each.is_nested else text_of for each in kind.parts]

    def text(at: int, value: object) -> str:
        return "null" if value is None else writers[at](value)

    if kind.name == "ARRAY":
        return lambda array: f"[{', '.join(text(0, each) for each in array)}]"
    if kind.name == "MAP":
        return lambda held: (
            f"{{{', '.join(f'{text(0, key)} -> {text(1, each)}' for key, each in held.items())}}}"
        )
    return lambda row: f"{{{', '.join(text(at, each) for at, each in enumerate(row))}}}"


_EXACT_DECIMALS: dict[str, Compute] = {"STRING": _exact_decimal_of_text, "DOUBLE": _exact_decimal_of_float}


def _to_digits(cast: Compute, target: SqlType) -> Compute:
    """A cast to decimals whose digits are known."""

    def compute(value: object) -> Decimal | None:
        exact: Decimal | None = cast(value)
        return None if exact is None else with_digits(exact, target)

    return compute


def try_function(cast: Compute) -> Compute:
    """Returns a function, such as a cast, that makes None where another one is refused."""

    def attempt(*values: object) -> object:
        try:
            return cast(*values)
        except ArithmeticError:
            return None

    return attempt


def _as_it_is(value: object) -> object:
    return value


def type_of_value(value: object) -> SqlType:
    """Returns the type of a Python value; ANY if SQL has no type for it.

    >>> print(type_of_value(datetime.datetime(2020, 1, 1)))
    TIMESTAMP_NTZ NOT NULL
    """
    if isinstance(value, datetime.datetime):
        return SqlType("TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ", False)
    for name, kind in _CLASSES.items():
        if isinstance(value, kind):
            return (
                _type_of_nested(name, value) if name in ("ARRAY", "MAP", "STRUCT") else SqlType(name, False)
            )
    return SqlType("ANY", False)


def _type_of_nested(name: str, value: Any) -> SqlType:
    unknown = SqlType("ANY")
    if name == "STRUCT":
        return SqlType("STRUCT", False, fields=tuple((each, unknown) for each in value.as_dict()))
    return SqlType(name, False, unknown, key=unknown if name == "MAP" else None)


def _expecting(target: SqlType) -> Compute:
    def check(value: Any) -> object:
        found = type_of_value(value).name
        if found == target.name:
            return value
        if found == "BIGINT" and target.name == "DOUBLE":
            return float(value)
        raise TypeError(
            three_parts(
                f"an SQL expression needs a value of type {target.name}, and gets one of {type(value).__name__}",
                hint="declare the type of the column, or CAST the value",
            )
        )

    return check


def _casting_any(target: SqlType) -> Compute:
    def cast(value: object) -> object:
        source = type_of_value(value)
        if not can_cast(source, target) or source.name == "ANY":
            raise TypeError(
                three_parts(
                    f"an SQL expression cannot cast a value of {type(value).__name__} to {target.name}",
                    hint="declare the type of the column",
                )
            )
        return cast_function(source, target)(value)

    return cast
