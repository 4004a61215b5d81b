"""Rows and changes as commits of an Iceberg table.

The tasks write files, and the driver commits them in one transaction, together with a property of the table: the
number of the micro-batch, under a name for the stream. A try begins with the current state of the table. If that has
the number, or a later one, the micro-batch is in the table. The catalog takes the commit only if the table has had no
other one since; otherwise the driver looks again. (A property stays when snapshots expire, and cannot be overtaken by
a second driver, since it changes together with the snapshot that the commit depends on.) A stream sets its property
when it starts for the first time. If a table has none later, it is another table, with unknown contents.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from penstock.error import refusal
from penstock.io.iceberg import IcebergSink
from penstock.utils.identifiers import identifier
from penstock_connectors.iceberg.data_files import (
    ROWS_SCHEMA,
    ChangeRows,
    DataFiles,
    changes_of,
    delete_files,
)
from penstock_connectors.iceberg.merge import merge_changes
from penstock_connectors.iceberg.table import (
    Target,
    begin_table,
    call_catalog,
    check_writable,
    find_table,
    list_refused_commits,
    open_catalog,
    open_table,
    target_of,
    translate_errors,
)
from penstock_spark.connecting.running import redact_secrets
from penstock_spark.connecting.tables import (
    BEFORE_ALL,
    RetryCommit,
    check_keys,
    commit_files,
    digest_stream,
    has_begun,
    is_committed,
    is_written,
    make_commit_error,
    retry_commits,
)
from penstock_spark.connecting.writing import Encoder, MicroBatch, SinkPlan

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction

_LOST_ANSWERS = 3
"""So many times a commit is tried if the catalog fails to answer."""

_COMMIT = "penstock.commit"
"""The property of a snapshot that shows whether a commit without an answer is in the table."""


def plan_iceberg(sink: IcebergSink, is_stream: bool, where: str) -> SinkPlan:
    """Looks at the table, if there is one, for what the elements have to fit; the step's output is empty."""
    with open_catalog(sink.place, where) as catalog:
        target = target_of(sink, catalog, find_table(catalog, sink.place, where), where)
    make: Callable[[], Encoder] = partial(DataFiles, target, where)
    if sink.key:
        make = partial(ChangeRows, sink, target.columns, where)
    commit = _Commit(sink, target, where)
    return SinkPlan(ROWS_SCHEMA, make, None, commit, is_committed=commit.is_committed)


def prepare_iceberg(sink: IcebergSink, spark: SparkSession, where: str, stream: str) -> None:
    """Makes the table known to a stream that starts for the first time, and makes it if there is none."""
    mark = {property_of(stream): str(BEFORE_ALL)}
    with open_catalog(sink.place, where) as catalog:

        def begin(attempt: int) -> None:
            table = find_table(catalog, sink.place, where)
            target = target_of(sink, catalog, table, where)
            if table is not None and has_begun(_last(table, stream), _describe(sink), where):
                return
            does_not = "cannot be made" if table is None else "cannot be changed"
            try:
                with translate_errors(sink.place, does_not, where):
                    transaction = (
                        _make_table(sink, catalog, target, where) if table is None else table.transaction()
                    )
                    transaction.set_properties(mark)
                    call_catalog(transaction.commit_transaction)
            except list_refused_commits(where) as error:
                raise RetryCommit(_not_committed(sink, error, where)) from None

        retry_commits(begin)


def property_of(stream: str) -> str:
    """The property of a table with the number of the last micro-batch of a stream."""
    return f"penstock.stream-{digest_stream(stream)}"


def _make_table(sink: IcebergSink, catalog: Catalog, target: Target, where: str) -> Transaction:
    """A transaction that makes the table as it was planned."""
    return begin_table(sink, catalog, target.metadata.schema(), where, target.metadata.location)


def _last(table: Table, stream: str) -> int | None:
    """The number of the last micro-batch in the table; None if it does not know the stream."""
    number = table.properties.get(property_of(stream))
    return None if number is None else int(number)


