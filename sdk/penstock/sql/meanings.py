"""What each function of SQL computes, as plain Python functions of values that are not None."""

from __future__ import annotations

import calendar
import datetime
import decimal
import functools
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from penstock.error import three_parts
from penstock.sql import digits, regexes
from penstock.sql.casting import (
    DECIMALS,
    Meaning,
    cast_meaning,
    date_of_days,
    divide_by_zero,
    moment_of_micros,
    overflow,
    refuse,
    try_meaning,
    type_of_value,
    whole,
    whole_micros,
    with_digits,
)
from penstock.sql.types import SqlType

_DAY = datetime.timedelta(days=1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_INTERVAL_MAX = datetime.timedelta(microseconds=(1 << 63) - 1)
_INT_MAX = (1 << 31) - 1


# Arithmetic


def _decimal(operation: Callable[..., Decimal]) -> Meaning:
    """An operation of decimals, which says so if a result has more than 38 digits."""

    def compute(*operands: Decimal) -> Decimal:
        try:
            return operation(*operands)
        except (decimal.Overflow, decimal.InvalidOperation):
            refuse("a decimal of an SQL expression has more than 38 digits", "CAST an operand AS DOUBLE")

    return compute


def _divide(left: float, right: float) -> float:
    return left / right if right else divide_by_zero()


def _divide_decimals(left: Decimal, right: Decimal) -> Decimal:
    return DECIMALS.divide(left, right) if right else divide_by_zero()


def _remainder(left: int, right: int) -> int:
    rest = abs(left) % abs(right) if right else divide_by_zero()
    return -rest if left < 0 else rest


def _remainder_of_floats(left: float, right: float) -> float:
    if not right:
        divide_by_zero()
    return math.fmod(left, right) if math.isfinite(left) else math.nan


def _remainder_of_decimals(left: Decimal, right: Decimal) -> Decimal:
    return DECIMALS.remainder(left, right) if right else divide_by_zero()


def _positive(remainder: Callable[[Any, Any], Any]) -> Meaning:
    """PMOD: a remainder that is not negative if the divisor is not."""

    def compute(left: Any, right: Any) -> Any:
        rest = remainder(left, right)
        return remainder(rest + right, right) if rest < 0 else rest

    return compute


def _positive_remainder(left: int, right: int) -> int:
    rest = _remainder(left, right)
    if rest >= 0:
        return rest
    # As in Spark, a sum of more than 64 bits keeps the last 64.
    total = (rest + right + (1 << 63)) % (1 << 64) - (1 << 63)
    return _remainder(total, right)


def _whole_quotient(left: int, right: int) -> int:
    if not right:
        divide_by_zero()
    quotient = abs(left) // abs(right)
    return whole(quotient if (left < 0) == (right < 0) else -quotient)


def _whole_quotient_of_decimals(left: Decimal, right: Decimal) -> int:
    if not right:
        divide_by_zero()
    return whole(math.trunc(Fraction(left) / Fraction(right)))


def _sign(value: Any) -> Any:
    if value != value:
        return value
    return type(value)((value > 0) - (value < 0)) if value else value


def _round_whole(value: int, digits: int = 0) -> int:
    if digits >= 0:
        return value
    # With more digits the result is 0, whatever the number.
    unit: int = 10 ** min(-digits, 20)
    rounded = (abs(value) + unit // 2) // unit * unit
    return whole(-rounded if value < 0 else rounded)


def _round_float(value: float, digits: int = 0) -> float:
    if not math.isfinite(value):
        return value
    # Spark rounds the shortest decimal that stands for the float, not the float.
    rounded = float(_rounded(Decimal(repr(value)), digits))
    return rounded if rounded else 0.0


def _rounded(value: Decimal, digits: int = 0) -> Decimal:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -exponent <= digits:
        return value
    # No float or decimal has more digits before its point.
    unit = Decimal(1).scaleb(min(-digits, 400))
    return value.quantize(unit, decimal.ROUND_HALF_UP, decimal.Context(prec=800))


def _whole_of_float(rounding: Callable[[float], int]) -> Meaning:
    """FLOOR and CEIL of floats; the result for NaN is 0, as in Spark."""
    return lambda value: (
        0 if value != value else whole(rounding(value)) if math.isfinite(value) else overflow()
    )


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        if base == 0:
            odd = exponent % 2 == 1
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _logarithm(function: Callable[[float], float]) -> Meaning:
    return lambda value: None if value <= 0 else function(value)


def _square_root(value: float) -> float:
    return math.nan if value < 0 else math.sqrt(value)


def _of_bits(bits: int) -> Meaning:
    """The check that a whole number, such as an argument that is an INT in Spark, has no more bits."""
    most = (1 << bits - 1) - 1

    def check(value: int) -> int:
        if not -most - 1 <= value <= most:
            refuse(f"a whole number of an SQL expression has more than {bits} bits", "use a smaller number")
        return value

    return check


# Comparison


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, where None equals None and NaN equals NaN.

    >>> same([1, None], [1, None]), same(float("nan"), float("nan")), same(1, 2)
    (True, True, False)
    """
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right or (left != left and right != right))


def order(left: Any, right: Any) -> int:
    """-1, 0 or 1 if a value is below, equal to or above another; NULL in arrays is lowest, NaN highest.

    >>> order([1, None], [1, 2]), order(float("nan"), 1.0), order("a", "a")
    (-1, 1, 0)
    """
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        for one, other in zip(left, right, strict=False):
            found = order(one, other)
            if found:
                return found
        return (len(left) > len(right)) - (len(left) < len(right))
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if left != left or right != right:
        return int(left != left) - int(right != right)
    return int(left > right) - int(left < right)


def _comparing(test: Callable[[int], bool]) -> Meaning:
    """A comparison of values whose types are known only now, or of arrays."""

    def compare(left: Any, right: Any) -> bool:
        try:
            return test(order(left, right))
        except TypeError:
            _do_not_fit(left, right)

    return compare


def _do_not_fit(*values: Any) -> NoReturn:
    names = " and ".join(type(value).__name__ for value in values)
    raise TypeError(
        three_parts(
            f"an SQL operator does not take values of {names}",
            hint="declare the types of the columns, or CAST the values",
        )
    ) from None


def _of_any(name: str) -> Meaning:
    """An operator on values whose types are known only now."""

    def compute(left: Any, right: Any) -> Any:
        kinds = [_kind(value) for value in (left, right)]
        if all(kinds):
            widest = max(kinds, key=_LADDER.index)
            if name == "/" and widest == "BIGINT":
                widest = "DOUBLE"
            if widest in _ARITHMETIC[name]:
                left, right = (_WIDENING[widest](value) for value in (left, right))
                return _ARITHMETIC[name][widest](left, right)
        elif name in ("+", "-"):
            try:
                return (_added if name == "+" else _subtracted)(left, right)
            except TypeError:
                pass
        _do_not_fit(left, right)

    return compute


_LADDER = ("BIGINT", "DECIMAL", "DOUBLE")
_WIDENING: dict[str, Meaning] = {"BIGINT": lambda value: value, "DECIMAL": Decimal, "DOUBLE": float}


def _kind(value: Any) -> str:
    """The type of a number; the text is empty for other values."""
    if isinstance(value, bool):
        return ""
    for kind, name in ((int, "BIGINT"), (float, "DOUBLE"), (Decimal, "DECIMAL")):
        if isinstance(value, kind):
            return name
    return ""


def _choosing(meanings: Meaning | dict[str, Meaning]) -> Meaning:
    """A function of a value whose type is known only now."""

    def compute(first: Any, *others: Any) -> Any:
        found = meanings.get(type_of_value(first).name) if isinstance(meanings, dict) else meanings
        if found is not None:
            try:
                return found(first, *others)
            except (AttributeError, TypeError):
                pass
        _do_not_fit(first, *others)

    return compute


def _extreme(wanted: int) -> Meaning:
    def compute(*values: Any) -> Any:
        best = None
        for value in values:
            if value is not None and (best is None or order(value, best) == wanted):
                best = value
        return best

    return compute


# Text


def _trim(left: bool, right: bool) -> Meaning:
    def compute(text: str, characters: str = " ") -> str:
        if not characters:
            return text
        text = text.lstrip(characters) if left else text
        return text.rstrip(characters) if right else text

    return compute


def _substring(text: Any, position: int, length: int = _INT_MAX) -> Any:
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + length, 0)]


def _concat_ws(separator: str, *texts: Any) -> str | None:
    if separator is None:
        return None
    found: list[str] = []
    for text in texts:
        if isinstance(text, (list, tuple)):
            found += [part for part in text if part is not None]
        elif text is not None:
            found.append(text)
    return separator.join(found)


def _replace(text: str, search: str, replacement: str = "") -> str:
    return text.replace(search, replacement) if search else text


def _padding(text: str, length: int, pad: str) -> str:
    wanted = length - len(text)
    return (pad * (wanted // len(pad) + 1))[:wanted] if pad and wanted > 0 else ""


def _lpad(text: str, length: int, pad: str = " ") -> str:
    return _padding(text, length, pad) + text[: max(length, 0)]


def _rpad(text: str, length: int, pad: str = " ") -> str:
    return text[: max(length, 0)] + _padding(text, length, pad)


def _locate(part: str | None, text: str | None, position: int | None = 1) -> int | None:
    # As in Spark, the result for the position NULL is 0.
    if position is None or (part is not None and text is not None and position < 1):
        return 0
    if part is None or text is None:
        return None
    # Spark finds the empty text at the start, wherever it looks from.
    return text.find(part, position - 1) + 1 if part else 1


def _lower(text: str) -> str:
    return text.lower()


def _like(text: str, pattern: str, escape: str = "\\") -> bool:
    return regexes.like(pattern, escape).fullmatch(text) is not None


def _ilike(text: str, pattern: str, escape: str = "\\") -> bool:
    return _like(text.lower(), pattern.lower(), escape)


def _rlike(text: str, pattern: str) -> bool:
    return regexes.compiled(pattern).search(text) is not None


def _regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    expression = regexes.compiled(pattern)
    found = expression.search(text)
    if found and not 0 <= group <= expression.groups:
        refuse(
            f"the regular expression of REGEXP_EXTRACT has {expression.groups} groups, and another is asked for",
            "count the groups from 1; 0 means the whole match",
        )
    return (found.group(group) or "") if found else ""


def _regexp_replace(text: str, pattern: str, replacement: str) -> str:
    expression = regexes.compiled(pattern)
    return expression.sub(regexes.replacement(replacement, expression.groups), text)


def _digest(name: str) -> Meaning:
    def compute(value: str | bytes) -> str:
        data = value.encode() if isinstance(value, str) else value
        return hashlib.new(name, data, usedforsecurity=False).hexdigest()

    return compute


def _sha2(value: str | bytes, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return _digest(name)(value) if name else None


# Time


def _utc(moment: datetime.datetime) -> datetime.datetime:
    return moment if moment.tzinfo in (datetime.UTC, None) else moment.astimezone(datetime.UTC)


def _checked(compute: Meaning) -> Meaning:
    """The same, with an error of our own if a time is outside of what Python holds."""

    @functools.wraps(compute)
    def checked(*values: Any) -> Any:
        try:
            found = compute(*values)
        except OverflowError:
            refuse(
                "a time of an SQL expression is outside of the years 1 to 9999", "use earlier or later times"
            )
        if isinstance(found, datetime.timedelta) and not -_INTERVAL_MAX <= found <= _INTERVAL_MAX:
            refuse("an interval of an SQL expression has more than 64 bits", "use shorter intervals")
        return found

    return checked


@_checked
def _added(left: Any, right: Any) -> Any:
    if isinstance(left, datetime.timedelta):
        left, right = right, left
    return (_utc(left) if isinstance(left, datetime.datetime) else left) + right


@_checked
def _subtracted(left: Any, right: Any) -> Any:
    if isinstance(left, datetime.datetime):
        left = _utc(left)
    return left - right


def _field(read: Callable[[Any], int]) -> Meaning:
    return lambda time: read(_utc(time) if isinstance(time, datetime.datetime) else time)


def _seconds_with_fraction(time: datetime.datetime) -> Decimal:
    return DECIMALS.scaleb(Decimal(time.second * 1_000_000 + time.microsecond), -6)


FIELDS: dict[str, Meaning] = {
    "YEAR": lambda time: time.year,
    "QUARTER": lambda time: (time.month + 2) // 3,
    "MONTH": lambda time: time.month,
    "WEEKOFYEAR": lambda time: time.isocalendar().week,
    "YEAROFWEEK": lambda time: time.isocalendar().year,
    "DAY": lambda time: time.day,
    "DAYOFWEEK": lambda time: time.isoweekday() % 7 + 1,
    "DAYOFWEEK_ISO": lambda time: time.isoweekday(),
    "DAYOFYEAR": lambda time: time.timetuple().tm_yday,
    "HOUR": lambda time: time.hour,
    "MINUTE": lambda time: time.minute,
    "SECOND": lambda time: time.second,
    "EXTRACT SECOND": _seconds_with_fraction,
}
"""What each part of a time is."""

TRUNCATIONS: dict[str, Meaning] = {
    "YEAR": lambda time: _midnight(time).replace(month=1, day=1),
    "QUARTER": lambda time: _midnight(time).replace(month=(time.month - 1) // 3 * 3 + 1, day=1),
    "MONTH": lambda time: _midnight(time).replace(day=1),
    "WEEK": lambda time: _midnight(time) - time.weekday() * _DAY,
    "DAY": lambda time: _midnight(time),
    "HOUR": lambda time: time.replace(minute=0, second=0, microsecond=0),
    "MINUTE": lambda time: time.replace(second=0, microsecond=0),
    "SECOND": lambda time: time.replace(microsecond=0),
    "MILLISECOND": lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000),
    "MICROSECOND": lambda time: time,
}
"""The beginning of each unit of time."""


def _midnight(time: datetime.datetime) -> datetime.datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


@_checked
def _date_trunc(unit: str, time: datetime.datetime) -> Any:
    return TRUNCATIONS[unit](_utc(time))


def _date_add(day: datetime.date, days: int) -> datetime.date:
    return date_of_days(day.toordinal() + days)


def _days_of_month(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


@_checked
def _add_months(day: datetime.date, months: int) -> datetime.date:
    """The same day of another month, or its last one."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        raise OverflowError
    return datetime.date(year, month + 1, min(day.day, _days_of_month(year, month + 1)))


@_checked
def _make_date(year: int, month: int, day: int) -> datetime.date:
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        raise OverflowError
    if not (1 <= month <= 12 and 1 <= day <= _days_of_month(year, month)):
        refuse("MAKE_DATE of an SQL expression has no such month or day", "use a date of the calendar")
    return datetime.date(year, month, day)


def _date_bin(width: datetime.timedelta, time: datetime.datetime) -> datetime.datetime:
    if width <= datetime.timedelta(0):
        refuse("the interval of DATE_BIN is not above 0", "write an interval such as INTERVAL '5' MINUTE")
    micros = whole_micros(time)
    size = width // _MICROSECOND
    return moment_of_micros(micros // size * size, time.tzinfo)


def _unix_timestamp(time: datetime.date) -> int:
    """Whole seconds, without the fraction: before 1970 that is the second after, as in Spark."""
    micros = whole_micros(time)
    return micros // 1_000_000 if micros >= 0 else -(-micros // 1_000_000)


def _timestamp_seconds(seconds: float | int | Decimal) -> datetime.datetime | None:
    if not math.isfinite(seconds):
        return None
    micros = DECIMALS.scaleb(seconds, 6) if isinstance(seconds, Decimal) else seconds * 1_000_000
    if isinstance(micros, Decimal) and micros % 1:
        refuse("TIMESTAMP_SECONDS has a part of a microsecond", "write ROUND(seconds, 6)")
    return moment_of_micros(math.trunc(micros))


@_checked
def _interval_times(interval: Any, factor: Any) -> datetime.timedelta:
    product: datetime.timedelta = interval * factor
    return product


def _interval_divided(interval: datetime.timedelta, divisor: int) -> datetime.timedelta:
    if not divisor:
        divide_by_zero()
    micros = interval // _MICROSECOND
    quotient = (2 * abs(micros) + abs(divisor)) // (2 * abs(divisor))
    return datetime.timedelta(microseconds=quotient if (micros < 0) == (divisor < 0) else -quotient)


# Arrays


def _element_at(array: Sequence[Any], index: int) -> Any:
    if not index or abs(index) > len(array):
        refuse(
            "ELEMENT_AT asks for an element that the array does not have",
            "test SIZE(array) first; 1 is the first",
        )
    return array[index - 1 if index > 0 else index]


def _item(array: Sequence[Any], index: int) -> Any:
    if not 0 <= index < len(array):
        refuse(
            "an index asks for an element that the array does not have",
            "test SIZE(array) first; 0 is the first",
        )
    return array[index]


def _array_contains(array: Iterable[Any], value: Any) -> bool | None:
    unknown = False
    for element in array:
        if element is None:
            unknown = True
        elif same(element, value):
            return True
    return None if unknown else False


_ROUNDINGS = frozenset(["ROUND", "FLOOR", "CEIL"])
_TAKES_ANY = frozenset(["+", "-", "*", "/", "%", "DIV", "=", "<>", "<", "<=", ">", ">=", "ARRAY"])
SEES_NULL: frozenset[str] = frozenset(["ARRAY", "CONCAT_WS", "GREATEST", "LEAST", "LOCATE"])
"""The functions whose meaning gets None for NULL; the result of any other is NULL where an argument is."""

_ARITHMETIC: dict[str, dict[str, Meaning]] = {
    "+": {
        "BIGINT": lambda left, right: whole(left + right),
        "DOUBLE": lambda left, right: left + right,
        "DECIMAL": _decimal(DECIMALS.add),
        **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL"), _added),
    },
    "-": {
        "BIGINT": lambda left, right: whole(left - right),
        "DOUBLE": lambda left, right: left - right,
        "DECIMAL": _decimal(DECIMALS.subtract),
        **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL"), _subtracted),
    },
    "*": {
        "BIGINT": lambda left, right: whole(left * right),
        "DOUBLE": lambda left, right: left * right,
        "DECIMAL": _decimal(DECIMALS.multiply),
        "INTERVAL": _interval_times,
    },
    "/": {
        "DOUBLE": _divide,
        "DECIMAL": _decimal(_divide_decimals),
        "INTERVAL": _interval_divided,
    },
    "%": {
        "BIGINT": _remainder,
        "DOUBLE": _remainder_of_floats,
        "DECIMAL": _decimal(_remainder_of_decimals),
    },
    "DIV": {"BIGINT": _whole_quotient, "DECIMAL": _whole_quotient_of_decimals},
}

MATCHERS: dict[str, Callable[..., Callable[[str], re.Match[str] | None]]] = {
    "LIKE": lambda pattern, escape="\\": regexes.like(pattern, escape).fullmatch,
    "RLIKE": lambda pattern: regexes.compiled(pattern).search,
}
"""What finds a match in a text, for patterns that the query names."""

MEANINGS: dict[str, Meaning | dict[str, Meaning]] = {
    **{name: {**meanings, "ANY": _of_any(name)} for name, meanings in _ARITHMETIC.items()},
    "PMOD": {
        "BIGINT": _positive_remainder,
        "DOUBLE": _positive(_remainder_of_floats),
        "DECIMAL": _positive(_remainder_of_decimals),
    },
    "NEGATIVE": {
        "DECIMAL": lambda value: value.copy_negate() if value else value,
        "INTERVAL": _checked(lambda value: -value),
        "BIGINT": lambda value: whole(-value),
        "DOUBLE": lambda value: -value,
    },
    "POSITIVE": lambda value: value,
    "=": _comparing(lambda found: found == 0),
    "<>": _comparing(lambda found: found != 0),
    "<": _comparing(lambda found: found < 0),
    "<=": _comparing(lambda found: found <= 0),
    ">": _comparing(lambda found: found > 0),
    ">=": _comparing(lambda found: found >= 0),
    "GREATEST": _extreme(1),
    "LEAST": _extreme(-1),
    "INT": _of_bits(32),
    "AS BIGINT": _of_bits(64),
    "AS INT": _of_bits(32),
    "AS SMALLINT": _of_bits(16),
    "AS TINYINT": _of_bits(8),
    "ABS": {
        "BIGINT": lambda value: whole(abs(value)),
        "DOUBLE": abs,
        "DECIMAL": Decimal.copy_abs,
        "INTERVAL": abs,
    },
    "SIGN": _sign,
    "ROUND": {"BIGINT": _round_whole, "DOUBLE": _round_float, "DECIMAL": _rounded},
    "FLOOR": {
        "BIGINT": lambda value: value,
        "DOUBLE": _whole_of_float(math.floor),
        "DECIMAL": lambda value: value.to_integral_value(decimal.ROUND_FLOOR),
    },
    "CEIL": {
        "BIGINT": lambda value: value,
        "DOUBLE": _whole_of_float(math.ceil),
        "DECIMAL": lambda value: value.to_integral_value(decimal.ROUND_CEILING),
    },
    "SQRT": _square_root,
    "POWER": _power,
    "EXP": _exp,
    "LN": _logarithm(math.log),
    "LOG10": _logarithm(math.log10),
    "UPPER": lambda text: text.upper(),
    "LOWER": _lower,
    "LENGTH": len,
    "TRIM": _trim(True, True),
    "LTRIM": _trim(True, False),
    "RTRIM": _trim(False, True),
    "SUBSTRING": _substring,
    "CONCAT": lambda first, *others: functools.reduce(lambda left, right: left + right, others, first),
    "CONCAT_WS": _concat_ws,
    "REPLACE": _replace,
    "LEFT": lambda text, length: text[: max(length, 0)],
    "RIGHT": lambda text, length: text[-length:] if length > 0 else "",
    "LPAD": _lpad,
    "RPAD": _rpad,
    "REPEAT": lambda text, times: text * times,
    "REVERSE": lambda text: text[::-1],
    "ASCII": lambda text: ord(text[0]) if text else 0,
    "LOCATE": _locate,
    "SPLIT": regexes.split,
    "STARTSWITH": lambda text, part: text.startswith(part),
    "ENDSWITH": lambda text, part: text.endswith(part),
    "CONTAINS": lambda text, part: part in text,
    "LIKE": _like,
    "ILIKE": _ilike,
    "RLIKE": _rlike,
    "REGEXP_EXTRACT": _regexp_extract,
    "REGEXP_REPLACE": _regexp_replace,
    "MD5": _digest("md5"),
    "SHA2": _sha2,
    **{name: _field(read) for name, read in FIELDS.items()},
    "DATE_TRUNC": _date_trunc,
    "DATE_ADD": _date_add,
    "DATE_SUB": lambda day, days: _date_add(day, -days),
    "ADD_MONTHS": _add_months,
    "LAST_DAY": lambda day: day.replace(day=_days_of_month(day.year, day.month)),
    "MAKE_DATE": _make_date,
    "DATEDIFF": lambda end, start: end.toordinal() - start.toordinal(),
    "DATE_BIN": _date_bin,
    "UNIX_TIMESTAMP": _unix_timestamp,
    "UNIX_SECONDS": lambda moment: whole_micros(moment) // 1_000_000,
    "UNIX_MILLIS": lambda moment: whole_micros(moment) // 1_000,
    "UNIX_MICROS": whole_micros,
    "TIMESTAMP_SECONDS": _timestamp_seconds,
    "TIMESTAMP_MILLIS": lambda millis: moment_of_micros(millis * 1000),
    "TIMESTAMP_MICROS": lambda micros: moment_of_micros(micros),
    "ARRAY": lambda *elements: list(elements),
    "ELEMENT_AT": _element_at,
    "ITEM": _item,
    "SIZE": len,
    "ARRAY_CONTAINS": _array_contains,
}
"""What each function computes; by the type of its first argument, if that matters."""


def meaning_of(name: str, result: SqlType, arguments: Sequence[SqlType]) -> Meaning:
    """What a call computes.

    Args:
        name: The canonical name of the function.
        result: The type of the call.
        arguments: The types of its arguments.
    """
    if name in ("CAST", "EXPECT"):
        return cast_meaning(arguments[0], result, exact=name == "EXPECT")
    if name == "TRY_CAST":
        return try_meaning(cast_meaning(arguments[0], result))
    if name in digits.OPERATORS and result.name == "DECIMAL" and result.precision is not None:
        return digits.arithmetic(name, result)
    found = MEANINGS[name]
    if arguments and arguments[0].name == "ANY" and name not in _TAKES_ANY:
        return _choosing(found)
    if not isinstance(found, dict):
        return found
    if name in _ROUNDINGS and result.name == "DECIMAL" and result.precision is not None:
        return lambda *values: with_digits(found["DECIMAL"](*values), result)
    return found["ANY" if any(each.name == "ANY" for each in arguments) else arguments[0].name]
