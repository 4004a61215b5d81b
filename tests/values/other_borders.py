"""The borders ORC, Avro, batches of DoFns and Spark's DataFrames."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

import penstock as beam
from penstock.elements.row import Row
from penstock.io.avroio import AvroSink
from penstock.io.files.shards import Shards
from penstock.io.orcio import OrcSink
from penstock.io.sparkio import from_dataframe
from penstock.transforms.sql import SqlTransform
from penstock.typehints.row_type import RowTypeConstraint
from penstock.values.types import TYPES
from penstock_connectors.avro.scan import AvroRecords
from penstock_connectors.avro.writer import avro_files
from penstock_spark.columns.arrow_batches import TableConverter
from penstock_spark.columns.numpy_batches import converter as numpy_converter
from penstock_spark.columns.pandas_batches import FrameConverter
from penstock_spark.columns.values import to_dicts, to_rows
from penstock_spark.formats.orc.records import OrcRecords
from penstock_spark.formats.orc.writer import orc_files
from penstock_spark.session.spark_versions import from_arrow_schema, to_arrow_schema
from penstock_spark.sinks.records import RecordRows
from penstock_spark.sources.partition_values import partition_values
from tests.values.arrow_borders import COMMON, WITHIN, composite, find_no_losses, fits, schema_of, table_of
from tests.values.matrix import NUMBER, WHERE, Border, Column, Step, Trip, padded, spelled, write_records

NANOS_LEAST = datetime.datetime(1677, 9, 21, 0, 12, 43, 145_225)
NANOS_GREATEST = datetime.datetime(2262, 4, 11, 23, 47, 16, 854_775)


def fits_orc(value: Any, kind: pa.DataType) -> bool:
    """ORC has nanoseconds, of which pyarrow has 64 bits."""
    if isinstance(value, datetime.datetime):
        local = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
        return NANOS_LEAST <= local <= NANOS_GREATEST and fits(value, kind)
    return fits(value, kind)


def write_orc(columns: Sequence[Column], place: Path) -> None:
    orc.write_table(table_of(columns), str(place / "values.orc"))


def read_orc(columns: Sequence[Column], place: Path) -> Iterable[Any]:
    records = OrcRecords(None, partition_values((), None, ""), "")
    with (place / "values.orc").open("rb") as file:
        return [row for batch in records.all_of(file, "values.orc") for row in to_dicts(batch)]


def _orc_query(begin: Any, place: Path) -> Any:
    rows = begin | beam.io.ReadFromOrc(f"{place}/*.orc", as_rows=True)
    return rows | SqlTransform("SELECT * FROM PCOLLECTION")


def _orc_all(begin: Any, place: Path) -> Any:
    return begin | beam.Create([f"{place}/*.orc"]) | beam.io.ReadAllFromOrc()


def written(write: Callable[[str], Any], read: Callable[[], Any]) -> Callable[[Sequence[Column], Path], Any]:
    def make(columns: Sequence[Column], place: Path) -> Any:
        return composite(lambda begin, place: _again(begin, columns, place, write, read))(columns, place)

    return make


def _again(begin: Any, columns: Sequence[Column], place: Path, write: Any, read: Callable[[], Any]) -> Any:
    records = begin | beam.Create(padded(columns)).with_output_types(dict)
    return records | write(f"{place}/again/values", columns) | read()


def through_orc(column: Column, element: Any, place: Path) -> Iterable[Any]:
    sink = orc_files(OrcSink(Shards(str(place / "values")), schema_of(column)), WHERE)
    write_records(sink, [element], place / "values.orc")
    return read_orc((), place)


ORC = Border(
    "ORC",
    spelled(
        {
            **COMMON,
            "text": [pa.string(), pa.large_string()],
            "bytes": [pa.binary(), pa.large_binary()],
            "instant": [pa.timestamp("ns", "UTC"), pa.timestamp("us", "Europe/Berlin")],
            "local time": [pa.timestamp("ns"), pa.timestamp("us")],
        },
        fits_orc,
        WITHIN,
    ),
    {
        "in a process": read_orc,
        "dicts": Step(lambda columns, place: beam.io.ReadFromOrc(f"{place}/*.orc")),
        "Rows": Step(lambda columns, place: beam.io.ReadFromOrc(f"{place}/*.orc", as_rows=True)),
        "Hadoop": Step(lambda columns, place: beam.io.ReadFromOrc(f"file://{place}/*.orc")),
        "ReadAll": Step(composite(_orc_all)),
        "SQL": Step(composite(_orc_query)),
        "written": Step(
            written(
                lambda path, columns: beam.io.WriteToOrc(path, table_of(columns).schema),
                beam.io.ReadAllFromOrc,
            )
        ),
        "stream": Step(
            lambda columns, place: beam.io.ReadFromOrc(f"{place}/*.orc").as_stream(existing_only=True),
            streams=True,
        ),
    },
    write_orc,
    break_it=lambda patch: patch.setattr("penstock_spark.columns.values.type_in_python", lambda kind: kind),
    lacks={
        "unsigned integer": "pyarrow writes none to ORC",
        "time of day": "ORC has none",
        "duration": "ORC has none",
        "null": "ORC has none",
    },
    trip=Trip(through_orc, find_no_losses),
)

AVRO_SPELLINGS: dict[str, list[Any]] = {
    "boolean": ["boolean"],
    "integer": ["long", "int"],
    "float": ["double"],
    "decimal": [{"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18}],
    "wide decimal": [{"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}],
    "text": ["string"],
    "bytes": ["bytes"],
    "date": [{"type": "int", "logicalType": "date"}],
    "time of day": [{"type": "long", "logicalType": "time-micros"}],
    "instant": [{"type": "long", "logicalType": "timestamp-micros"}],
    "local time": [{"type": "long", "logicalType": "local-timestamp-micros"}],
    "null": ["null"],
}


def fits_avro(value: Any, spelling: Any) -> bool:
    return spelling != "int" or -(1 << 31) <= value < 1 << 31


def avro_schema(columns: Sequence[Column]) -> dict[str, Any]:
    kinds = [{"name": NUMBER, "type": "long"}]
    for each in columns:
        kinds.append(
            {"name": each.name, "type": "null" if each.spelling == "null" else ["null", each.spelling]}
        )
    return {"type": "record", "name": "Row", "fields": kinds}


def write_avro(columns: Sequence[Column], place: Path) -> None:
    with (place / "values.avro").open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(avro_schema(columns)), padded(columns))


def read_avro(columns: Sequence[Column], place: Path, *, as_rows: bool) -> Iterable[Any]:
    records = AvroRecords(as_rows, partition_values((), None, ""), "")
    return list(records.of_content((place / "values.avro").read_bytes(), "values.avro"))


def _avro_all(begin: Any, place: Path) -> Any:
    return begin | beam.Create([f"{place}/*.avro"]) | beam.io.ReadAllFromAvro()


def through_avro(column: Column, element: Any, place: Path) -> Iterable[Any]:
    schema = avro_schema([replace(column, name="c")])
    sink = avro_files(AvroSink(Shards(str(place / "values")), schema), WHERE)
    write_records(sink, [element], place / "values.avro")
    return read_avro((), place, as_rows=False)


def check_nothing_before_avro(patch: pytest.MonkeyPatch) -> None:
    """The package alone decides which values it takes."""
    patch.setattr("penstock_connectors.avro.writer.check_of", lambda schema: None)


AVRO = Border(
    "Avro",
    spelled(
        AVRO_SPELLINGS,
        fits_avro,
        {"list": lambda kind: {"type": "array", "items": ["null", kind] if kind != "null" else kind}},
    ),
    {
        "in a process": partial(read_avro, as_rows=False),
        "Rows in a process": partial(read_avro, as_rows=True),
        "dicts": Step(lambda columns, place: beam.io.ReadFromAvro(f"{place}/*.avro")),
        "Rows": Step(lambda columns, place: beam.io.ReadFromAvro(f"{place}/*.avro", as_rows=True)),
        "ReadAll": Step(composite(_avro_all)),
        "written": Step(
            written(
                lambda path, columns: beam.io.WriteToAvro(path, avro_schema(columns)), beam.io.ReadAllFromAvro
            )
        ),
        "stream": Step(
            lambda columns, place: beam.io.ReadFromAvro(f"{place}/*.avro").as_stream(existing_only=True),
            streams=True,
        ),
    },
    write_avro,
    break_it=lambda patch: patch.setitem(
        fastavro.read.LOGICAL_READERS,
        "long-timestamp-micros",
        lambda micros, *_: datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros),
    ),
    lacks={
        "unsigned integer": "Avro has none",
        "duration": "Avro's has months, and fastavro keeps its bytes",
    },
    trip=Trip(through_avro, check_nothing_before_avro),
)


def one_in_a_batch(
    make: Callable[[RowTypeConstraint], Any], column: Column, element: Any, place: Path
) -> Iterable[Any]:
    converter = make(_row_hint([replace(column, name="c")]))
    return list(converter.explode_batch(converter.produce_batch([element])))


def _row_hint(columns: Sequence[Column]) -> RowTypeConstraint:
    hints = [(each.name, beam.typehints.Optional[each.type.hint]) for each in columns]
    return RowTypeConstraint.from_fields([(NUMBER, int), *hints])


def through_batches(make: Callable[[RowTypeConstraint], Any], columns: Sequence[Column]) -> Iterable[Any]:
    converter = make(_row_hint(columns))
    rows = [Row(**record) for record in padded(columns)]
    cut = len(rows) // 2
    batches = [converter.produce_batch(part) for part in (rows[:cut], rows[cut:])]
    return list(converter.explode_batch(converter.combine_batches(batches)))


HINTED = {kind.name: ["hint"] for kind in TYPES if kind.name not in ("instant", "null", "unsigned integer")}
"""The types that a hint of a DoFn can name."""
NOT_HINTED = {
    "instant": "the hint datetime says nothing about zones, which a column does",
    "unsigned integer": "a hint int has 64 bits with a sign",
    "null": "no hint",
}

ARROW_BATCHES = Border(
    "batches of Arrow",
    spelled({**HINTED, "unsigned integer": ["hint"]}),
    {
        "pyarrow.Table": lambda columns, place: through_batches(partial(TableConverter, pa.Table), columns),
        "pyarrow.RecordBatch": lambda columns, place: through_batches(
            partial(TableConverter, pa.RecordBatch), columns
        ),
    },
    break_it=lambda patch: patch.setattr(
        "penstock_spark.columns.arrow_batches.values_of", lambda column, field: column.to_numpy().tolist()
    ),
    lacks={name: why for name, why in NOT_HINTED.items() if name != "unsigned integer"},
    trip=Trip(
        partial(one_in_a_batch, partial(TableConverter, pa.Table)),
        lambda patch: patch.setattr(
            "penstock_spark.columns.arrow_batches.column_of",
            lambda values, field, where: pa.array(values, field.type),
        ),
        ("Rows",),
    ),
)

PANDAS_BATCHES = Border(
    "batches of pandas",
    # Pandas has one missing number, which is NaN and None.
    spelled(HINTED, lambda value, hint: value == value),
    {"pandas.DataFrame": lambda columns, place: through_batches(FrameConverter, columns)},
    break_it=lambda patch: patch.setattr(
        "penstock_spark.columns.pandas_batches._values", lambda series, hint: series.tolist()
    ),
    lacks=NOT_HINTED,
    trip=Trip(
        partial(one_in_a_batch, FrameConverter),
        lambda patch: patch.setattr(
            "penstock_spark.columns.pandas_batches.are_kept", lambda numbers, floats: True
        ),
        ("Rows",),
    ),
)


def through_arrays(columns: Sequence[Column], place: Path) -> Iterable[Any]:
    found: dict[str, list[Any]] = {}
    for each in columns:
        array = numpy_converter(each.spelling, numpy_array())
        values = list(each.values[:-1])
        found[each.name] = array.explode_batch(array.produce_batch(values))
    length = max(len(each.values) for each in columns)
    return [
        {NUMBER: place, **{name: own[place] if place < len(own) else None for name, own in found.items()}}
        for place in range(length)
    ]


def one_in_an_array(column: Column, element: Any, place: Path) -> Iterable[Any]:
    array = numpy_converter(column.spelling, numpy_array())
    return [Row(c=value) for value in array.explode_batch(array.produce_batch([element.c]))]


def numpy_array() -> Any:
    import numpy as np

    return np.ndarray


NUMPY = Border(
    "batches of NumPy",
    spelled(
        {"boolean": [bool], "integer": [int], "float": [float], "text": [str], "bytes": [bytes]},
        # NumPy cuts NUL characters off the end of a string, so such strings are refused.
        lambda value, spelling: not (isinstance(value, str | bytes) and value[-1:] in ("\0", b"\0")),
    ),
    {"numpy.ndarray": through_arrays},
    break_it=lambda patch: patch.setattr("penstock_spark.columns.numpy_batches._OF_PYTHON", ()),
    lacks={
        kind.name: "no dtype has Python's values"
        for kind in TYPES
        if kind.name not in ("boolean", "integer", "float", "text", "bytes")
    },
    trip=Trip(
        one_in_an_array,
        lambda patch: patch.setattr(
            "penstock_spark.columns.numpy_batches.are_kept", lambda numbers, floats: True
        ),
        ("Rows",),
        names_fields=False,
    ),
)


def _frame(columns: Sequence[Column]) -> Any:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    table = table_of(columns)
    return spark.createDataFrame(table, from_arrow_schema(table.schema))


def rows_in_a_task(columns: Sequence[Column], place: Path) -> Iterable[Any]:
    table = table_of(columns)
    return to_rows(table.cast(to_arrow_schema(from_arrow_schema(table.schema))))


def through_rows_of_spark(column: Column, element: Any, place: Path) -> Iterable[Any]:
    schema = to_arrow_schema(from_arrow_schema(schema_of(column)))
    return to_rows(RecordRows(schema, WHERE).encode([element]))


def _frame_query(columns: Sequence[Column], place: Path) -> Any:
    return composite(
        lambda begin, place: (
            begin | from_dataframe(_frame(columns)) | SqlTransform("SELECT * FROM PCOLLECTION")
        )
    )(columns, place)


def _table(columns: Sequence[Column], place: Path) -> Any:
    _frame(columns).write.parquet(f"{place}/table")
    return beam.io.ReadFromSpark("parquet", f"{place}/table")


SPARK = Border(
    "Spark",
    spelled(
        {
            **COMMON,
            "text": [pa.string()],
            "bytes": [pa.binary()],
            "instant": [pa.timestamp("us", "UTC")],
            "local time": [pa.timestamp("us")],
            "duration": [pa.duration("us")],
            "null": [pa.null()],
        },
        fits,
        WITHIN,
    ),
    {
        "rows in a task": rows_in_a_task,
        "DataFrame": Step(lambda columns, place: from_dataframe(_frame(columns))),
        "table": Step(_table),
        "SQL": Step(_frame_query),
    },
    break_it=lambda patch: patch.setattr("penstock_spark.columns.values._zone_converter", lambda kind: None),
    lacks={
        "unsigned integer": "Spark has none",
        "time of day": "Spark's columns of it are not read by Arrow",
    },
    trip=Trip(through_rows_of_spark, find_no_losses),
)
