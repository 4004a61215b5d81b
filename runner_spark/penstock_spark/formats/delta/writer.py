"""Rows and changes as commits of a Delta table.

The tasks write files, and the driver commits them together with the transaction identifier of the micro-batch: the
stream's name and the micro-batch's number. A commit begins with the newest version of the log. If that has the
identifier, or a later one, the micro-batch is in the table, and its files are deleted. If another driver commits in
between, Delta refuses the commit for the same identifier, and lets it through for a different one. A stream commits its
identifier when it starts for the first time. If a table has none later, it is another table, and nobody knows what it
has.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.error import refusal
from penstock.io.delta import DeltaSink
from penstock.utils import clock
from penstock_spark.files.local_copies import local_copies
from penstock_spark.formats.delta import changes
from penstock_spark.formats.delta.columns import columns_of, partitions_of
from penstock_spark.formats.delta.data_files import ROWS_SCHEMA, DataFiles
from penstock_spark.formats.delta.table import (
    absolute,
    check_writable,
    files_of,
    find_table,
    local_folder,
    make_folder,
    open_table,
    schema_of_table,
    shown_error,
    told,
)
from penstock_spark.formats.packages import DELTALAKE
from penstock_spark.reports.failure import step_failed
from penstock_spark.sinks.lost_streams import checkpoint_is_gone, stream_is_unknown
from penstock_spark.sinks.plan import Encoder, MicroBatch, SinkPlan
from penstock_spark.sinks.table_changes import change_schema

_ATTEMPTS = 10
"""So many times a commit is tried again on the newest version, when others commit at the same time."""

_BEFORE_ALL = -1
"""The number that stands for the start of a stream."""


def plan_delta(sink: DeltaSink, is_stream: bool, where: str) -> SinkPlan:
    """Looks at the table, if there is one, for what the elements have to fit; the step's output is empty."""
    table = find_table(sink.place, where)
    if table is not None:
        check_writable(table, sink.place, is_stream, where)
    columns = columns_of(sink, table, where)
    parts = partitions_of(sink, table, columns, where)
    if not is_stream and table is not None and sink.mode == "error":
        raise _exists(sink, where)
    make: Callable[[], Encoder] = partial(DataFiles, sink.place, columns, parts, where)
    if sink.key:
        make = partial(changes.ChangeFiles, sink, columns, where)
    commit = _Commit(sink, columns, parts, where)
    return SinkPlan(ROWS_SCHEMA, make, None, commit, holds=commit.holds)


def prepare_delta(sink: DeltaSink, spark: SparkSession, where: str, stream: str) -> None:
    """Does what the mode says for a stream that starts for the first time, and makes the table know the stream."""
    mark = _properties(stream, _BEFORE_ALL, where)
    package = DELTALAKE.load(where)
    reason = ""
    for _ in range(_ATTEMPTS):
        table = find_table(sink.place, where)
        started = None if table is None else _last(table, stream)
        columns = columns_of(sink, table, where)
        parts = partitions_of(sink, table, columns, where)
        if started == _BEFORE_ALL:
            return
        if started is not None:
            raise checkpoint_is_gone(f"the Delta table {sink.place.shown}", where)
        if table is None:
            make_folder(sink.place)
            with told(sink.place, "cannot be made", where):
                if _create(sink, columns, parts, [], mark, where):
                    return
            continue
        if sink.mode == "error":
            raise _exists(sink, where)
        mode, cannot = ("overwrite", "overwritten") if sink.mode == "overwrite" else ("append", "written to")
        with told(sink.place, f"cannot be {cannot}", where):
            try:
                table.create_write_transaction([], mode, columns, list(parts), commit_properties=mark)
                return
            except package.exceptions.CommitFailedError as error:
                reason = str(error)
    raise _not_committed(sink, reason, where)


def app_of(stream: str) -> str:
    """The name of a stream in the log of a table; it shows neither paths nor labels.

    >>> app_of("a stream") == app_of("a stream") != app_of("another stream")
    True
    """
    return f"penstock-{hashlib.sha256(stream.encode()).hexdigest()[:24]}"


