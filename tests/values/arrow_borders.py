"""The borders whose columns are Arrow's: batches of DoFns, Parquet, ORC."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import ByteType, DataType, IntegerType, LongType, ShortType, StringType

import penstock as beam
from penstock.io.files.shards import Shards
from penstock.io.parquetio import ParquetSink
from penstock.transforms.sql import SqlTransform
from penstock.values.types import TYPES
from penstock_spark.columns.records import to_batch
from penstock_spark.columns.types import spelling_of
from penstock_spark.columns.values import to_dicts, to_rows
from penstock_spark.formats.parquet.footers import schema_of_footer
from penstock_spark.formats.parquet.records import (
    GroupReader,
    ParquetRecords,
    StreamOfFiles,
    groups_of,
)
from penstock_spark.formats.parquet.scan import records_of_file
from penstock_spark.formats.parquet.writer import parquet_files
from penstock_spark.sources.contents import ColumnsReader
from penstock_spark.sources.partition_values import partition_values
from penstock_spark.sources.stream_files import Naming
from tests.values.matrix import NUMBER, WHERE, Border, Column, Step, Trip, padded, spelled, write_records

SPELLINGS: dict[str, list[pa.DataType]] = {
    "boolean": [pa.bool_()],
    "integer": [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32()),
        pa.dictionary(pa.int32(), pa.int64()),
    ],
    "unsigned integer": [pa.uint64()],
    "float": [pa.float64(), pa.float32(), pa.float16()],
    "decimal": [pa.decimal128(38, 18), pa.decimal128(5, 2), pa.decimal256(60, 20)],
    "wide decimal": [pa.decimal128(38, 0), pa.decimal256(76, 0)],
    "text": [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    "bytes": [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)],
    "date": [pa.date32(), pa.date64()],
    "time of day": [pa.time64("us"), pa.time32("ms"), pa.time64("ns"), pa.time32("s")],
    "instant": [
        pa.timestamp(unit, zone) for unit in ("us", "ns", "ms", "s") for zone in ("UTC", "Europe/Berlin")
    ],
    "local time": [pa.timestamp(unit) for unit in ("us", "ns", "ms", "s")],
    "duration": [pa.duration(unit) for unit in ("us", "ns", "ms", "s")],
    "null": [pa.null()],
}
"""All types of Arrow that may arrive."""


def fits(value: Any, kind: pa.DataType) -> bool:
    """True if Arrow itself has the value in a type and returns it: pyarrow alone decides."""
    try:
        (returned,) = pa.array([value], kind).to_pylist()
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return False
    return bool(returned == value or value != value)


def table_of(columns: Sequence[Column]) -> pa.Table:
    records = padded(columns)
    kinds = {NUMBER: pa.int64(), **{each.name: each.spelling for each in columns}}
    return pa.table(
        {name: pa.array([record[name] for record in records], kind) for name, kind in kinds.items()}
    )


COMMON: dict[str, list[pa.DataType]] = {
    "boolean": [pa.bool_()],
    "integer": [pa.int8(), pa.int16(), pa.int32(), pa.int64()],
    "float": [pa.float64(), pa.float32()],
    "decimal": [pa.decimal128(38, 18), pa.decimal128(5, 2)],
    "wide decimal": [pa.decimal128(38, 0)],
    "date": [pa.date32()],
}
"""The types that Spark and all formats have."""

WITHIN = {"list": pa.list_, "record": lambda kind: pa.struct([("x", kind)])}


def write_parquet(columns: Sequence[Column], place: Path) -> None:
    pq.write_table(table_of(columns), place / "values.parquet")


def write_int96(columns: Sequence[Column], place: Path) -> None:
    pq.write_table(table_of(columns), place / "values.parquet", use_deprecated_int96_timestamps=True)


def _records(path: str) -> tuple[ParquetRecords, pq.FileMetaData]:
    footer = pq.read_metadata(path)
    return ParquetRecords(schema_of_footer(footer), partition_values((), None, ""), ""), footer


def read_all_parquet(columns: Sequence[Column], place: Path) -> Iterable[Any]:
    with (place / "values.parquet").open("rb") as file:
        return list(records_of_file(file, "values.parquet", None, False))


def read_groups(columns: Sequence[Column], place: Path) -> Iterable[Any]:
    path = str(place / "values.parquet")
    records, footer = _records(path)
    groups = groups_of({path: footer}, {path: (place / "values.parquet").stat().st_size})
    return [row for group in groups for rows in GroupReader(records, [], to_rows).read(group) for row in rows]


def read_content(columns: Sequence[Column], place: Path) -> Iterable[Any]:
    path = place / "values.parquet"
    return ColumnsReader(_records(str(path))[0], to_dicts)(path.read_bytes(), str(path))


def read_names(columns: Sequence[Column], place: Path) -> Iterable[Any]:
    path = str(place / "values.parquet")
    names = pa.RecordBatch.from_pydict({"file": [f"file:{path}"], "start": [0], "changed": [0]})
    read = StreamOfFiles(_records(path)[0], to_dicts, Naming(), "/", None)
    return [row for part in read(names) for row in part.values]


def _tables_apart(tables: Any) -> Any:
    return tables | beam.FlatMap(to_dicts)


def _files(place: Path) -> str:
    return f"{place}/*.parquet"


def _read(scheme: str = "", **options: Any) -> Callable[[Sequence[Column], Path], Any]:
    return lambda columns, place: beam.io.ReadFromParquet(scheme + _files(place), **options)


class _Composite(beam.PTransform):
    def __init__(self, expand: Callable[[Any], Any]) -> None:
        super().__init__()
        self.expand = expand  # type: ignore[method-assign]


def composite(expand: Callable[[Any, Path], Any]) -> Callable[[Sequence[Column], Path], Any]:
    return lambda columns, place: _Composite(lambda begin: expand(begin, place))


def read_all(begin: Any, place: Path) -> Any:
    return begin | beam.Create([_files(place)]) | beam.io.ReadAllFromParquet()


def read_all_batched(begin: Any, place: Path) -> Any:
    return _tables_apart(begin | beam.Create([_files(place)]) | beam.io.ReadAllFromParquetBatched())


def read_batched(begin: Any, place: Path) -> Any:
    return _tables_apart(begin | beam.io.ReadFromParquetBatched(_files(place)))


def query(begin: Any, place: Path) -> Any:
    rows = begin | beam.io.ReadFromParquet(_files(place), as_rows=True)
    return rows | SqlTransform("SELECT * FROM PCOLLECTION")


def stream(scheme: str = "", **options: Any) -> Callable[[Sequence[Column], Path], Any]:
    return lambda columns, place: beam.io.ReadFromParquet(scheme + _files(place), **options).as_stream(
        existing_only=True
    )


def written(columns: Sequence[Column], place: Path) -> Any:
    """The records are written to other files, which are read again."""
    schema = table_of(columns).schema

    def expand(begin: Any) -> Any:
        records = begin | beam.Create(padded(columns)).with_output_types(dict)
        names = records | beam.io.WriteToParquet(f"{place}/again/values", schema)
        return names | beam.io.ReadAllFromParquet()

    return _Composite(expand)


WAYS: dict[str, Any] = {
    "ReadAll in a process": read_all_parquet,
    "row groups": read_groups,
    "contents": read_content,
    "names of a stream": read_names,
    "dicts": Step(_read()),
    "Rows": Step(_read(as_rows=True)),
    "Hadoop": Step(_read("file://")),
    "Batched": Step(composite(read_batched)),
    "ReadAll": Step(composite(read_all)),
    "ReadAllBatched": Step(composite(read_all_batched)),
    "SQL": Step(composite(query)),
    "stream": Step(stream(), streams=True),
    "stream of Rows": Step(stream(as_rows=True), streams=True),
    "stream by Hadoop": Step(stream("file://"), streams=True),
}


def schema_of(column: Column) -> pa.Schema:
    return pa.schema([(NUMBER, pa.int64()), ("c", column.spelling)])


def through_arrow(column: Column, element: Any, place: Path) -> Iterable[Any]:
    return to_dicts(to_batch([element], schema_of(column), WHERE))


def through_parquet(column: Column, element: Any, place: Path) -> Iterable[Any]:
    sink = parquet_files(ParquetSink(Shards(str(place / "values")), schema_of(column)), WHERE)
    write_records(sink, [element], place / "values.parquet")
    return read_all_parquet((), place)


def find_no_losses(patch: pytest.MonkeyPatch) -> None:
    """Arrow alone decides which values it takes."""
    patch.setattr("penstock_spark.columns.records.loss_of", lambda values, part, field: None)


def misspell(patch: pytest.MonkeyPatch, kind: pa.DataType, *spark: DataType) -> None:
    """Spark has other types for the values of a type."""
    patch.setitem(vars(spelling_of(kind)), "spark", spark)


ARROW = Border(
    "Arrow",
    spelled(SPELLINGS, fits, WITHIN),
    {
        "dicts": lambda columns, place: to_dicts(table_of(columns)),
        "Rows": lambda columns, place: to_rows(table_of(columns)),
    },
    break_it=lambda patch: patch.setattr("penstock_spark.columns.values.type_in_python", lambda kind: kind),
    trip=Trip(through_arrow, find_no_losses),
)

PARQUET = Border(
    "Parquet",
    spelled(SPELLINGS, fits, WITHIN),
    {**WAYS, "written": Step(written)},
    write_parquet,
    break_it=lambda patch: misspell(patch, pa.duration("us"), LongType()),
    trip=Trip(through_parquet, find_no_losses),
)

# Spark itself reads such files with their own values.
PLAIN_PARQUET = Border(
    "Parquet of Spark's types",
    spelled(
        {
            **COMMON,
            "integer": [*COMMON["integer"], pa.uint8(), pa.uint16(), pa.uint32()],
            "text": [pa.string(), pa.dictionary(pa.int32(), pa.string())],
            "bytes": [pa.binary(), pa.binary(2)],
            "instant": [pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Berlin")],
            "local time": [pa.timestamp("us"), pa.timestamp("ms")],
            "null": [pa.null()],
        },
        fits,
        WITHIN,
    ),
    WAYS,
    write_parquet,
    break_it=lambda patch: misspell(patch, pa.int64(), ByteType(), ShortType(), IntegerType(), StringType()),
    lacks={
        "unsigned integer": "Spark reads Decimals",
        "time of day": "Spark refuses them",
        "duration": "Spark reads integers",
    },
)

INT96 = Border(
    "Parquet with INT96",
    spelled({"instant": [pa.timestamp("us", "UTC")]}, fits, WITHIN),
    WAYS,
    write_int96,
    break_it=lambda patch: patch.setattr(
        "penstock_spark.formats.parquet.footers.values_schema", lambda footer: footer.schema.to_arrow_schema()
    ),
    lacks={kind.name: "INT96 is an instant" for kind in TYPES if kind.name != "instant"},
)
