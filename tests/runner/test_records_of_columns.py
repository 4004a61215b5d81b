"""Records that loops make of columns: their names and values are those of the columns, whatever they are."""

from __future__ import annotations

import datetime
import decimal
import pickle
from typing import Any

import pyarrow as pa
import pytest

from penstock.elements.row import Row, make_row_class
from penstock_spark.columns.values import to_dicts, to_rows

NAMES = (
    *("a", "b c", "a.b", "`", "'", '"', "\\", "\n", "{a}", "", "0", "é", "名", "class", "None", "self"),
    # One letter that Python would take for two others where a statement has it.
    "\ufb01eld",
    # Names in the loop, in a Row, and of Python.
    *(
        "value0",
        "made",
        "new",
        "kind",
        "loop",
        "zip",
        "as_dict",
        "_fields",
        "__dict__",
        "__class__",
        "__init__",
    ),
)


def table_of(names: tuple[str, ...]) -> pa.Table:
    columns = [pa.array([place, None, -place]) for place in range(len(names))]
    return pa.Table.from_arrays(columns, names=list(names))


@pytest.mark.parametrize(
    "names", [*((name,) for name in NAMES), NAMES, tuple(f"column{n}" for n in range(300))]
)
def test_records_have_the_names_of_their_columns_in_order(names: tuple[str, ...]) -> None:
    places = range(len(names))
    expected: list[dict[str, Any]] = [
        dict(zip(names, places, strict=True)),
        dict.fromkeys(names),
        {name: -place for name, place in zip(names, places, strict=True)},
    ]
    dicts, rows = to_dicts(table_of(names)), to_rows(table_of(names))
    assert [list(each.items()) for each in dicts] == [list(each.items()) for each in expected]
    assert [list(Row.as_dict(each).items()) for each in rows] == [list(each.items()) for each in expected]
    assert rows == [Row(**each) for each in expected] == pickle.loads(pickle.dumps(rows))
    assert {type(each) for each in rows} == {make_row_class(names)}


def test_rows_without_columns_are_as_many_as_before() -> None:
    table = pa.table({"a": [1, 2]}).select([])
    assert to_dicts(table) == [{}, {}]
    assert to_rows(table) == [Row(), Row()]


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.timestamp("us"), [datetime.datetime.min, datetime.datetime.max]),
        (
            pa.timestamp("us", "UTC"),
            [each.replace(tzinfo=datetime.UTC) for each in (datetime.datetime.min, datetime.datetime.max)],
        ),
        (pa.date32(), [datetime.date.min, datetime.date.max]),
        (pa.duration("us"), [datetime.timedelta(microseconds=each) for each in (-(2**62), 2**62)]),
        (pa.time64("us"), [datetime.time.min, datetime.time.max]),
        (pa.decimal128(38, 2), [decimal.Decimal("-1.50"), decimal.Decimal("9" * 36 + ".99")]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
        (
            pa.dictionary(pa.int8(), pa.timestamp("us")),
            [datetime.datetime(1, 1, 1), datetime.datetime(2, 2, 2)],
        ),
    ],
    ids=str,
)
def test_values_and_nulls_of_each_chunk_stay_in_their_places(
    kind: pa.DataType, values: list[Any], chunks: int
) -> None:
    some = [None, *values, None, None, *values]
    is_dictionary = pa.types.is_dictionary(kind)
    column = pa.array(some, kind.value_type).dictionary_encode() if is_dictionary else pa.array(some, kind)
    table = pa.table({"a": pa.chunked_array([column] * chunks)})
    for found in ([each["a"] for each in to_dicts(table)], [each.a for each in to_rows(table)]):
        assert [repr(each) for each in found] == [repr(each) for each in some * chunks]


@pytest.mark.parametrize(
    "known",
    [
        *(
            pa.array(["x", None]),
            pa.array(["x", "y"], pa.string_view()),
            pa.array([b"x", b"y"], pa.binary(1)),
        ),
        *(
            pa.array([datetime.time(1), None]),
            pa.array([0, 1], pa.timestamp("us", "UTC")),
            pa.array([0.5, 1]),
        ),
        *(pa.array([[1], [2]]), pa.array([{"a": [1]}, {"a": [2]}])),
    ],
    ids=lambda known: str(known.type),
)
@pytest.mark.parametrize("index", [pa.int8(), pa.uint8()])
def test_values_of_dictionaries_are_those_of_their_places_and_each_is_another_one(
    known: pa.Array, index: pa.DataType
) -> None:
    places = [1, None, 0, 1]
    of_places = pa.DictionaryArray.from_arrays(pa.array(places, index), known)
    found = [
        each["a"] for each in to_dicts(pa.table({"a": pa.chunked_array([of_places, of_places.slice(1)])}))
    ]
    values = [each["a"] for each in to_dicts(pa.table({"a": known}))]
    expected = [None if place is None else values[place] for place in (*places, *places[1:])]
    assert [repr(each) for each in found] == [repr(each) for each in expected]
    changeable = [id(each) for each in found if isinstance(each, list | dict)]
    assert len(set(changeable)) == len(changeable)


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("s"), pa.duration("us")],
)
def test_a_time_that_python_does_not_have_is_refused(kind: pa.DataType, number: int) -> None:
    """NumPy has no time for the least number, and would make it None."""
    table = pa.table({"a": pa.array([0, number]).cast(kind)})
    if kind == pa.timestamp("ns") or (kind == pa.duration("us") and number > 0):
        assert len(to_dicts(table)) == 2  # It is cut to microseconds that Python has.
        return
    with pytest.raises(
        ValueError, match="a value of the column a is outside the range of Python for the type"
    ):
        to_dicts(table)
