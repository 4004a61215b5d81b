"""A value beyond its type is refused by name, with the same words from dicts, Rows and tuples, and never changed."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from other_borders import AVRO_SPELLINGS

from penstock.base.row import Row
from penstock.values.types import TYPES, ValueType
from penstock_spark.arrow.records import to_batch
from penstock_spark.formats.avro.exact import check_of

SPELLINGS = {
    "integer": pa.int64(),
    "unsigned integer": pa.uint64(),
    "decimal": pa.decimal128(38, 18),
    "wide decimal": pa.decimal128(38, 0),
    "text": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time of day": pa.time64("us"),
    "instant": pa.timestamp("us", "UTC"),
    "local time": pa.timestamp("us"),
    "duration": pa.duration("us"),
}
"""The column of each type that has values beyond it."""

Element = namedtuple("Element", ["c"])
WAYS: dict[str, Callable[[Any], Any]] = {
    "dicts": lambda value: {"c": value},
    "Rows": lambda value: Row(c=value),
    "tuples": Element,
}
BEYOND = [
    pytest.param(kind, value, id=f"{kind.name} {value!a}"[:60]) for kind in TYPES for value in kind.beyond
]


def refusals(kind: ValueType, value: Any) -> dict[str, str]:
    """What each way says about a value, or what it becomes."""
    schema = pa.schema([("c", SPELLINGS[kind.name])])
    found = {}
    for way, make in WAYS.items():
        try:
            found[way] = f"became {to_batch([make(value)], schema, 'at step Write').column(0)}"
        except (TypeError, ValueError) as error:
            found[way] = f"{type(error).__name__}: {error}"
    return found


def faults(kind: ValueType, value: Any) -> dict[str, str]:
    found = refusals(kind, value)
    named = all("the field c" in told and "at step Write" in told for told in found.values())
    return {} if named and len(set(found.values())) == 1 else found


@pytest.mark.parametrize(("kind", "value"), BEYOND)
def test_a_value_beyond_its_type_is_refused_by_name(kind: ValueType, value: Any) -> None:
    assert faults(kind, value) == {}


def test_every_type_with_values_beyond_it_has_a_column() -> None:
    assert {kind.name for kind in TYPES if kind.beyond} == set(SPELLINGS)


def test_a_border_that_skips_the_check_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock_spark.arrow.records.loss_of", lambda values, kind, field: None)
    assert any(faults(kind, value) for kind in TYPES for value in kind.beyond)


@pytest.mark.parametrize(("kind", "value"), [each for each in BEYOND if "decimal" in each.values[0].name])
def test_avro_refuses_a_decimal_beyond_its_digits(kind: ValueType, value: Any) -> None:
    check = check_of(["null", *AVRO_SPELLINGS[kind.name]])
    assert check is not None
    assert check([*kind.edges, None]) is None
    assert check([value]) is not None
