"""The known bounds of integers are never too small."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from penstock.scalars.expressions import Expression, field
from penstock.scalars.tree import Literal, walk
from penstock.scalars.types import PYTHON
from penstock_spark.formats.parquet.footers import certain_schema
from penstock_spark.plan.column_bounds import Bounds, Range

LARGEST = (1 << 63) - 1


def some_range(source: random.Random) -> Range:
    ends = [source.choice((0, 1, 7, 1 << 31, LARGEST)) * source.choice((1, -1)) for _ in range(2)]
    return Range(min(ends), max(ends))


def some_expression(source: random.Random, depth: int) -> Expression:
    if depth == 0:
        return source.choice((field("a"), field("b"), constant(source.randrange(-9, 10))))
    left = some_expression(source, depth - 1)
    match source.randrange(5):
        case 0:
            return left + some_expression(source, depth - 1)
        case 1:
            return left - some_expression(source, depth - 1)
        case 2:
            return left * some_expression(source, depth - 1)
        case 3:
            return left // source.randrange(1, 9)
    return left % source.randrange(1, 9)


def constant(value: object) -> Expression:
    return Expression(Literal(value, PYTHON))


def parts_of(expression: Expression):
    return map(Expression, walk(expression.scalar))


@pytest.mark.parametrize("seed", range(200))
def test_no_value_is_outside_of_the_range_of_its_expression(seed):
    source = random.Random(seed)
    ranges = {name: some_range(source) for name in "ab"}
    bounds = Bounds(1, ranges)
    expression = some_expression(source, 3)
    found = bounds.range_of(expression)
    near = {
        name: sorted({each.least, each.greatest, (each.least + each.greatest) // 2})
        for name, each in ranges.items()
    }
    for a, b in itertools.product(near["a"], near["b"]):
        row = {"a": a, "b": b}
        values = [part(row) for part in parts_of(expression)]
        if found is not None:
            assert found.least <= values[0] <= found.greatest
            assert all(abs(value) <= LARGEST + 1 for value in values), "a part has more than 64 bits"


def test_what_is_not_known_has_no_range():
    bounds = Bounds(1, {"a": Range(0, 9)})
    for expression in (
        field("b"),
        field("a") + field("b"),
        field("a") * 0.5,
        field("a") > 3,
        constant(True),
        constant("a"),
    ):
        assert bounds.range_of(expression) is None
    assert bounds.range_of(field("a") // (field("a") + 1)) == Range(0, 9)
    assert bounds.range_of(field("a") // field("a")) is None


def test_sums_have_64_bits_up_to_the_last_number_that_does():
    bounds = Bounds(1 << 33, {"a": Range(-(1 << 30), 1), "b": Range(0, (1 << 30) - 1)})
    assert not bounds.has_sums(field("a"))
    assert bounds.has_sums(field("b"))
    assert not bounds.has_sums(field("b") + 1)
    assert not Bounds(None, {"b": Range(0, 0)}).has_sums(field("b"))


def written(path, numbers, kind=None, rows_in_group=2):
    kind = kind or pa.int64()
    table = pa.table({"text": pa.array(["x"] * len(numbers), pa.string()), "n": pa.array(numbers, kind)})
    pq.write_table(table, path, row_group_size=rows_in_group)
    return str(path)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_footers_tell_the_range_of_all_files_and_row_groups(tmp_path, kind):
    one = written(tmp_path / "one", [3, None, 5, -7, None, None], kind)
    other = written(tmp_path / "other", [100], kind)
    found = certain_schema(list(map(pq.read_metadata, [one, other])))
    assert found is not None
    assert (found.bounds.rows_max, found.bounds.ranges) == (7, {"n": Range(-7, 100)})


def test_a_column_whose_footer_does_not_tell_has_no_range(tmp_path):
    pq.write_table(pa.table({"n": [1, 2], "m": [3, 4]}), tmp_path / "a", write_statistics=["m"])
    found = certain_schema(list(map(pq.read_metadata, [str(tmp_path / "a")])))
    assert found is not None
    assert found.bounds.ranges == {"m": Range(3, 4)}
    for name, numbers in (("empty", []), ("none", [None, None])):
        found = certain_schema(list(map(pq.read_metadata, [written(tmp_path / name, numbers)])))
        assert found is not None
        assert found.bounds.ranges == {}


def test_a_column_that_only_the_note_of_spark_names_has_no_range(tmp_path):
    noted = {"org.apache.spark.sql.parquet.row.metadata": StructType().add("was", "long").json()}
    pq.write_table(pa.table({"n": [1]}).replace_schema_metadata(noted), tmp_path / "a")
    found = certain_schema(list(map(pq.read_metadata, [str(tmp_path / "a")])))
    assert found is not None
    assert (found.schema.names, found.bounds.ranges) == (["was"], {})


def test_more_numbers_in_footers_than_are_worth_reading_are_not_read(tmp_path):
    few = written(tmp_path / "few", list(range(10)), rows_in_group=1)
    many = written(tmp_path / "many", list(range(10_001)), rows_in_group=1)
    for path, ranges in ((few, {"n": Range(0, 9)}), (many, {})):
        found = certain_schema(list(map(pq.read_metadata, [path])))
        assert found is not None
        assert found.bounds.ranges == ranges
