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
from penstock_spark.arrow.types import limits_of

FLOAT_LARGEST = 3.4028234663852886e38
_LARGEST = {pa.float16(): 65504.0, pa.float32(): FLOAT_LARGEST}
_LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)
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


def misfit(field: pa.Field) -> Loss:
    """Returns the loss of a value that is not of the column's type."""
    return misfit_of(f"a value of the field {field.name}", str(field.type), limits_of(field.type))


def misfit_of(what: str, kind: str, limits: str) -> Loss:
    """Returns the loss of a value that is not of a type; `limits` says what such a value may be.

    >>> misfit_of("a value of the field points", "int", "an int has 32 bits").hint
    'correct the declared type or the schema, or convert the value first (an int has 32 bits)'
    """
    return Loss(
        TypeError,
        f"{what} does not fit the type {kind}",
        f"correct the declared type or the schema, or convert the value first{f' ({limits})' if limits else ''}",
    )


def missing_field(name: str) -> Loss:
    """Returns the loss of a record without a field that its type requires."""
    return Loss(NoSuchField, f"a record has no field {name}", "make the field nullable in the schema")


def forbidden_none(name: str, whose: str = "a value of the field") -> Loss:
    """Returns the loss of a None that the type does not allow, such as in a column of a key.

    >>> forbidden_none("team").what
    'a value of the field team is None, which its type does not allow'
    """
    return Loss(
        TypeError,
        f"{whose} {name} is None, which its type does not allow",
        "correct the declared type or the schema, or filter out such elements before the write",
    )


def unknown_fields(
    records: Iterable[Mapping[Any, Any]],
    known: frozenset[str],
    whose: str = "an element",
    lacking: str = "which the schema lacks",
) -> Loss | None:
    """Returns the loss of the fields that a schema lacks; None if it lacks none.

    >>> unknown_fields([{"team": "blue", "points": 1}], frozenset(["points"])).what
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


def wrong_zone(times: Iterable[Any], is_instant: bool, name: str) -> Loss | None:
    """Returns the loss if times lack a zone where the column has instants, or have one where it has none.

    >>> wrong_zone([datetime.datetime(2026, 1, 1)], True, "at").what
    'a time of the field at has no zone, so that nobody knows which instant it is'
    """
    if is_instant:
        if all(time.tzinfo is not None for time in times):
            return None
        what = f"a time of the field {name} has no zone, so that nobody knows which instant it is"
        hint = (
            "add tzinfo=datetime.timezone.utc if it is in UTC, or write to a column of times without a zone"
        )
        return Loss(TypeError, what, hint)
    if all(time.tzinfo is None for time in times):
        return None
    what = f"a time of the field {name} has a zone, which the column does not keep"
    hint = "write to a column of instants, or take the zone off before"
    return Loss(TypeError, what, hint)


def loss_of(values: Sequence[Any], kind: pa.DataType, field: pa.Field) -> Loss | None:
    """Returns what Arrow would lose of the values of a field, or of parts of them, which have the type `kind`.

    >>> loss_of([1.5], pa.int64(), pa.field("points", pa.int64())).what
    'a value of the field points does not fit the type int64'
    """
    if isinstance(kind, _LISTS):
        # Arrow takes a text for the list of its characters.
        if any(issubclass(each, str | bytes) for each in set(map(type, values))):
            return misfit(field)
        return loss_of(list(chain.from_iterable(_lists_in(values))), kind.value_type, field)
    if isinstance(kind, pa.MapType):
        pairs = [pair for value in values if value is not None for pair in _pairs_of(value)]
        keys, items = [key for key, _ in pairs], [item for _, item in pairs]
        return loss_of(keys, kind.key_type, field) or loss_of(items, kind.item_type, field)
    if isinstance(kind, pa.StructType):
        return _loss_of_records([value for value in values if isinstance(value, dict)], kind, field)
    if isinstance(kind, pa.DictionaryType):
        return loss_of(values, kind.value_type, field)
    return _loss_of_single_values(values, kind, field)


def _lists_in(values: Sequence[Any]) -> list[Any]:
    # An array of NumPy has values of its own types.
    arrays = [value.tolist() if hasattr(value, "tolist") else value for value in values]
    return [value for value in arrays if isinstance(value, list | tuple)]


def _pairs_of(value: Any) -> Iterable[Any]:
    return value.items() if isinstance(value, dict) else value


def _loss_of_records(records: Sequence[dict[str, Any]], kind: pa.StructType, field: pa.Field) -> Loss | None:
    parts = [kind.field(place) for place in range(kind.num_fields)]
    lost = unknown_fields(records, frozenset(part.name for part in parts), f"the field {field.name}")
    inner = (loss_of([each.get(part.name) for each in records], part.type, field) for part in parts)
    return lost or next(filter(None, inner), None)


def _loss_of_single_values(values: Sequence[Any], kind: pa.DataType, field: pa.Field) -> Loss | None:
    classes = set(map(type, values)) - {type(None)}
    if not all(_is_kept(each, kind) for each in classes):
        return misfit(field)
    largest = _LARGEST.get(kind)
    if largest is not None and overflows(values, largest):
        return misfit(field)
    if pa.types.is_temporal(kind) and not pa.types.is_date(kind):
        return _loss_of_times(values, classes, kind, field)
    return None


def overflows(values: Iterable[Any], largest: float) -> bool:
    """True if a number becomes infinite in a type whose greatest number is `largest`."""
    return any(isinstance(value, int | float) and largest < abs(value) != math.inf for value in values)


def _is_kept(value: type, kind: pa.DataType) -> bool:
    """True if Arrow keeps values of a Python type: it cuts 1.5 to the int 1, and reads bytes as text."""
    if pa.types.is_integer(kind):
        return hasattr(value, "__index__") and value is not bool
    if pa.types.is_floating(kind):
        return value is not bool
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return issubclass(value, str)
    if pa.types.is_date(kind):
        return not issubclass(value, datetime.datetime)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return not (is_bytes or pa.types.is_fixed_size_binary(kind)) or not issubclass(value, str)


def _loss_of_times(
    values: Sequence[Any], classes: set[type], kind: pa.DataType, field: pa.Field
) -> Loss | None:
    lost = None
    if not pa.types.is_duration(kind):
        time = datetime.datetime if pa.types.is_timestamp(kind) else datetime.time
        times = [value for value in values if isinstance(value, time)]
        lost = wrong_zone(times, getattr(kind, "tz", None) is not None, field.name)
    unit = MICROS_OF_UNIT.get(getattr(kind, "unit", "us"))
    if unit is not None and any(_micros_of(value) % unit for value in values):
        return lost or misfit(field)
    # Times of pandas also have nanoseconds.
    if kind.unit != "ns" and any(hasattr(each, "nanosecond") for each in classes):
        return lost or (misfit(field) if any(getattr(value, "nanosecond", 0) for value in values) else None)
    return lost


def _micros_of(value: Any) -> int:
    if isinstance(value, datetime.timedelta):
        return value.microseconds
    micros: int = getattr(value, "microsecond", 0)
    return micros
