"""Spark's own work on columns: which expressions, why not others, and how Python reads the result."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types

import penstock as beam
from penstock import field
from penstock.elements.row import Row
from penstock.graph import DriverList, Read
from penstock.io import ReadFromParquet, ReadFromText, WriteToParquet
from penstock.io.sink_transforms import SinkTransform
from penstock.scalars.expressions import Expression
from penstock.scalars.tree import Literal
from penstock.scalars.types import PYTHON
from penstock.transforms.window import FixedWindows, GlobalWindow, IntervalWindow
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN
from penstock_spark.compiler import Target, optimise
from penstock_spark.folding.group_read import ONLY_PANE
from penstock_spark.formats.registry import table_before_opening, table_of_schema
from penstock_spark.passes.columns import columns
from penstock_spark.plan.column_kinds import NotInColumns, name_kind
from penstock_spark.plan.column_plan import ColumnsSource, Table
from penstock_spark.worker.batch import GLOBAL, MIN_MICROS
from penstock_spark.worker.column_read import ColumnReader
from tests.runner import golden_pipelines

FIELDS = (
    ("n", types.LongType()),
    ("small", types.ByteType()),
    ("x", types.DoubleType()),
    ("text", types.StringType()),
    ("loud", types.StringType("UTF8_LCASE")),
    ("yes", types.BooleanType()),
    ("raw", types.BinaryType()),
    ("day", types.DateType()),
    ("at", types.TimestampType()),
    ("price", types.DecimalType(10, 2)),
)
N, X, TEXT, YES = field("n"), field("x"), field("text"), field("yes")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (N + 1, "int"),
        (N * field("small") - 3, "int"),
        (N // 60 % 24, "int"),
        (N * 0.5, "float"),
        (X + N, "float"),
        (N == 3, "bool"),
        (X > 3, "bool"),
        (X <= 3, "bool"),
        ((TEXT < "b") & ~YES | (field("n").is_null() == YES), "bool"),
        (field("price").is_null(), "bool"),
        (field("day") <= field("day"), "bool"),
        (field("at"), "instant"),
        (field("raw"), "bytes"),
    ],
)
def test_these_expressions_are_spark_s(expression, expected):
    assert name_kind(expression, FIELDS) == expected


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (field("nothing"), "the column nothing does not exist"),
        (field("price"), "price has the type decimal"),
        (field("loud") == "a", "loud has the type string collate"),
        (YES + 1, "computes with bool and int"),
        (TEXT + "a", "computes with str and str"),
        (N // field("small"), "does not divide an integer by a positive integer constant"),
        (N % 0, "does not divide an integer by a positive integer constant"),
        (N // -2, "does not divide an integer by a positive integer constant"),
        (X // 2, "does not divide an integer by a positive integer constant"),
        (N > X, "compares int with float"),
        (X == (1 << 53) + 1, "compares float with int"),
        (N == 1.5, "compares int with float"),
        (N == YES, "compares int with bool"),
        (YES < True, "orders booleans"),
        (N > None, "a value of type NoneType"),
        (N < 1 << 63, "a value of type int"),
        (TEXT == "\ud800", "a value of type str"),
        (YES & N, "is not a boolean"),
        (~N, "is not a boolean"),
        (field("nothing").is_null(), "the column nothing does not exist"),
        (Expression(Literal(1j, PYTHON)), "a value of type complex"),
    ],
)
def test_these_are_python_s_and_the_reason_is_said(expression, reason):
    with pytest.raises(NotInColumns, match=reason):
        name_kind(expression, FIELDS)


def source_after(transform, fields=FIELDS, records="row"):
    """The Read behind which a transform stands, after the pass."""
    pipeline = beam.Pipeline()
    pcoll = pipeline | ReadFromParquet("in", validate=False, as_rows=records == "row") | transform
    pcoll | SinkTransform(DriverList([]))
    graph = columns(pipeline.to_graph(), lambda step, source: Table(tuple(fields), records))
    return graph.steps[0].primitive.source.columns


def grouped(*fields, combine=sum, **named):
    return beam.GroupBy(*fields, **named).aggregate_field("n", combine, "out")


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        (beam.Filter(N + 1), "is not a boolean"),
        (beam.Filter(lambda row: True), "is a function that only Python can call"),
        (beam.Filter(lambda row, least: True, 3), "has further arguments"),
        (beam.Map(N), "is a function that only Python can call"),
        (beam.Select(double=lambda row: row.n), "contains a function"),
        (beam.Select(start=beam.window_start()), "belongs to a window that has no column"),
        (beam.WithTimestamps("x"), "neither whole seconds nor an instant"),
        (beam.WindowInto(FixedWindows(60)), "use WithTimestamps"),
        (beam.WindowInto(beam.window.SlidingWindows(60, 30)), "windows that are not FixedWindows"),
        (grouped("x"), "the key x has the type double"),
        (grouped("day"), "the key day has the type date"),
        (grouped(), "it has no key"),
        (grouped("n", combine=len), "only Python can call"),
        (beam.GroupBy("n").aggregate_field("x", sum, "out"), "out is a sum of float"),
        (beam.GroupBy("n").aggregate_field("yes", sum, "out"), "out is a sum of bool"),
        (beam.GroupBy("n").aggregate_field("x", max, "out"), "out is the max of float"),
        (
            beam.GroupBy("n").aggregate_field("x", beam.combiners.MeanCombineFn(), "out"),
            "out is a mean of float",
        ),
        (beam.GroupBy("n"), "only Python can call"),
    ],
)
def test_columns_end_where_python_has_to_go_on_and_the_reason_is_said(transform, reason):
    found = source_after(transform)
    assert reason in found.ends
    assert not found.operations


def test_a_sum_in_windows_that_may_fire_early_is_python_s():
    early = beam.trigger.Repeatedly(beam.trigger.AfterCount(2))
    mode = beam.trigger.AccumulationMode.DISCARDING
    windows = beam.WindowInto(FixedWindows(60), trigger=early, accumulation_mode=mode)
    pipeline = beam.Pipeline()
    rows = pipeline | ReadFromParquet("in", validate=False) | beam.WithTimestamps("n") | windows
    rows | grouped("text") | SinkTransform(DriverList([]))
    graph = columns(pipeline.to_graph(), lambda step, source: Table(FIELDS, "dict"))
    found = graph.steps[0].primitive.source.columns
    assert "may fire before the end" in found.ends
    assert [step.label for step in found.steps] == ["WithTimestamps(n)/Stamp", "WindowInto(WindowIntoFn)"]


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ([("n", pa.int64()), ("small", pa.int16()), ("absent", pa.string())], True),
        ([pa.field("n", pa.int64(), nullable=False), ("price", pa.decimal128(10, 2))], True),
        ([("n", pa.int32())], False),
        ([("at", pa.timestamp("us", "UTC"))], True),
        ([("at", pa.timestamp("ms", "UTC"))], False),
        ([("text", pa.large_string())], False),
        ([("n", pa.float64())], False),
        ([("text", pa.binary())], False),
        ([pa.field("absent", pa.int64(), nullable=False)], False),
        ([("n", pa.int64()), ("N", pa.int64())], False),
    ],
)
def test_a_sink_takes_columns_that_fit_its_schema(tmp_path, schema, fits):
    names = pa.schema(schema).names
    fields = [each for each in FIELDS if each[0] in names] or FIELDS[:1]
    found = source_after(WriteToParquet(str(tmp_path / "out"), pa.schema(schema)), fields)
    assert found.is_written is fits


def test_a_sink_whose_schema_lacks_a_column_leaves_the_refusal_to_python(tmp_path):
    found = source_after(WriteToParquet(str(tmp_path / "out"), pa.schema([("n", pa.int64())])), FIELDS[:2])
    assert not found.is_written
    assert "lacks a column" in found.ends


def lost_steps(before, after):
    """The steps of a graph that another neither has nor stands for, and the edges that no step makes."""
    kept = {step.label for step in after.steps}
    reads = [step.primitive for step in after.steps if isinstance(step.primitive, Read)]
    kept |= {step.label for read in reads for step in read.source.columns.steps}
    made = {output.edge for step in after.steps for output in step.outputs}
    unmade = {edge for step in after.steps for edge in step.inputs} - made
    return [step.label for step in before.steps if step.label not in kept], unmade


def rewritten(build):
    pipeline = beam.Pipeline()
    build(pipeline)
    before = optimise(pipeline.to_graph(), Target(without=frozenset({"native_columns"})))
    return before, columns(before, lambda step, source: table_of_schema(golden_pipelines.SCORES, "row"))


@pytest.mark.parametrize("build", golden_pipelines.CASES["columns"])
def test_every_step_is_done_by_spark_or_by_python(build):
    assert lost_steps(*rewritten(build)) == ([], set())


def test_the_law_of_steps_finds_a_pass_that_forgets_one():
    before, after = rewritten(golden_pipelines.columns_that_python_goes_on_with)
    source = after.steps[0].primitive.source
    fewer = replace(source.columns, operations=source.columns.operations[1:])
    forgetful = Read(replace(source, columns=fewer))
    mutant = replace(after, steps=(replace(after.steps[0], primitive=forgetful), *after.steps[1:]))
    assert lost_steps(before, mutant) == (["ToRows(team, points, at)/Row"], set())


def test_a_source_is_only_asked_for_its_columns_where_spark_could_do_the_next_step():
    def never(step, source):
        raise AssertionError("the columns are not needed")

    pipeline = beam.Pipeline()
    read = pipeline | ReadFromParquet("in", validate=False)
    read | beam.Map(print)
    assert isinstance(columns(pipeline.to_graph(), never).steps[0].primitive.source, ColumnsSource)
    text = beam.Pipeline()
    text | ReadFromText("in", validate=False) | beam.Filter(beam.field("title") == "")
    assert columns(text.to_graph(), never) is not None


def test_names_that_differ_in_capital_letters_only_are_python_s():
    with pytest.raises(NotInColumns, match="differ only in case"):
        table_of_schema(types.StructType().add("a", types.LongType()).add("A", types.LongType()), "row")


def test_explain_knows_the_columns_of_files_on_this_machine_and_starts_nothing(tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    pipeline = beam.Pipeline()
    rows = pipeline | ReadFromParquet(f"{tmp_path}/*", as_rows=True)
    rows | beam.Filter(N > 1) | "Show" >> beam.Map(print)
    assert "query of columns" in pipeline.explain()
    assert "columns end here: 'Show' is a function that only Python can call" in pipeline.explain()
    with pytest.raises(NotInColumns, match="only known when it is opened"):
        table_before_opening(None, ReadFromParquet("hdfs://host/in", validate=False).source)


def test_columns_are_read_as_elements_with_their_times_and_windows():
    record = pa.RecordBatch.from_pydict(
        {"c0": ["a", "b"], "c1": [1, None], "t": [5, 65], "w": [0, 60]},
    )
    names = ("team", "n")
    plain = ColumnReader(names, "dict", "start", None, False).read(record)
    assert plain.values == [{"team": "a", "n": 1}, {"team": "b", "n": None}]
    assert (plain.timestamps, plain.windows, plain.panes) == (MIN_MICROS, GLOBAL, PANE_INFO_UNKNOWN)
    timed = ColumnReader(names, "row", "column", None, False).read(record)
    assert (timed.values, timed.timestamps) == ([Row(team="a", n=1), Row(team="b", n=None)], [5, 65])
    windowed = ColumnReader(names, "result", "end", FixedWindows(60e-6), True).read(record)
    assert [tuple(value) for value in windowed.values] == [("a", 1), ("b", None)]
    assert windowed.windows == [(IntervalWindow(0, 60e-6),), (IntervalWindow(60e-6, 120e-6),)]
    assert (windowed.timestamps, windowed.panes) == ([59, 119], ONLY_PANE)
    ended = ColumnReader(names, "result", "end", None, True).read(record)
    assert ended.timestamps == GlobalWindow().max_timestamp().micros


def test_instants_are_read_in_utc():
    moment = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
    column = pa.array([moment], pa.timestamp("us", "America/New_York"))
    record = pa.RecordBatch.from_arrays([column], names=["c0"])
    (row,) = ColumnReader(("at",), "row", "start", None, False).read(record).values
    assert row.at == moment
    assert row.at.tzname() == "UTC"
    (result,) = ColumnReader(("at",), "result", "end", None, True).read(record).values
    assert result.at.tzname() == "UTC"
