"""Python values as the text of JSON: numbers with all their digits, and exact forms of what JSON has no type for."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from penstock.io.jsonio import JsonSink
from penstock.utils.timestamp import Duration
from penstock_spark.columns.losses import Loss, find_wrong_zone

_NANOS_OF_UNIT = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_DIGITS_OF_UNIT = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_AS_THEY_ARE: frozenset[type] = frozenset({str, int, float, bool, type(None)})
_TEXT = frozenset({str})
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_IN_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_WHOLE_DIGITS_MAX = 1000


class Unwritable(Exception):
    """A value that JSON would change, or has no form for."""

    def __init__(self, lost: Loss) -> None:
        super().__init__(lost.what)
        self.lost = lost


@dataclass(frozen=True)
class JsonText:
    r"""Writes records as the arguments of `WriteToJson` say.

    >>> JsonText().of(["a", "b"], [[1e-12, float("nan")], [0.1, decimal.Decimal("2.50")]])
    '{"a":1e-12,"b":null}\n{"a":0.1,"b":2.5}\n'
    >>> JsonText(is_list=True, is_iso=True).of(["at"], [[datetime.date(2026, 1, 1)]])
    '[{"at":"2026-01-01T00:00:00.000"}]'
    """

    is_list: bool = False
    is_iso: bool = False  # Times are numbers otherwise, which count from 1970 in UTC.
    unit: str = "ms"
    digits: int | None = None  # Behind the point of a float; None keeps all of them.
    is_ascii: bool = True
    indent: int | None = None
    convert: Callable[[Any], Any] | None = None  # Called for a value that has no form in JSON.
    are_finite: bool = True  # Whether floats are expected to be finite: the encoder refuses others.

    @staticmethod
    def of_sink(sink: JsonSink) -> JsonText:
        given = dict(sink.options)
        return JsonText(
            is_list=not given.get("lines", True),
            is_iso=given.get("date_format") == "iso",
            unit=given.get("date_unit") or "ms",
            digits=given.get("double_precision"),
            is_ascii=given.get("force_ascii", True),
            indent=given.get("indent") or None,
            convert=given.get("default_handler"),
        )

    def of(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
        """The text of rows; `Unwritable` for a value that it would change."""
        try:
            if self._are_plain(chain.from_iterable(rows)):
                return self._joined(names, rows)
            columns = [
                self._forms(column, name) for name, column in zip(names, zip(*rows, strict=True), strict=True)
            ]
            return self._joined(names, list(zip(*columns, strict=True)))
        except ValueError:
            if not self.are_finite:
                raise
            # JSON has no infinity, and no NaN.
            return replace(self, are_finite=False).of(names, rows)

    def of_value(self, value: object) -> str:
        return self.of([""], [[value]])

    def _are_plain(self, values: Iterable[Any]) -> bool:
        """True if the encoder writes the values without a change of their form."""
        return self._plain.issuperset(map(type, values))

    @cached_property
    def _plain(self) -> frozenset[type]:
        return _AS_THEY_ARE if self.are_finite and self.digits is None else frozenset(_AS_THEY_ARE - {float})

    def _joined(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
        encode = self._encoder.encode
        if self.is_list:
            return encode([dict(zip(names, row, strict=True)) for row in rows])
        return "".join([encode(dict(zip(names, row, strict=True))) + "\n" for row in rows])

    @cached_property
    def _encoder(self) -> json.JSONEncoder:
        separators = (",", ":" if self.indent is None else ": ")
        return json.JSONEncoder(
            allow_nan=False, ensure_ascii=self.is_ascii, indent=self.indent, separators=separators
        )

    def _forms(self, values: Collection[Any], name: str) -> Collection[Any]:
        if self._are_plain(values):
            return list(values)
        return [self._form(value, name) for value in values]

    def _form(self, value: object, name: str) -> object:
        """A value of the field `name` as a value that Python's encoder of JSON writes exactly."""
        kind = type(value)
        if kind not in _FORMS:
            kind = next((each for each in _FORMS if isinstance(value, each)), object)
        return _FORMS[kind](self, value, name)

    def _of_dict(self, value: dict[Any, Any], name: str) -> dict[str, Any]:
        if self._are_plain(value.values()) and _TEXT.issuperset(map(type, value)):
            return value
        forms = {_key(key, name): self._form(inner, name) for key, inner in value.items()}
        if len(forms) < len(value):
            what = f"a dict in the field {name} has a number and a string as keys, which are equal in JSON"
            raise Unwritable(Loss(ValueError, what, "write one of them in another way"))
        return forms

    def _of_float(self, value: float, name: str) -> float | None:
        value = float(value)
        if not math.isfinite(value):
            return None
        return value if self.digits is None else round(value, self.digits)

    def _of_decimal(self, value: decimal.Decimal, name: str) -> float | int | None:
        """The float that is written with the same digits, or an integer."""
        if not value.is_finite():
            return None
        if self.digits is not None and value.adjusted() < _WHOLE_DIGITS_MAX:
            with decimal.localcontext(prec=_WHOLE_DIGITS_MAX + self.digits + 1):
                value = round(value, self.digits)
        number = float(value)
        if math.isfinite(number) and decimal.Decimal(repr(number)) == value:
            return number
        if value == value.to_integral_value() and value.adjusted() < _WHOLE_DIGITS_MAX:
            return int(value)
        what = f"a Decimal of the field {name} has more digits than a JSON number keeps"
        raise Unwritable(Loss(ValueError, what, "convert it to a string with str, or to a float"))

    def _of_datetime(self, value: datetime.datetime, name: str) -> int | str | None:
        if value != value:
            return None  # The missing time of pandas.
        nanos = getattr(value, "nanosecond", 0)
        if nanos or hasattr(value, "to_pydatetime"):
            value = value.to_pydatetime(warn=False)  # type: ignore[attr-defined]
        if value.tzinfo is not None:
            return self._of_time(value - _EPOCH_IN_UTC, nanos, name, "Z")
        if self.is_iso:
            return self._of_time(value - _EPOCH, nanos, name, "")
        lost = find_wrong_zone([value], True, name)
        assert lost is not None
        hint = "add tzinfo=datetime.timezone.utc if it is in UTC, or pass date_format='iso', which leaves it unchanged"
        raise Unwritable(replace(lost, hint=hint))

    def _of_date(self, value: datetime.date, name: str) -> int | str:
        days = datetime.timedelta(value.toordinal() - _EPOCH.toordinal())
        return self._of_time(days, 0, name, "")

    def _of_time(self, since: datetime.timedelta, nanos: int, name: str, zone: str) -> int | str:
        """A time so long after 1970 began, and nanoseconds."""
        nanos += ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000
        count, rest = divmod(nanos, _NANOS_OF_UNIT[self.unit])
        if rest:
            raise Unwritable(self._cut(nanos, f"a time of the field {name}"))
        if not self.is_iso:
            return count
        try:
            seconds = (_EPOCH + since).isoformat(timespec="seconds")
        except OverflowError:
            what = f"a time of the field {name} is outside of the years 1 to 9999 in UTC"
            raise Unwritable(
                Loss(ValueError, what, "pass date_format='epoch', or write it as a string")
            ) from None
        digits = _DIGITS_OF_UNIT[self.unit]
        fraction = f".{count % 10**digits:0{digits}d}" if digits else ""
        return f"{seconds}{fraction}{zone}"

    def _of_timedelta(self, value: datetime.timedelta, name: str) -> int | str | None:
        if value != value:
            return None
        micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        return self._of_length(micros * 1000 + getattr(value, "nanoseconds", 0), name)

    def _of_length(self, nanos: int, name: str) -> int | str:
        if self.is_iso:
            return iso_of_length(nanos)
        count, rest = divmod(nanos, _NANOS_OF_UNIT[self.unit])
        if rest:
            raise Unwritable(self._cut(nanos, f"a duration of the field {name}"))
        return count

    def _cut(self, nanos: int, whose: str) -> Loss:
        lost, unit = ("nanoseconds", "ns") if nanos % 1000 else ("microseconds", "us")
        if not nanos % 1_000_000:
            lost, unit = "milliseconds", "ms"
        what = f"{whose} has {lost}, and times are written in the unit {self.unit!r}"
        return Loss(ValueError, what, f"pass date_unit={unit!r}, or truncate the times first")

    def _of_other(self, value: Any, name: str) -> object:
        """Values of NumPy and pandas, and what only the user's function knows."""
        import pandas as pd

        if value is pd.NA:
            return None
        match getattr(getattr(value, "dtype", None), "kind", None):
            case None:
                pass
            case "M" | "m" as kind if not getattr(value, "shape", ()):
                return self._form((pd.Timestamp if kind == "M" else pd.Timedelta)(value), name)
            case _ if hasattr(value, "tolist"):
                items = value.tolist()
                return self._form(list(value) if value.dtype.kind in "Mm" else items, name)
        if self.convert is not None:
            return self._form(self.convert(value), name)
        what = f"a value of the field {name} has the type {type(value).__name__}, which JSON cannot represent"
        hint = "convert it in a Map before the write, or pass default_handler=str, for example"
        raise Unwritable(Loss(TypeError, what, hint))


