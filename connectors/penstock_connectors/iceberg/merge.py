"""Changes by key in an Iceberg table: the files that have rows with the keys are written again without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.io.iceberg import IcebergSink
from penstock.values.types import DATE, INTEGER, TEXT
from penstock_connectors.iceberg.data_files import delete_files, files_of_rows
from penstock_connectors.iceberg.scan import batches_of, plan_files
from penstock_connectors.iceberg.table import Target, load_module
from penstock_spark.connecting.tables import DELETED
from penstock_spark.connecting.values import value_of

if TYPE_CHECKING:
    from pyiceberg.table import Table

_KEYS_IN_FILTER = 200
"""The maximum number of keys that are looked up by value in the statistics of the files, and not by their range."""

_ROW = "_penstock_row"
_CHANGE = "_penstock_change"


def merge_changes(
    table: Table, sink: IcebergSink, target: Target, changes_of_tasks: Sequence[pa.Table], where: str
) -> tuple[list[Any], list[Any]]:
    """Writes files that the table does not name yet: the files to add, and those to remove instead.

    One file of the table at a time is in memory, beside the changes.
    """
    if not changes_of_tasks:
        return [], []
    added: list[Any] = []
    try:
        removed = _replace_files(table, sink, target, pa.concat_tables(changes_of_tasks), added, where)
    except BaseException:
        delete_files([file.file_path for file in added], target.io)
        raise
    return added, removed


def _replace_files(
    table: Table, sink: IcebergSink, target: Target, changes: pa.Table, added: list[Any], where: str
) -> list[Any]:
    """The files that go; adds to those that come instead, one by one, so that they are known if one fails."""
    removed: list[Any] = []
    # The numbers of changes, and the rows that they replace, whose other columns may stay.
    old_rows: list[tuple[pa.Array, pa.Table]] = []
    for file in _files(table, sink, changes, where):
        rows = _rows(file, table, sink, target, where)
        matches = _matches(rows, changes, sink.key)
        if not matches.num_rows:
            continue
        removed.append(file.file)
        gone = pc.is_in(pa.array(range(rows.num_rows), pa.int64()), value_set=matches[_ROW].combine_chunks())
        kept = rows.filter(pc.invert(gone))
        added += files_of_rows(kept, target, where) if kept.num_rows else []
        if sink.value is not None:
            old_rows.append((matches[_CHANGE].combine_chunks(), rows.take(matches[_ROW])))
    new = _new_rows(sink, target.columns, changes, old_rows)
    added += files_of_rows(new, target, where) if new.num_rows else []
    return removed


def _files(table: Table, sink: IcebergSink, changes: pa.Table, where: str) -> Iterator[Any]:
    """The files that may have rows with the keys, by what the metadata says about them."""
    if table is None or table.current_snapshot() is None:
        return
    expressions = load_module("expressions", where)
    may_match = expressions.AlwaysTrue()
    for name in sink.key:
        values = changes[name].unique().drop_null()
        if value_of(values.type) not in (INTEGER, TEXT, DATE):
            continue
        if len(values) <= _KEYS_IN_FILTER:
            may_match = expressions.And(may_match, expressions.In(name, values.to_pylist()))
        else:
            ends = pc.min_max(values).as_py()
            for end, bound in (
                (ends["min"], expressions.GreaterThanOrEqual),
                (ends["max"], expressions.LessThanOrEqual),
            ):
                may_match = expressions.And(may_match, bound(name, end))
    yield from plan_files(table.scan(may_match), sink.place, where)


def _rows(file: object, table: Table, sink: IcebergSink, target: Target, where: str) -> pa.Table:
    always = load_module("expressions", where).AlwaysTrue()
    batches = [*batches_of(file, sink.place, table.metadata, table.io, table.schema(), always, where)]
    return pa.Table.from_batches(batches, target.columns)


def _matches(rows: pa.Table, changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """The numbers of rows and of changes with the same key."""
    own = rows.select([*key]).append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
    others = changes.select([*key]).append_column(_CHANGE, pa.array(range(changes.num_rows), pa.int64()))
    wanted = pa.schema([*(own.schema.field(name) for name in key), pa.field(_CHANGE, pa.int64())])
    return own.join(others.cast(wanted), [*key], join_type="inner", use_threads=False)


def _new_rows(
    sink: IcebergSink, columns: pa.Schema, changes: pa.Table, old_rows: Sequence[tuple[pa.Array, pa.Table]]
) -> pa.Table:
    """The rows that the changes leave; without records as values, other columns keep what they have."""
    stays = pc.invert(changes[DELETED])
    new = changes.drop_columns([DELETED])
    others = [name for name in columns.names if name not in (*sink.key, sink.value)]
    if sink.value is not None and others and old_rows:
        numbers = pa.concat_arrays([each for each, _ in old_rows])
        olds = pa.concat_tables([each for _, each in old_rows])
        places = pc.index_in(pa.array(range(changes.num_rows), pa.int64()), value_set=numbers)
        for name in others:
            new = new.set_column(
                new.schema.get_field_index(name), columns.field(name), olds[name].take(places)
            )
    return new.filter(stays).cast(columns)
