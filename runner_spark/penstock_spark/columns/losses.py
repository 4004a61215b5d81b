"""Losses that Arrow would not report: a field, the zone of a time, the half of 1.5 as an integer."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from penstock.error import NoSuchField, refusal
from penstock.values.types import DURATION, FLOAT, FLOAT_GREATEST, INSTANT, LOCAL_TIME, TIMES, ValueType
from penstock_spark.columns.types import is_list, limits_of, narrower_spelling_of, value_of

MICROS_OF_UNIT = {"s": 1_000_000, "ms": 1000}
_NAMES_SHOWN = 5


@dataclass(frozen=True)
class Loss:
    """A value that would be lost, and what to do."""

    error: type[Exception]
    what: str
    hint: str

    def refused(self, where: str) -> Exception:
        return refusal(self.error, self.what, where=where, hint=self.hint)


def make_field_loss(field: pa.Field) -> Loss:
    """A value that is not of the column's type."""
    spelling = narrower_spelling_of(field)
    limits = limits_of(field.type) if spelling is None else spelling.value.limits
    return make_type_loss(f"a value of the field {field.name}", str(field.type), limits)


def make_type_loss(what: str, kind: str, limits: str) -> Loss:
    """Returns the loss of a value that is not of a type; `limits` says what such a value may be.

    >>> make_type_loss("a value of the field points", "int", "an int has 32 bits").hint
    'correct the declared type or the schema, or convert the value first (an int has 32 bits)'
    """
    return Loss(
        TypeError,
        f"{what} does not fit the type {kind}",
        f"correct the declared type or the schema, or convert the value first{f' ({limits})' if limits else ''}",
    )


def make_missing_field_loss(name: str) -> Loss:
    """Returns the loss of a record without a field that its type requires."""
    return Loss(NoSuchField, f"a record has no field {name}", "make the field nullable in the schema")


def make_none_loss(name: str, whose: str = "a value of the field") -> Loss:
    """Returns the loss of a None that the type does not allow, such as in a column of a key.

    >>> make_none_loss("team").what
    'a value of the field team is None, which its type does not allow'
    """
    return Loss(
        TypeError,
        f"{whose} {name} is None, which its type does not allow",
        "correct the declared type or the schema, or filter out such elements before the write",
    )


def find_unknown_fields(
    records: Iterable[Mapping[Any, Any]],
    known: frozenset[str],
    whose: str = "an element",
    lacking: str = "which the schema lacks",
) -> Loss | None:
    """Returns the loss of the fields that a schema lacks; None if it lacks none.

    >>> find_unknown_fields([{"team": "blue", "points": 1}], frozenset(["points"])).what
    "an element has the field 'team', which the schema lacks"
    """
    # One loop in C over all names: nearly always, nothing is left over.
    if known.issuperset(chain.from_iterable(records)):
        return None
    names = sorted(map(repr, set(chain.from_iterable(records)) - known))
    more = f" and {len(names) - _NAMES_SHOWN} more" if names[_NAMES_SHOWN:] else ""
    fields = "the field" if not names[1:] else "the fields"
    return Loss(
        ValueError,
        f"{whose} has {fields} {', '.join(names[:_NAMES_SHOWN])}{more}, {lacking}",
        "add it to the schema or the declared type, or leave it out of the elements before the write",
    )


def find_wrong_zone(times: Iterable[Any], is_instant: bool, name: str) -> Loss | None:
    """Returns the loss if times lack a zone where the column has instants, or have one where it has none.

    >>> find_wrong_zone([datetime.datetime(2026, 1, 1)], True, "at").what
    'a time of the field at has no zone, so that its instant is unknown'
    """
    if is_instant:
        if all(time.tzinfo is not None for time in times):
            return None
        what = f"a time of the field {name} has no zone, so that its instant is unknown"
        hint = (
            "add tzinfo=datetime.timezone.utc if it is in UTC, or write to a column of times without a zone"
        )
        return Loss(TypeError, what, hint)
    if all(time.tzinfo is None for time in times):
        return None
    what = f"a time of the field {name} has a zone, which the column does not keep"
    hint = "write to a column of instants, or remove the zone first"
    return Loss(TypeError, what, hint)


