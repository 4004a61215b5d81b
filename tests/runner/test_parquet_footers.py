"""The columns of Parquet files as their footers tell them, where Spark need not be asked."""

from __future__ import annotations

import datetime
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StringType, StructType

from penstock_spark.formats.parquet.footers import certain_schema, read_footers

FLAT = {
    "byte": pa.array([1], pa.int8()),
    "short": pa.array([1], pa.int16()),
    "integer": pa.array([1], pa.int32()),
    "long": pa.array([1], pa.int64()),
    "float": pa.array([1], pa.float32()),
    "double": pa.array([1], pa.float64()),
    "a.text": pa.array(["a"]),
    "repeated": pa.array(["a"]).dictionary_encode(),
    "yes": pa.array([True]),
    "day": pa.array([datetime.date(2020, 1, 1)]),
    "micros": pa.array([1], pa.timestamp("us", "UTC")),
    "millis": pa.array([1], pa.timestamp("ms", "UTC")),
}
"""A column of each type that is known without Spark."""


def schema_of_footers(paths):
    if read_footers(paths) is None:
        return None
    footers = certain_schema([pq.read_metadata(path) for path in paths])
    return None if footers is None else footers.schema


def written(path, columns, noted=None):
    table = pa.table(columns)
    if noted is not None:
        table = table.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": noted})
    pq.write_table(table, path)
    return str(path)


def test_flat_columns_have_the_types_that_spark_gives_them(tmp_path):
    schema = schema_of_footers([written(tmp_path / "a", FLAT), written(tmp_path / "b", FLAT)])
    assert schema is not None
    text = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
    assert text == (
        "byte tinyint, short smallint, integer int, long bigint, float float, double double, a.text string, "
        "repeated string, yes boolean, day date, micros timestamp, millis timestamp"
    )
    assert all(field.nullable for field in schema)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a"]),
        pa.array([1], pa.uint32()),
        pa.array([1], pa.decimal128(9, 2)),
        pa.array([1], pa.timestamp("us")),
        pa.array([1], pa.timestamp("ns", "UTC")),
        pa.array([1], pa.time32("ms")),
        pa.array([{"a": 1}]),
        pa.array([[1]]),
        pa.nulls(1),
    ],
    ids=lambda column: str(column.type),
)
def test_what_settings_may_change_and_what_is_not_flat_is_left_to_spark(tmp_path, column):
    assert schema_of_footers([written(tmp_path / "a", {"n": FLAT["long"], "column": column})]) is None


def test_files_that_differ_or_are_many_or_cannot_be_read_are_left_to_spark(tmp_path):
    one = written(tmp_path / "one", {"n": FLAT["long"]})
    other = written(tmp_path / "other", {"n": FLAT["integer"]})
    assert schema_of_footers([one, one]) is not None
    assert schema_of_footers([one, other]) is None
    assert schema_of_footers([one] * 100) is None
    (tmp_path / "text").write_text("no footer")
    assert schema_of_footers([str(tmp_path / "text")]) is None
    assert schema_of_footers([one, str(tmp_path / "missing")]) is None


def test_the_schema_that_spark_has_noted_counts(tmp_path):
    columns = {"n": FLAT["long"], "text": FLAT["a.text"]}
    plain = StructType().add("n", "long", False).add("text", "string")
    found = schema_of_footers([written(tmp_path / "a", columns, plain.json())])
    assert found == StructType().add("n", "long").add("text", "string")
    own = StructType().add("n", "long").add("text", StringType("UTF8_LCASE"))
    assert schema_of_footers([written(tmp_path / "b", columns, own.json())]) is None
    described = json.loads(plain.json())
    described["fields"][0]["metadata"] = {"comment": "a number"}
    assert schema_of_footers([written(tmp_path / "c", columns, json.dumps(described))]) is None
    assert schema_of_footers([written(tmp_path / "d", columns, "{")]) is None
