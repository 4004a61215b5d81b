"""The borders whose columns are Arrow's: batches of DoFns, Parquet, ORC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from matrix import NUMBER, Border, Column, padded, spelled

from penstock_spark.arrow.values import to_dicts, to_rows
from penstock_spark.formats.parquet.scan import records_of_file

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
    """Whether Arrow itself has the value in a type and returns it: pyarrow alone decides."""
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


WITHIN = {"list": pa.list_, "record": lambda kind: pa.struct([("x", kind)])}


def write_parquet(columns: Sequence[Column], place: Path) -> None:
    pq.write_table(table_of(columns), place / "values.parquet")


def read_all_parquet(columns: Sequence[Column], place: Path) -> Iterable[Any]:
    with (place / "values.parquet").open("rb") as file:
        return list(records_of_file(file, "values.parquet", None, False))


ARROW = Border(
    "Arrow",
    spelled(SPELLINGS, fits, WITHIN),
    {
        "dicts": lambda columns, place: to_dicts(table_of(columns)),
        "Rows": lambda columns, place: to_rows(table_of(columns)),
    },
    break_it=lambda patch: patch.setattr("penstock_spark.arrow.values.as_read", lambda kind: kind),
)

PARQUET = Border(
    "Parquet",
    spelled(SPELLINGS, fits, WITHIN),
    {"ReadAll": read_all_parquet},
    write_parquet,
    break_it=lambda patch: patch.setattr("penstock_spark.arrow.values.as_read", lambda kind: kind),
)
