"""The events as DataFrames, for the queries by hand: from lines, parsed in Python, or from Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, Protocol, get_type_hints

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark.model import KINDS, parse
from nexmark.settings import AUCTION_LENGTH_MAX, WATERMARK_DELAY

Records = Iterator[pa.RecordBatch]

Columns = Mapping[str, tuple[str, ...]]
"""The columns that a query needs of each kind."""

Times = Mapping[str, str]
"""The columns with the time of a kind, where that is not ``time``."""

AS_EVER: Times = {}


class Tables(Protocol):
    """Gives a DataFrame for each kind; its time is also there as Spark has it, in ``at``, which a watermark follows."""

    def __call__(self, columns: Columns, times: Times = AS_EVER) -> list[DataFrame]: ...


_ARROW_TYPES = {int: pa.int64(), str: pa.string()}


def lines_of(spark: SparkSession, source: str) -> DataFrame:
    """Lines that are all read."""
    return spark.read.text(f"{source}/lines")


def line_stream_of(spark: SparkSession, source: str) -> DataFrame:
    """Lines of files that are read one after the other."""
    return spark.readStream.option("maxFilesPerTrigger", 1).text(f"{source}/lines")


def parsed_tables(lines: DataFrame) -> Tables:
    """The events of lines by the function of everybody.

    In a batch that needs two kinds, lines are parsed once, and the columns are kept for the second kind. A stream
    cannot keep them, and parses twice.
    """

    def tables(columns: Columns, times: Times = AS_EVER) -> list[DataFrame]:
        if len(columns) == 1 or lines.isStreaming:
            found = [_parsed(lines, {kind: names}) for kind, names in columns.items()]
        else:
            kept = _parsed(lines, columns).persist()
            found = [
                kept.where(F.col(f"{kind}_time").isNotNull()).select(*_named(kind, names))
                for kind, names in columns.items()
            ]
        return _timed(found, columns, times)

    return tables


def _named(kind: str, names: tuple[str, ...]) -> list[Any]:
    return [F.col(f"{kind}_{name}").alias(name) for name in names]


def _parsed(lines: DataFrame, columns: Columns) -> DataFrame:
    """Rows of one kind or of several; each kind has its own columns, and null in the columns of other kinds."""
    single = len(columns) == 1
    fields = [
        pa.field(name if single else f"{kind}_{name}", _ARROW_TYPES[get_type_hints(KINDS[kind])[name]])
        for kind, names in columns.items()
        for name in names
    ]
    schema = pa.schema(fields)
    ddl = ", ".join(f"{field.name} {'long' if field.type == pa.int64() else 'string'}" for field in fields)
    return lines.mapInArrow(partial(_parse, columns, schema), ddl)


def _parse(columns: Columns, schema: pa.Schema, records: Records) -> Records:
    for record in records:
        events = list(map(parse, record.column(0).to_pylist()))
        place = 0
        for kind, names in columns.items():
            rows = map(attrgetter(*names), [event for event in events if type(event) is KINDS[kind]])
            values = list(zip(*rows, strict=True)) or [()] * len(names)
            arrays = [pa.nulls(len(values[0]), field.type) for field in schema]
            for column in values:
                arrays[place] = pa.array(column, schema.field(place).type)
                place += 1
            yield pa.record_batch(arrays, schema=schema)


def parquet_tables(spark: SparkSession, source: str) -> Tables:
    """The events from Parquet, in a folder for each kind."""

    def tables(columns: Columns, times: Times = AS_EVER) -> list[DataFrame]:
        found = [spark.read.parquet(f"{source}/{kind}").select(*names) for kind, names in columns.items()]
        return _timed(found, columns, times)

    return tables


def _timed(found: list[DataFrame], columns: Columns, times: Times) -> list[DataFrame]:
    """With ``at``; auctions expire in another order than they open."""
    delays = {"time": WATERMARK_DELAY, "expires": WATERMARK_DELAY + AUCTION_LENGTH_MAX}
    timed = []
    for frame, kind in zip(found, columns, strict=True):
        time = times.get(kind, "time")
        at = frame.withColumn("at", F.timestamp_millis(time))
        timed.append(at.withWatermark("at", f"{delays[time]} seconds"))
    return timed