def iso_of_length(nanos: int) -> str:
    """A duration in the format of ISO 8601, as pandas writes it: only the days may be negative.

    >>> iso_of_length(1_500_000_000), iso_of_length(-1000)
    ('P0DT0H0M1.500S', 'P-1DT23H59M59.999999S')
    """
    seconds, nanos = divmod(nanos, 1_000_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    fraction = f".{nanos:09d}" if nanos else ""
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"P{days}DT{hours}H{minutes}M{seconds}{fraction}S"


def _key(key: object, name: str) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return str(int(key))
    what = f"a dict in the field {name} has a key of the type {type(key).__name__}, and JSON keys are strings"
    raise Unwritable(Loss(TypeError, what, "convert the keys with str before the write"))


_FORMS: dict[type, Callable[[JsonText, Any, str], Any]] = {
    type(None): lambda text, value, name: None,
    bool: lambda text, value, name: value,
    str: lambda text, value, name: str.__str__(value),
    int: lambda text, value, name: int(value),
    float: JsonText._of_float,
    dict: JsonText._of_dict,
    **dict.fromkeys((list, tuple, set, frozenset), JsonText._forms),
    decimal.Decimal: JsonText._of_decimal,
    datetime.datetime: JsonText._of_datetime,
    datetime.date: JsonText._of_date,
    datetime.time: lambda text, value, name: value.isoformat(),
    datetime.timedelta: JsonText._of_timedelta,
    Duration: lambda text, value, name: text._of_length(value.micros * 1000, name),
    object: JsonText._of_other,
}
"""The forms of values, by the first type that fits: a datetime is also a date, and a bool also an int."""
