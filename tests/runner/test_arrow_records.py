"""Records as Arrow columns: NamedTuples have a way of their own, with the same result."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from penstock.io.files.shards import Shards
from penstock.io.parquetio import ParquetSink
from penstock.pvalue import Row
from penstock.typehints import List, Optional
from penstock.typehints.column_types import UNSIGNED
from penstock.typehints.row_type import RowTypeConstraint
from penstock.utils.timestamp import MAX_TIMESTAMP, Timestamp
from penstock_spark.columns.records import schema_of, to_batch
from penstock_spark.columns.types import to_arrow_types, with_values_of, without_values_of
from penstock_spark.formats.parquet.writer import parquet_files

WHERE = "at step 'Write' (game.py:41)"


class Inner(NamedTuple):
    x: int


class Score(NamedTuple):
    team: str | None
    points: Any = None
    at: Timestamp | None = None
    inner: Inner | None = None
    tags: Any = None


SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("team", pa.string()),
        ("points", pa.int64()),
        ("inner", pa.struct([("x", pa.int64())])),
        ("tags", pa.list_(pa.struct([("x", pa.int64())]))),
        ("absent", pa.string()),
    ]
)
SCORES = [
    Score("a", 1, Timestamp(7), Inner(3), [Inner(1), Row(x=2)]),
    Score(None),
    Score("b", 1 << 62, Timestamp(0), None, ()),
]


def test_named_tuples_of_one_class_become_the_columns_of_their_dicts() -> None:
    batch = to_batch(SCORES, SCHEMA, WHERE)
    assert batch.equals(to_batch([score._asdict() for score in SCORES], SCHEMA, WHERE))
    assert batch.equals(to_batch([*SCORES, Row(team="c")], SCHEMA, WHERE).slice(0, 3))
    instant = datetime.datetime(1970, 1, 1, 0, 0, 7, tzinfo=datetime.UTC)
    first = {"at": instant, "team": "a", "points": 1, "inner": {"x": 3}, "tags": [{"x": 1}, {"x": 2}]}
    assert batch.to_pylist()[0] == {**first, "absent": None}
    assert to_batch([], SCHEMA, WHERE).num_rows == 0


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (pa.int64(), 1 << 63, "an int has 64 bits"),
        (pa.float32(), (1 << 24) + 1, "a float has 32 bits, 24 of them for its digits"),
        (pa.float64(), (1 << 53) + 1, "a float has 64 bits, 53 of them for its digits"),
        (pa.int32(), 1 << 31, "an int has 32 bits"),
        (pa.uint64(), -1, "64 bits and no sign"),
        (pa.decimal128(5, 2), decimal.Decimal("1.234"), "at most 5 digits, 2 of them"),
        (pa.string(), 7, "a string has no halves"),
        (pa.date32(), datetime.datetime(2026, 1, 1), "a date has no time of day"),
        (pa.date32(), 7, "a date has no time of day"),
        (pa.time64("us"), 7, "a time of day has microseconds"),
        (pa.timestamp("us", "UTC"), 7, "an instant is a datetime with a zone"),
        (pa.timestamp("us", "UTC"), 1.5, "an instant is a datetime with a zone"),
        (pa.timestamp("us"), 7, "a local time is a datetime without a zone"),
        (pa.duration("us"), 7, "a timedelta has 64 bits of microseconds"),
        (pa.duration("us"), datetime.timedelta.max, "a timedelta has 64 bits of microseconds"),
    ],
    ids=str,
)
def test_the_hint_tells_what_a_value_of_the_type_may_be(kind: pa.DataType, value: Any, told: str) -> None:
    with pytest.raises(TypeError, match="a value of the field x does not fit the type") as caught:
        to_batch([{"x": value}], pa.schema([("x", kind)]), WHERE)
    assert told in str(caught.value)


UNSIGNED_ROWS = RowTypeConstraint.from_fields([("size", Optional[UNSIGNED]), ("sizes", List[UNSIGNED])])


@pytest.mark.parametrize("size", [-1, 2**64, True, decimal.Decimal(1)])
def test_a_number_that_has_a_sign_or_more_than_64_bits_is_refused_where_numbers_have_no_sign(
    size: Any,
) -> None:
    schema = schema_of(UNSIGNED_ROWS, WHERE)
    assert [schema.types[0], schema.types[1].value_type] == [pa.decimal128(20, 0)] * 2
    kept = [{"size": 2**64 - 1, "sizes": [0]}, {"sizes": []}, {"size": 2**63, "sizes": [1]}]
    assert to_batch(kept, schema, WHERE)["size"].to_pylist() == [2**64 - 1, None, 2**63]
    for name, wrong in (("size", {"size": size, "sizes": []}), ("sizes", {"sizes": [1, size]})):
        with pytest.raises(TypeError, match=f"a value of the field {name} does not fit") as caught:
            to_batch([*kept, wrong], schema, WHERE)
        assert (name == "size") == ("from 0 to 2**64 - 1" in str(caught.value))


def test_what_a_schema_says_of_values_stays_with_columns_that_a_border_makes_of_it() -> None:
    schema = schema_of(RowTypeConstraint.from_fields([("size", UNSIGNED)]), WHERE)
    columns = with_values_of(pa.schema([("size", pa.decimal128(20, 0)), ("n", pa.int64())]), schema)
    with pytest.raises(TypeError, match="the field size does not fit"):
        to_batch([{"size": -1}], columns, WHERE)
    by_spark = parquet_files(
        ParquetSink(
            Shards("hdfs://host/sizes"), element_type=RowTypeConstraint.from_fields([("size", UNSIGNED)])
        ),
        WHERE,
    ).by_spark()
    with pytest.raises(TypeError, match="the field size does not fit"):
        by_spark.make_encoder().encode([Row(size=2**64)])
    plain = without_values_of(columns)
    assert to_batch([{"size": -1}], plain, WHERE)["size"].to_pylist() == [decimal.Decimal(-1)]
    assert plain.field("size").metadata is None
    assert to_arrow_types(schema).field("size").type == pa.uint64()


def test_none_where_a_value_is_needed_is_told_as_none() -> None:
    with pytest.raises(
        TypeError, match="a value of the field x is None, which its type does not allow"
    ) as caught:
        to_batch([{"x": None}], pa.schema([pa.field("x", pa.int64(), nullable=False)]), WHERE)
    assert "64 bits" not in str(caught.value)


@pytest.mark.parametrize("form", [lambda score: score, Score._asdict])
def test_what_does_not_fit_is_the_same_error_in_every_form(form: Any) -> None:
    required = pa.schema([pa.field("absent", pa.string(), nullable=False)])
    with pytest.raises(KeyError, match="a record has no field absent") as missing:
        to_batch(list(map(form, SCORES)), required, WHERE)
    for points in (1.5, "1", True, 1 << 70):
        with pytest.raises(
            TypeError, match="a value of the field points does not fit the type int64"
        ) as misfit:
            to_batch([form(Score("a", 1)), form(Score("a", points))], SCHEMA, WHERE)
        assert WHERE in str(misfit.value)
    assert "make the field nullable" in str(missing.value)


@pytest.mark.parametrize(("kind", "beyond"), [(pa.float32(), 3.5e38), (pa.float16(), 65536)])
def test_a_number_too_large_for_a_narrow_column_is_refused_and_does_not_become_infinite(
    kind: pa.DataType, beyond: float
) -> None:
    fit = [0.5, -65504.0, math.inf, -math.inf, None]
    assert to_batch([{"x": each} for each in fit], pa.schema([("x", kind)]), WHERE)["x"].to_pylist() == fit
    for value, column in [(beyond, kind), (-beyond, kind), ([beyond], pa.list_(kind))]:
        with pytest.raises(TypeError, match="a value of the field x does not fit the type"):
            to_batch([{"x": value}], pa.schema([("x", column)]), WHERE)


NEEDED = pa.field("item", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    ("kind", "fits", "misfit"),
    [
        (pa.struct([NEEDED]), {"item": 1}, {"item": None}),
        (pa.struct([NEEDED]), {"item": 1}, {}),
        (pa.list_(NEEDED), [1], [1, None]),
        (pa.map_(pa.string(), NEEDED), {"a": 1}, {"a": None}),
        (pa.list_(pa.struct([NEEDED])), [{"item": 1}, None], [{"item": None}]),
    ],
)
def test_null_inside_of_a_value_is_refused_where_the_type_needs_a_value(
    kind: pa.DataType, fits: Any, misfit: Any
) -> None:
    schema = pa.schema([("x", kind)])
    assert to_batch([{"x": fits}, {"x": None}, {}], schema, WHERE)["x"].null_count == 2
    with pytest.raises(TypeError, match="a value of the field x is None, which its type does not allow"):
        to_batch([{"x": fits}, {"x": misfit}], schema, WHERE)


class Address(NamedTuple):
    city: str
    code: str | None = None


CITY = pa.struct([("city", pa.string())])
LISTS_OF_CITIES = (pa.list_(CITY), pa.large_list(CITY), pa.list_(CITY, 1), pa.list_view(CITY))


@pytest.mark.parametrize(
    ("kind", "kept", "lost"),
    [
        (CITY, Row(city="Rome"), Address("Rome", "00184")),
        (CITY, {"city": "Rome"}, {"city": "Rome", "code": None}),
        *((kind, [{"city": "Rome"}], [{"city": "Rome", "code": ""}]) for kind in LISTS_OF_CITIES),
        (pa.map_(pa.string(), CITY), {"home": Row(city="Rome")}, {"home": Address("Rome")}),
        (pa.map_(pa.string(), CITY), [("home", Row(city="Rome"))], [("home", Address("Rome"))]),
    ],
)
def test_a_field_that_the_schema_lacks_is_refused_at_any_depth(
    kind: pa.DataType, kept: Any, lost: Any
) -> None:
    schema = pa.schema([("of", kind)])
    assert to_batch([{"of": kept}, {}], schema, WHERE).num_rows == 2
    with pytest.raises(
        ValueError, match="the field of has the field 'code', which the schema lacks"
    ) as caught:
        to_batch([{"of": kept}, {"of": lost}], schema, WHERE)
    assert WHERE in str(caught.value)
    assert "hint: add it to the schema" in str(caught.value)


@pytest.mark.parametrize(
    "form", [lambda address: address, Address._asdict, lambda address: Row(**address._asdict())]
)
def test_a_field_of_an_element_that_the_schema_lacks_is_refused_in_every_form(form: Any) -> None:
    with pytest.raises(ValueError, match="an element has the field 'code', which the schema lacks"):
        to_batch([form(Address("Rome"))], pa.schema([("city", pa.string())]), WHERE)
    many = {f"field{number}": "Rome" for number in range(9)}
    with pytest.raises(ValueError, match=r"has the fields 'field0', .*'field4' and 4 more, which") as caught:
        to_batch([{"city": "Rome", **many}], pa.schema([("city", pa.string())]), WHERE)
    assert "Rome" not in str(caught.value)


NOON = datetime.datetime(2026, 7, 1, 12, 0, 0, 123456)
NO_ZONE, ZONE = "has no zone", "has a zone, which the column does not keep"
MISFIT = "does not fit the type"


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (pa.timestamp("us", "UTC"), NOON, NO_ZONE),
        (pa.timestamp("us"), NOON.replace(tzinfo=datetime.UTC), ZONE),
        (pa.timestamp("us"), Timestamp(0), ZONE),
        (pa.time64("us"), NOON.replace(tzinfo=datetime.UTC).timetz(), ZONE),
        (pa.list_(pa.timestamp("ns", "UTC")), [NOON], NO_ZONE),
        (pa.timestamp("ms"), NOON, MISFIT),
        (pa.timestamp("s", "UTC"), NOON.replace(tzinfo=datetime.UTC), MISFIT),
        (pa.time32("ms"), NOON.time(), MISFIT),
        (pa.duration("s"), datetime.timedelta(microseconds=1), MISFIT),
        (pa.timestamp("us"), pd.Timestamp("2026-07-01T12:00:00.123456789"), MISFIT),
        (pa.date32(), NOON, MISFIT),
        (pa.date64(), NOON, MISFIT),
        (pa.large_list(pa.int64()), [1.5], MISFIT),
        (pa.list_(pa.int64(), 1), [1.5], MISFIT),
        (pa.list_(pa.int64()), np.array([1.5]), MISFIT),
        (pa.map_(pa.string(), pa.int64()), [("a", 1.5)], MISFIT),
        (pa.list_(pa.string()), "ab", MISFIT),
        (pa.large_list(pa.int64()), b"ab", MISFIT),
        (pa.list_(pa.list_(pa.string())), ["ab"], MISFIT),
        (pa.large_string(), b"text", MISFIT),
        (pa.large_binary(), "text", MISFIT),
        (pa.binary(4), "text", MISFIT),
    ],
)
def test_what_arrow_would_change_without_a_word_is_refused(kind: pa.DataType, value: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words) as caught:
        to_batch([{"x": value}], pa.schema([("x", kind)]), WHERE)
    assert WHERE in str(caught.value)
    assert "hint: " in str(caught.value)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (MAX_TIMESTAMP, "a time of the field at is outside of the years 1 to 9999"),
        (Timestamp.from_rfc3339("2026-01-01T00:00:00.000000001Z"), "a time of the field at is finer than a"),
    ],
)
@pytest.mark.parametrize(
    "form", [lambda score: score, Score._asdict, lambda score: Row(inner={"at": [score.at]})]
)
def test_a_timestamp_that_no_datetime_has_is_refused_by_its_field(time: Any, words: str, form: Any) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        to_batch([form(Score("a", at=time))], SCHEMA, WHERE)
    assert "hint: " in str(caught.value)
    assert repr(time) not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("us", "UTC"), NOON.replace(tzinfo=datetime.UTC)),
        (pa.timestamp("us"), NOON),
        (pa.timestamp("ms"), NOON.replace(microsecond=123000)),
        (pa.timestamp("ns"), NOON),
        (pa.time64("us"), NOON.time()),
        (pa.date32(), NOON.date()),
        (pa.duration("s"), datetime.timedelta(days=-1)),
        (pa.list_(pa.int64()), np.array([1, 2])),
        (pa.large_binary(), b"text"),
        (pa.dictionary(pa.int32(), pa.string()), "text"),
    ],
)
def test_values_of_the_types_of_columns_stay_as_they_are(kind: pa.DataType, value: Any) -> None:
    [found] = to_batch([{"x": value}], pa.schema([("x", kind)]), WHERE)["x"].to_pylist()
    assert found == (value.tolist() if isinstance(value, np.ndarray) else value)