class _Commit:
    """Lets the tasks write the rows of a micro-batch, and makes them part of the table; called on the driver."""

    def __init__(self, sink: DeltaSink, columns: pa.Schema, parts: tuple[str, ...], where: str) -> None:
        self._sink = sink
        self._columns = columns
        self._parts = parts
        self._where = where

    def __call__(self, frame: DataFrame, batch: MicroBatch) -> list[Any]:
        sink, where = self._sink, self._where
        try:
            if batch.stream:
                open_table(sink.place, where)
            else:
                make_folder(sink.place)
            # Even if the micro-batch is in the table, its tasks have to run: they also keep the state.
            written = [json.loads(row.file) for row in frame.collect()]
            self._check_shared(written)
            batch.check_or(lambda: self._delete(written))
            if self._commit(written, batch) or sink.key:
                self._delete(written)
        except (ValueError, TypeError, LookupError, RuntimeError) as error:
            # The runner knows what to say of errors of the system.
            if not batch.stream:
                raise
            step_failed(error, where)
        return []

    def holds(self, batch: MicroBatch) -> bool:
        """Whether the table has a commit of the micro-batch, or of a later one."""
        table = find_table(self._sink.place, self._where)
        last = None if table is None else _last(table, batch.stream)
        return last is not None and last >= batch.number

    def _commit(self, written: Sequence[dict[str, Any]], batch: MicroBatch) -> bool:
        """Commits the files; whether the table certainly names none of them."""
        sink, where = self._sink, self._where
        package = DELTALAKE.load(where)
        reason = ""
        for attempt in range(_ATTEMPTS):
            table = open_table(sink.place, where) if batch.stream else find_table(sink.place, where)
            if batch.stream:
                last = _last(table, batch.stream)
                if last is None:
                    why = ": it was deleted and made again"
                    raise stream_is_unknown(f"the Delta table {sink.place.shown}", why, where)
                if last >= batch.number:
                    # A commit that seemed to fail may have succeeded.
                    return attempt == 0
            if table is None:
                if self._made(written):
                    return False
                continue
            if not batch.stream and sink.mode == "error":
                raise _exists(sink, where)
            if not written and (batch.stream or sink.mode != "overwrite"):
                return False
            # Somebody may have changed the table since the pipeline started.
            check_writable(table, sink.place, bool(batch.stream), where)
            self._check_unchanged(table)
            properties = _properties(batch.stream, batch.number, where) if batch.stream else None
            try:
                with told(sink.place, "does not take the commit", where):
                    self._add(table, written, batch, properties)
                return False
            except package.exceptions.CommitFailedError as error:
                reason = str(error)
        raise _not_committed(sink, reason, where)

    def _made(self, written: Sequence[dict[str, Any]]) -> bool:
        """Makes the table, with the files at once; whether all is done then."""
        sink, where = self._sink, self._where
        actions = [] if sink.key else _actions(written)
        with told(sink.place, "cannot be made", where):
            is_made = _create(sink, self._columns, self._parts, actions, None, where)
        return is_made and not (sink.key and written)

    def _add(self, table: Any, written: Sequence[dict[str, Any]], batch: MicroBatch, properties: Any) -> None:
        sink = self._sink
        if sink.key:
            files = files_of(sink.place, self._where)
            schema = change_schema(sink, self._columns)
            with local_copies(files, [file["path"] for file in written]) as paths:
                changes.check_keys(sink, paths, self._where)
                changes.merge_changes(table, sink, schema, paths, properties)
            return
        # A stream has applied its mode when it started.
        mode = "overwrite" if sink.mode == "overwrite" and not batch.stream else "append"
        table.create_write_transaction(
            _actions(written), mode, self._columns, list(self._parts), commit_properties=properties
        )

    def _check_unchanged(self, table: Any) -> None:
        """Delta does not compare the files with the table."""
        now = schema_of_table(table)
        if not now.equals(self._columns) or tuple(table.metadata().partition_columns) != self._parts:
            what = f"the columns of the Delta table {self._sink.place.shown} have changed since the pipeline started"
            raise refusal(ValueError, what, where=self._where, hint="start the pipeline again")

    def _check_shared(self, written: Sequence[dict[str, Any]]) -> None:
        """A disk of one worker alone would leave the table without its files."""
        if written and local_folder(self._sink.place) is not None:
            infos = files_of(self._sink.place, self._where).get_file_info([file["path"] for file in written])
            if any(info.size != file["size"] for info, file in zip(infos, written, strict=True)):
                what = (
                    f"the driver does not see the files that tasks have written to {self._sink.place.shown}"
                )
                hint = "write to a disk that all workers share, or to a store such as s3://"
                raise refusal(OSError, what, where=self._where, hint=hint)

    def _delete(self, written: Sequence[dict[str, Any]]) -> None:
        """Deletes files that no version of the table names; what stays, `vacuum` deletes."""
        with contextlib.suppress(OSError):
            files = files_of(self._sink.place, self._where)
            for each in written:
                files.delete_file(each["path"])


def _last(table: Any, stream: str) -> int | None:
    """The number of the last micro-batch in the table; None if it does not know the stream."""
    last: int | None = table.transaction_version(app_of(stream))
    return last


def _actions(written: Sequence[dict[str, Any]]) -> list[Any]:
    from deltalake.transaction import AddAction

    now = clock.micros() // 1000
    return [
        AddAction(each["path"], each["size"], each["partition"], now, True, each["statistics"])
        for each in written
    ]


def _create(
    sink: DeltaSink,
    columns: pa.Schema,
    parts: tuple[str, ...],
    actions: list[Any],
    properties: Any,
    where: str,
) -> bool:
    """Makes a table with some files in one commit; False if another program has just made it."""
    package = DELTALAKE.load(where)
    from deltalake.transaction import create_table_with_add_actions

    try:
        create_table_with_add_actions(
            absolute(sink.place),
            package.Schema.from_arrow(columns),
            actions,
            mode="error",
            partition_by=list(parts),
            storage_options=dict(sink.place.options) or None,
            commit_properties=properties,
        )
    except package.exceptions.DeltaError:
        if find_table(sink.place, where) is None:
            raise
        return False
    return True


def _properties(stream: str, number: int, where: str) -> Any:
    package = DELTALAKE.load(where)
    return package.CommitProperties(app_transactions=[package.Transaction(app_of(stream), number)])


def _exists(sink: DeltaSink, where: str) -> FileExistsError:
    return refusal(
        FileExistsError,
        f"there is a Delta table at {sink.place.shown} already",
        where=where,
        hint="write elsewhere, or pass mode='append' or mode='overwrite'",
    )


def _not_committed(sink: DeltaSink, reason: str, where: str) -> RuntimeError:
    return refusal(
        RuntimeError,
        f"the Delta table {sink.place.shown} does not take a commit: {shown_error(reason, sink.place)}",
        where=where,
        hint="start the pipeline again: nothing of this commit is in the table. Other programs may be changing it",
    )