class _Commit:
    """Lets the tasks write the rows of a micro-batch, and makes them part of the table; called on the driver."""

    def __init__(self, sink: IcebergSink, target: Target, where: str) -> None:
        self._sink = sink
        self._target = target
        self._where = where

    def __call__(self, frame: DataFrame, batch: MicroBatch) -> list[Any]:
        return commit_files(
            frame,
            batch,
            self._where,
            written_of=lambda row: bytes(row.written),
            commit=lambda written: self._commit(written, batch),
            # Changes travel in the rows, and not in files.
            delete=lambda written: self._delete(() if self._sink.key else map(pickle.loads, written)),
        )

    def is_committed(self, batch: MicroBatch) -> bool:
        """True if the table has a commit of the micro-batch, or of a later one."""
        with open_catalog(self._sink.place, self._where) as catalog:
            table = find_table(catalog, self._sink.place, self._where)
            return table is not None and is_committed(_last(table, batch.stream), batch.number)

    def _commit(self, written: Sequence[bytes], batch: MicroBatch) -> bool:
        """Commits what the tasks have written; False if the table certainly names none of it."""
        with open_catalog(self._sink.place, self._where) as catalog:
            return self._commit_to(catalog, written, batch)

    def _commit_to(self, catalog: Catalog, written: Sequence[bytes], batch: MicroBatch) -> bool:
        sink, where = self._sink, self._where
        mark = identifier()
        lost: list[Exception] = []

        def failed(error: Exception) -> Exception:
            is_unknown = lost and not batch.stream
            return self._unknown(error, mark) if is_unknown else _not_committed(sink, error, where)

        def commit(attempt: int) -> bool:
            try:
                table = find_table(catalog, sink.place, where)
            except RuntimeError:
                if lost:
                    raise failed(lost[-1]) from None
                raise
            if batch.stream:
                if table is None:
                    table = open_table(catalog, sink.place, where)
                why = f" any more: it was created again, or its property {property_of(batch.stream)} was removed"
                if is_written(_last(table, batch.stream), batch.number, _describe(sink), why, where):
                    # A commit that seemed to fail may have succeeded.
                    return attempt > 0
            if table is not None and (not written or _has_commit(table, mark)):
                return True
            if len(lost) == _LOST_ANSWERS:
                raise failed(lost[-1])
            transaction, added = self._transaction(catalog, table, written, batch, mark)
            if transaction is None:
                return True
            try:
                call_catalog(transaction.commit_transaction)
            except list_refused_commits(where) as error:
                self._delete(added)
                raise RetryCommit(failed(error)) from None
            except Exception as error:
                # It may be in the table, or come late. The next try depends on the same snapshot, or finds it.
                lost.append(error)
                raise RetryCommit(failed(error)) from None
            return True

        return retry_commits(commit)

    def _transaction(
        self, catalog: Catalog, table: Table, written: Sequence[bytes], batch: MicroBatch, mark: str
    ) -> tuple[Any, list[Any]]:
        """A transaction with everything, or None if there is nothing to change; and files for this try alone."""
        sink, target, where = self._sink, self._target, self._where
        made = None if table is not None else _make_table(sink, catalog, target, where)
        transaction = made or table.transaction()
        if table is not None:
            # Somebody may have changed the table since the pipeline started.
            check_writable(table, sink.place, where)
        if not target.has_layout_of(transaction.table_metadata):
            what = (
                f"the columns of the Iceberg table {sink.place.shown} have changed since the pipeline started"
            )
            raise refusal(ValueError, what, where=where, hint="start the pipeline again")
        properties = {_COMMIT: mark}
        if batch.stream:
            properties["penstock.micro-batch"] = str(batch.number)
        added: list[Any] = []
        if sink.key:
            changes = [changes_of(each) for each in written]
            check_keys(sink, changes, where)
            with translate_errors(sink.place, "cannot take the changes", where):
                added, removed = merge_changes(table, sink, target, changes, where)
                if not added and not removed and table is not None:
                    return None, []
                _overwrite(transaction, added, removed, properties)
        elif written:
            with translate_errors(sink.place, "cannot take the files", where):
                _append(transaction, map(pickle.loads, written), properties)
        if batch.stream:
            transaction.set_properties({property_of(batch.stream): str(batch.number)})
        return transaction, added

    def _unknown(self, error: Exception, mark: str) -> Exception:
        shown = redact_secrets(str(error), self._sink.place.properties)
        what = f"the catalog does not answer a commit of {_describe(self._sink)}, which may have it: {shown}"
        hint = f"run the pipeline again only if no summary in table.snapshots() has {_COMMIT} = {mark}"
        return refusal(RuntimeError, what, where=self._where, hint=hint)

    def _delete(self, files: Iterable[Any]) -> None:
        """Deletes files that the table does not name."""
        delete_files([each.file_path for each in files], self._target.io)


def _describe(sink: IcebergSink) -> str:
    return f"the Iceberg table {sink.place.shown}"


def _not_committed(sink: IcebergSink, error: Exception, where: str) -> Exception:
    return make_commit_error(_describe(sink), redact_secrets(str(error), sink.place.properties), where)


def _has_commit(table: Table, mark: str) -> bool:
    """True if a commit whose answer was an error is in the table nevertheless."""
    summaries = [snapshot.summary for snapshot in table.snapshots()]
    return any(summary is not None and summary.get(_COMMIT) == mark for summary in summaries)


def _append(transaction: Transaction, files: Iterable[Any], properties: dict[str, str]) -> None:
    update = transaction.update_snapshot(snapshot_properties=properties)
    merges = transaction.table_metadata.properties.get("commit.manifest-merge.enabled", "false")
    with update.merge_append() if merges.lower() == "true" else update.fast_append() as snapshot:
        for file in files:
            snapshot.append_data_file(file)


def _overwrite(
    transaction: Transaction, added: Iterable[Any], removed: Iterable[Any], properties: dict[str, str]
) -> None:
    with transaction.update_snapshot(snapshot_properties=properties).overwrite() as snapshot:
        for file in removed:
            snapshot.delete_data_file(file)
        for file in added:
            snapshot.append_data_file(file)
