"""PCollections as DataFrames and DataFrames as PCollections."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import penstock as beam
from penstock.io import from_dataframe, to_dataframe
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.typehints import KV, Dict, List
from penstock_spark.columns.records import column_of, field_of

pytestmark = pytest.mark.spark


class Score(NamedTuple):
    team: str
    points: int | None


def test_rows_of_a_frame_are_elements_with_attributes(spark):
    frame = spark.createDataFrame(
        [("red", 1, [1, 2]), ("blue", None, [])], "team string, n int, all array<int>"
    )
    with TestPipeline() as p:
        rows = p | from_dataframe(frame)
        seen = rows | beam.Map(lambda row: (row.team, row.n, row.all))
        assert_that(seen, equal_to([("red", 1, [1, 2]), ("blue", None, [])]))


def test_records_become_columns_by_name(spark):
    pipeline = beam.Pipeline(spark=spark)
    scores = pipeline | beam.Create([Score("red", 3), Score("blue", None)]).with_output_types(Score)
    frame = to_dataframe(scores)
    assert frame.schema.simpleString() == "struct<team:string,points:bigint>"
    assert sorted(map(tuple, frame.collect())) == [("blue", None), ("red", 3)]
    assert frame.sparkSession is spark


def test_pairs_and_single_values_have_the_columns_key_and_value(spark):
    pipeline = beam.Pipeline(spark=spark)
    words = pipeline | beam.Create(["to", "be", "to"])
    counts = words | beam.combiners.Count.PerElement()
    assert to_dataframe(words).schema.simpleString() == "struct<value:string>"
    frame = to_dataframe(counts)
    assert frame.schema.simpleString() == "struct<key:string,value:bigint>"
    assert sorted(map(tuple, frame.collect())) == [("be", 1), ("to", 2)]


@pytest.mark.every_spark
def test_a_frame_goes_on_in_spark_and_back(spark):
    pipeline = beam.Pipeline(spark=spark)
    numbers = pipeline | beam.Create([1, 2, 3, 4])
    even = to_dataframe(numbers).where("value % 2 = 0")
    with TestPipeline() as p:
        values = p | from_dataframe(even) | beam.Map(lambda row: row.value)
        assert_that(values, equal_to([2, 4]))


def test_a_frame_uses_side_inputs_and_a_given_schema(spark):
    pipeline = beam.Pipeline(spark=spark)
    factor = pipeline | "Factor" >> beam.Create([10])
    scaled = (
        pipeline
        | beam.Create([1, 2])
        | beam.Map(lambda x, by: {"x": x * by}, beam.pvalue.AsSingleton(factor))
    )
    frame = to_dataframe(scaled, schema="x bigint")
    assert sorted(row.x for row in frame.collect()) == [10, 20]


@pytest.mark.parametrize("value", [1.5, True, 2**70, None, "1"])
def test_a_value_that_the_declared_column_cannot_hold_is_an_error_and_never_another_value(spark, value):
    pipeline = beam.Pipeline(spark=spark)
    values = pipeline | beam.Create([value]).with_output_types(beam.typehints.Any)
    typed = values | beam.Map(lambda x: ("k", x)).with_output_types(KV[str, int])
    with pytest.raises(Exception, match="at step 'to_dataframe'"):
        to_dataframe(typed).collect()


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (List[int], [1.5]),
        (List[List[int]], [[True]]),
        (Dict[str, int], {"a": 2.5}),
        (List[Dict[str, int]], [{"a": 1, "b": "1"}]),
    ],
)
def test_a_value_inside_of_another_fits_its_type_or_is_an_error(hint, value):
    with pytest.raises(TypeError, match="does not fit"):
        column_of([value], field_of("x", hint, "here"), "here")


def test_pairs_and_lists_of_rows_become_structs(spark):
    frame = spark.createDataFrame([("a", [1], {"x": 2})], "k string, xs array<int>, m map<string,int>")
    rows = beam.Pipeline(spark=spark) | from_dataframe(frame)
    pairs = to_dataframe(rows | "Pair" >> beam.Map(lambda row: (row.k, row)))
    assert [(row.key, row.value.asDict()) for row in pairs.collect()] == [
        ("a", {"k": "a", "xs": [1], "m": {"x": 2}})
    ]
    lists = to_dataframe(rows | "List" >> beam.Map(lambda row: [row]))
    assert [[each.k for each in row.value] for row in lists.collect()] == [["a"]]


def test_an_unknown_type_is_refused_before_anything_runs(spark):
    pipeline = beam.Pipeline(spark=spark)
    values = pipeline | beam.Create([object]).with_output_types(beam.typehints.Any)
    with pytest.raises(ValueError, match="a column cannot hold the type Any") as refused:
        to_dataframe(values)
    assert "test_dataframes.py" in str(refused.value)
