"""Rows and changes as commits of a Delta table.

The tasks write files, and the driver commits them together with the transaction identifier of the micro-batch: the
stream's name and the micro-batch's number. A commit begins with the newest version of the log. If that has the
identifier, or a later one, the micro-batch is in the table, and its files are deleted. If another driver commits in
between, Delta refuses the commit for the same identifier, and lets it through for a different one. A stream commits its
identifier when it starts for the first time. If a table has none later, it is another table, with unknown contents.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.error import refusal
from penstock.io.delta import DeltaSink
from penstock.utils import clock
from penstock_connectors.delta import changes
from penstock_connectors.delta.columns import columns_of, partitions_of
from penstock_connectors.delta.data_files import ROWS_SCHEMA, DataFiles
from penstock_connectors.delta.table import (
    check_writable,
    describe_error,
    files_of,
    find_table,
    local_folder,
    make_absolute,
    make_folder,
    open_table,
    schema_of_table,
    translate_errors,
)
from penstock_connectors.packages import DELTALAKE
from penstock_spark.connecting.tables import (
    BEFORE_ALL,
    RetryCommit,
    commit_files,
    copy_to_disk,
    digest_stream,
    has_begun,
    is_committed,
    is_written,
    make_commit_error,
    make_upsert_schema,
    retry_commits,
)
from penstock_spark.connecting.writing import Encoder, MicroBatch, SinkPlan

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable


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
    return SinkPlan(ROWS_SCHEMA, make, None, commit, is_committed=commit.is_committed)


def prepare_delta(sink: DeltaSink, spark: SparkSession, where: str, stream: str) -> None:
    """Does what the mode says for a stream that starts for the first time, and makes the table know the stream."""
    mark = _properties(stream, BEFORE_ALL, where)
    package = DELTALAKE.load(where)

    def begin(attempt: int) -> None:
        table = find_table(sink.place, where)
        columns = columns_of(sink, table, where)
        parts = partitions_of(sink, table, columns, where)
        if table is None:
            make_folder(sink.place)
            with translate_errors(sink.place, "cannot be made", where):
                if _create(sink, columns, parts, [], mark, where):
                    return
            raise RetryCommit(_not_committed(sink, "another program has just made it", where))
        if has_begun(_last(table, stream), _describe(sink), where):
            return
        if sink.mode == "error":
            raise _exists(sink, where)
        mode, cannot = ("overwrite", "overwritten") if sink.mode == "overwrite" else ("append", "written to")
        with translate_errors(sink.place, f"cannot be {cannot}", where):
            try:
                table.create_write_transaction([], mode, columns, list(parts), commit_properties=mark)
            except package.exceptions.CommitFailedError as error:
                raise RetryCommit(_not_committed(sink, error, where)) from None

    retry_commits(begin)


def app_of(stream: str) -> str:
    """The name of a stream in the log of a table."""
    return f"penstock-{digest_stream(stream)}"


class _Commit:
    """Lets the tasks write the rows of a micro-batch, and makes them part of the table; called on the driver."""

    def __init__(self, sink: DeltaSink, columns: pa.Schema, parts: tuple[str, ...], where: str) -> None:
        self._sink = sink
        self._columns = columns
        self._parts = parts
        self._where = where

    def __call__(self, frame: DataFrame, batch: MicroBatch) -> list[Any]:
        return commit_files(
            frame,
            batch,
            self._where,
            written_of=lambda row: json.loads(row.file),
            # The files of changes are not the table's own.
            commit=lambda written: self._commit(written, batch) and not self._sink.key,
            delete=self._delete,
            start=lambda: self._start(batch),
        )

    def _start(self, batch: MicroBatch) -> None:
        if batch.stream:
            open_table(self._sink.place, self._where)
        else:
            make_folder(self._sink.place)

    def is_committed(self, batch: MicroBatch) -> bool:
        """True if the table has a commit of the micro-batch, or of a later one."""
        table = find_table(self._sink.place, self._where)
        return table is not None and is_committed(_last(table, batch.stream), batch.number)

    def _commit(self, written: Sequence[dict[str, Any]], batch: MicroBatch) -> bool:
        """Commits the files; False if the table certainly names none of them."""
        sink, where = self._sink, self._where
        self._check_shared(written)
        package = DELTALAKE.load(where)

        def commit(attempt: int) -> bool:
            table = open_table(sink.place, where) if batch.stream else find_table(sink.place, where)
            if batch.stream:
                why = ": it was deleted and created again"
                if is_written(_last(table, batch.stream), batch.number, _describe(sink), why, where):
                    # A commit that seemed to fail may have succeeded.
                    return attempt > 0
            if table is None:
                if self._make_table(written):
                    return True
                table = open_table(sink.place, where)
            if not batch.stream and sink.mode == "error":
                raise _exists(sink, where)
            if not written and (batch.stream or sink.mode != "overwrite"):
                return True
            # Somebody may have changed the table since the pipeline started.
            check_writable(table, sink.place, bool(batch.stream), where)
            self._check_unchanged(table)
            properties = _properties(batch.stream, batch.number, where) if batch.stream else None
            try:
                with translate_errors(sink.place, "rejects the commit", where):
                    self._add(table, written, batch, properties)
            except package.exceptions.CommitFailedError as error:
                raise RetryCommit(_not_committed(sink, error, where)) from None
            return True

        return retry_commits(commit)

    def _make_table(self, written: Sequence[dict[str, Any]]) -> bool:
        """Makes the table together with its files; True if nothing is left to commit."""
        sink, where = self._sink, self._where
        actions = [] if sink.key else _actions(written)
        with translate_errors(sink.place, "cannot be made", where):
            is_made = _create(sink, self._columns, self._parts, actions, None, where)
        return is_made and not (sink.key and written)

    def _add(
        self,
        table: DeltaTable,
        written: Sequence[dict[str, Any]],
        batch: MicroBatch,
        properties: CommitProperties,
    ) -> None:
        sink = self._sink
        if sink.key:
            files = files_of(sink.place, self._where)
            schema = make_upsert_schema(sink, self._columns)
            with copy_to_disk(files, [file["path"] for file in written]) as paths:
                changes.check_keys_in(sink, paths, self._where)
                changes.merge_changes(table, sink, schema, paths, properties)
            return
        # A stream has applied its mode when it started.
        mode = "overwrite" if sink.mode == "overwrite" and not batch.stream else "append"
        table.create_write_transaction(
            _actions(written), mode, self._columns, list(self._parts), commit_properties=properties
        )

    def _check_unchanged(self, table: DeltaTable) -> None:
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


def _last(table: DeltaTable, stream: str) -> int | None:
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
    properties: CommitProperties,
    where: str,
) -> bool:
    """Makes a table with some files in one commit; False if another program has just made it."""
    package = DELTALAKE.load(where)
    from deltalake.transaction import create_table_with_add_actions

    try:
        create_table_with_add_actions(
            make_absolute(sink.place),
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


def _properties(stream: str, number: int, where: str) -> CommitProperties:
    package = DELTALAKE.load(where)
    return package.CommitProperties(app_transactions=[package.Transaction(app_of(stream), number)])


def _exists(sink: DeltaSink, where: str) -> FileExistsError:
    return refusal(
        FileExistsError,
        f"a Delta table already exists at {sink.place.shown}",
        where=where,
        hint="write elsewhere, or pass mode='append' or mode='overwrite'",
    )


def _describe(sink: DeltaSink) -> str:
    return f"the Delta table {sink.place.shown}"


def _not_committed(sink: DeltaSink, error: object, where: str) -> RuntimeError:
    return make_commit_error(_describe(sink), describe_error(error, sink.place), where)
