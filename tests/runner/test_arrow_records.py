"""Records as Arrow columns: NamedTuples have a way of their own, which gives the same."""

from __future__ import annotations

import datetime
import math
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from penstock.pvalue import Row
from penstock.utils.timestamp import Timestamp
from penstock_spark.arrow.records import to_batch

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
    with pytest.raises(TypeError, match="a value of the field x does not fit the type"):
        to_batch([{"x": fits}, {"x": misfit}], schema, WHERE)
