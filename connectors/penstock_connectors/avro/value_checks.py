"""Values that ``fastavro`` would write as another value silently, or not at all: 1.5 as the integer 1, a string as
true, a time without a zone as an instant in the zone of the worker, and no field that the schema lacks.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from penstock.values.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    FLOAT_DIGIT_BITS,
    FLOAT_GREATEST,
    INTEGER,
    NOTHING,
    TIME,
    ValueType,
)
from penstock_connectors.avro.field_errors import MISMATCH, find_mismatch
from penstock_spark.connecting.values import Loss, find_unknown_fields, find_wrong_zone, overflows

Check = Callable[[list[Any]], Loss | None]
"""Returns the loss when these values are written, as far as the package itself does not look."""


def check_of(schema: object) -> Check | None:
    """The check for values of a schema that the package has parsed; None if there is nothing to check.

    It looks at all values of a column at once.

    >>> check = check_of({"type": "array", "items": "long"})
    >>> check([[1, 2], []]), check([[1.5]]) is MISMATCH, check_of("string")
    (None, True, None)
    """
    return _Checks().of(schema, "the elements")


@dataclass
class _Checks:
    """The checks of the named types in a schema, which may contain themselves; the nearest record names a misfit."""

    named: dict[str, Check | None] = field(default_factory=dict)

    def of(self, schema: Any, name: str) -> Check | None:
        match schema:
            case list() as branches:
                return self._of_union(branches, name)
            case {"logicalType": logical, "type": kind} if (kind, logical) in _OF_LOGICAL_TYPE:
                return partial(_OF_LOGICAL_TYPE[kind, logical], name=name)
            case {"logicalType": "decimal", "precision": digits}:
                return partial(_decimals, digits=digits, scale=schema.get("scale", 0))
            case {"type": "record" | "error", "fields": fields, "name": own}:
                # A reference inside of the record looks the check up when there are values.
                self.named[own] = None
                checks = [(each, self.of(each["type"], each["name"])) for each in fields]
                self.named[own] = partial(_of_records, checks=checks, name=name)
                return self.named[own]
            case {"type": "array", "items": items}:
                return partial(_of_arrays, items=self.of(items, name))
            case {"type": "map", "values": items}:
                return partial(_of_maps, items=self.of(items, name))
            case {"type": str() as kind}:
                return _OF_TYPE.get(kind)
            case str() as reference if reference in self.named:
                return lambda values: _of_named(self.named[reference], values)
            case str() as kind:
                return _OF_TYPE.get(kind)
        return None

    def _of_union(self, branches: list[Any], name: str) -> Check | None:
        others = [branch for branch in branches if branch != "null"]
        checks = [(_kind_of(branch), self.of(branch, name)) for branch in others]
        records = [check for kind, check in checks if kind in ("record", "error") or kind in self.named]
        times = [check for kind, check in checks if kind in _TIMES]
        has_maps = any(kind == "map" for kind, _ in checks)
        if not (records or times or len(others) == 1):
            # The package looks for the branch that fits.
            return None
        return partial(
            _of_union,
            only=checks[0][1] if len(others) == 1 else None,
            records=[] if has_maps else [each for each in records if each is not None],
            times=next(iter(times), None),
        )


def _kind_of(branch: object) -> object:
    kind = branch.get("type") if isinstance(branch, dict) else branch
    logical = branch.get("logicalType") if isinstance(branch, dict) else None
    return (kind, logical) if (kind, logical) in _TIMES else kind


def _of_named(check: Check | None, values: list[Any]) -> Loss | None:
    return None if check is None or not values else check(values)


def _of_union(
    values: list[Any], only: Check | None, records: Sequence[Check], times: Check | None
) -> Loss | None:
    # A pair says which branch it is; so does a field "-type" of a record.
    some = [value[1] if isinstance(value, tuple) else value for value in values if value is not None]
    if only is not None:
        return only(_without_type(some) if records else some)
    for record in _without_type(some) if records else ():
        lost = [check([record]) for check in records if isinstance(record, Mapping)]
        if lost and all(lost):
            return lost[0]
    moments = [value for value in some if isinstance(value, datetime.datetime)]
    return times(moments) if times is not None and moments else None


def _without_type(records: list[Any]) -> list[Any]:
    return [
        {name: value for name, value in record.items() if name != "-type"}
        if isinstance(record, Mapping) and "-type" in record
        else record
        for record in records
    ]


def _of_records(
    values: list[Any], checks: Sequence[tuple[Mapping[str, Any], Check | None]], name: str
) -> Loss | None:
    if not all(isinstance(value, Mapping) for value in values):
        return MISMATCH
    whose = "an element" if name == "the elements" else f"the field {name}"
    lost = find_unknown_fields(values, frozenset(field["name"] for field, _ in checks), whose)
    if lost is not None:
        return lost
    for part, check in checks:
        if check is None:
            continue
        # The package refuses a field that is missing, or writes its default.
        there = [value[part["name"]] for value in values if part["name"] in value]
        lost = check(there)
        if lost is not None:
            return find_mismatch(part, there) if lost is MISMATCH else lost
    return None


def _of_arrays(values: list[Any], items: Check | None) -> Loss | None:
    # The package would write the characters of a text, and the keys of a dict.
    if any(issubclass(kind, str | bytes | Mapping) for kind in set(map(type, values))):
        return MISMATCH
    return None if items is None else items(list(chain.from_iterable(values)))


def _of_maps(values: list[Any], items: Check | None) -> Loss | None:
    if not all(issubclass(kind, Mapping) for kind in set(map(type, values))):
        return MISMATCH
    return None if items is None else items([item for value in values for item in value.values()])


def _classes(values: list[Any], value: ValueType) -> Loss | None:
    """The package writes nothing for null, whatever the value is, and booleans and fractions as integers."""
    return None if all(map(value.takes, set(map(type, values)))) else MISMATCH


def _decimals(values: list[Any], digits: int, scale: int) -> Loss | None:
    """The package counts the digits without the zeros that the scale adds, and fails at NaN with another error."""
    limit = decimal.Decimal(1).scaleb(digits - scale)
    decimals = [value for value in values if isinstance(value, decimal.Decimal)]
    fits = all(
        value.is_finite() and value.copy_abs() < limit and value.as_tuple().exponent >= -scale  # type: ignore[operator]
        for value in decimals
    )
    return None if fits else MISMATCH


def _narrow(values: list[Any]) -> Loss | None:
    return MISMATCH if overflows(values, FLOAT_GREATEST[32]) else _classes(values, FLOAT)


def _doubles(values: list[Any]) -> Loss | None:
    wholes = [value for value in values if type(value) is int]
    fits = all(abs(value) <= 1 << FLOAT_DIGIT_BITS[64] or float(value) == value for value in wholes)
    return _classes(values, FLOAT) if fits else MISMATCH


def _uuids(values: list[Any], name: str) -> Loss | None:
    for value in values:
        if not isinstance(value, uuid.UUID):
            # The package writes any text, and then cannot read it.
            try:
                uuid.UUID(value)
            except (ValueError, AttributeError, TypeError):
                return MISMATCH
    return None


def _dates(values: list[Any], name: str) -> Loss | None:
    return _classes(values, DATE)


def _moments(values: list[Any], name: str, kind: type, is_instant: bool, unit_micros: int) -> Loss | None:
    times: list[Any] = [value for value in values if isinstance(value, kind)]
    lost = find_wrong_zone(times, is_instant, name)
    if lost is not None:
        return lost
    if unit_micros > 1 and any(time.microsecond % unit_micros for time in times):
        return MISMATCH
    return _classes(values, TIME)


_OF_TYPE: dict[str, Check] = {
    "null": partial(_classes, value=NOTHING),
    "int": partial(_classes, value=INTEGER),
    "long": partial(_classes, value=INTEGER),
    "boolean": partial(_classes, value=BOOLEAN),
    "float": _narrow,
    "double": _doubles,
}
_TIMES: dict[tuple[str, str], Callable[..., Loss | None]] = {
    ("long", f"{prefix}timestamp-{unit}"): partial(
        _moments, kind=datetime.datetime, is_instant=not prefix, unit_micros=micros
    )
    for prefix in ("", "local-")
    for unit, micros in (("micros", 1), ("millis", 1000))
}
_OF_LOGICAL_TYPE: dict[tuple[str, str], Callable[..., Loss | None]] = {
    **_TIMES,
    ("int", "time-millis"): partial(_moments, kind=datetime.time, is_instant=False, unit_micros=1000),
    ("long", "time-micros"): partial(_moments, kind=datetime.time, is_instant=False, unit_micros=1),
    ("int", "date"): _dates,
    ("string", "uuid"): _uuids,
}