def loss_of(values: Sequence[Any], part: pa.Field, field: pa.Field) -> Loss | None:
    """Returns what Arrow would not keep of the values of a field, or of a part of them; None if it keeps all.

    >>> points = pa.field("points", pa.int64())
    >>> loss_of([1.5], points, points).what
    'a value of the field points does not fit the type int64'
    """
    kind = part.type
    value = value_of(kind)
    if value is not None:
        return _loss_of_single_values(values, value, part, field)
    if is_list(kind):
        # Arrow takes a text for the list of its characters.
        if any(issubclass(each, str | bytes) for each in set(map(type, values))):
            return make_field_loss(field)
        return loss_of(list(chain.from_iterable(_lists_in(values))), kind.value_field, field)
    if isinstance(kind, pa.MapType):
        pairs = [pair for each in values if each is not None for pair in _pairs_of(each)]
        keys, items = [key for key, _ in pairs], [item for _, item in pairs]
        return loss_of(keys, kind.key_field, field) or loss_of(items, kind.item_field, field)
    if isinstance(kind, pa.StructType):
        return _loss_of_records([each for each in values if isinstance(each, dict)], kind, field)
    if isinstance(kind, pa.DictionaryType):
        return loss_of(values, part.with_type(kind.value_type), field)
    return None


def _lists_in(values: Sequence[Any]) -> list[Any]:
    # An array of NumPy has values of its own types.
    arrays = [value.tolist() if hasattr(value, "tolist") else value for value in values]
    return [value for value in arrays if isinstance(value, list | tuple)]


def _pairs_of(value: Mapping[Any, Any] | Iterable[Any]) -> Iterable[Any]:
    return value.items() if isinstance(value, dict) else value


def _loss_of_records(records: Sequence[dict[str, Any]], kind: pa.StructType, field: pa.Field) -> Loss | None:
    parts = [kind.field(place) for place in range(kind.num_fields)]
    lost = find_unknown_fields(records, frozenset(part.name for part in parts), f"the field {field.name}")
    inner = (loss_of([each.get(part.name) for each in records], part, field) for part in parts)
    return lost or next(filter(None, inner), None)


def _loss_of_single_values(
    values: Sequence[Any], value: ValueType, part: pa.Field, field: pa.Field
) -> Loss | None:
    classes = set(map(type, values)) - {type(None)}
    if not all(map(value.takes, classes)):
        return make_field_loss(field)
    if value is FLOAT and part.type.bit_width < 64:
        return make_field_loss(field) if overflows(values, FLOAT_GREATEST[part.type.bit_width]) else None
    if value in TIMES:
        return _loss_of_times(values, classes, value, part.type, field)
    spelling = narrower_spelling_of(part)
    return (
        None if spelling is None or _are_within(values, classes, spelling.value) else make_field_loss(field)
    )


def _are_within(values: Sequence[Any], classes: set[type], value: ValueType) -> bool:
    """True if values are of a type, of which the column has more."""
    some = [each for each in values if each is not None]
    return all(map(value.takes, classes)) and (
        not some or (value.least <= min(some) and max(some) <= value.greatest)
    )


def overflows(values: Iterable[Any], largest: float) -> bool:
    """True if a number becomes infinite in a type whose greatest number is `largest`."""
    return any(isinstance(value, int | float) and largest < abs(value) != math.inf for value in values)


def _loss_of_times(
    values: Sequence[Any], classes: set[type], value: ValueType, kind: pa.DataType, field: pa.Field
) -> Loss | None:
    lost = None
    if value is not DURATION:
        time = datetime.datetime if value in (INSTANT, LOCAL_TIME) else datetime.time
        times = [each for each in values if isinstance(each, time)]
        lost = find_wrong_zone(times, value is INSTANT, field.name)
    unit = MICROS_OF_UNIT.get(kind.unit)
    if unit is not None and any(_micros_of(each) % unit for each in values):
        return lost or make_field_loss(field)
    # Times of pandas also have nanoseconds.
    if kind.unit != "ns" and any(hasattr(each, "nanosecond") for each in classes):
        return lost or (
            make_field_loss(field) if any(getattr(each, "nanosecond", 0) for each in values) else None
        )
    return lost


def _micros_of(value: object) -> int:
    if isinstance(value, datetime.timedelta):
        return value.microseconds
    micros: int = getattr(value, "microsecond", 0)
    return micros
