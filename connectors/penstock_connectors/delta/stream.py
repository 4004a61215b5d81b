"""Delta tables by version: rows that are added, or all changes, as ranges of files that the log names.

A position is a version and the number of files of it that are read. While the rows of a version are read as a whole, as
at the start, it also says that. A range names its files, so that tasks need not read the log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from penstock.error import refusal
from penstock.io.custom.ranges import RangesOfSource, RangeSource, SourceRange
from penstock.io.delta import DeltaChangesSource, DeltaSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.utils.windowed_value import ValueKind
from penstock_connectors.delta.log import Commit, LogFile, find_newest_version, find_trace, read_commit
from penstock_connectors.delta.scan import columns_to_read, make_version_error, table_at
from penstock_connectors.delta.table import files_of, open_table, schema_of_table, translate_errors
from penstock_spark.connecting.reading import (
    Scan,
    StreamScan,
    decoder_of,
    open_range_stream,
    open_ranges,
    prune_schema,
    read_range_columns,
)
from penstock_spark.connecting.values import has_unknown_type, is_unsupported_by_spark, struct_of

_BATCH_ROWS = 16_384
_FEED = "delta.enableChangeDataFeed"
_TYPE = "_change_type"
_KINDS = {
    "insert": ValueKind.INSERT,
    "update_preimage": ValueKind.UPDATE_BEFORE,
    "update_postimage": ValueKind.UPDATE_AFTER,
    "delete": ValueKind.DELETE,
}
_GO = ("update_preimage", "delete")
_COME = ("insert", "update_postimage")


def open_delta_stream(
    source: DeltaSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    rows = AddedRows(source, where)
    scan = open_range_stream(RangesOfSource(rows), stream, spark, where)
    schema = rows.schema
    if is_unsupported_by_spark(schema) or has_unknown_type(schema):
        return scan

    def make_columns(names: Collection[str] | None) -> DataFrame:
        wanted = prune_schema(schema, names)
        return read_range_columns(scan.frame, rows.of_columns(wanted), wanted, where)

    return replace(scan, make_columns=make_columns)


def open_changes(source: DeltaChangesSource, spark: SparkSession, where: str) -> Scan:
    return open_ranges(RangesOfSource(ChangedRows(source, where)), spark, where)


def open_changes_stream(
    source: DeltaChangesSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    return open_range_stream(RangesOfSource(ChangedRows(source, where)), stream, spark, where)


class _Versions(RangeSource[Any]):
    """The common part of added rows and changed rows."""

    poll_seconds = 0.5

    def __init__(self, source: DeltaSource | DeltaChangesSource, where: str) -> None:
        self._described = source.describe()
        self._place = source.place
        self._where = where
        self._to_elements: Callable[[pa.RecordBatch], Any] = decoder_of(source.elements)
        table = open_table(source.place, where)
        with translate_errors(source.place, "cannot be read", where):
            # This refuses tables with features that readers have to know.
            table.to_pyarrow_dataset()
        metadata = table.metadata()
        self._table_id = str(metadata.id)
        self._opened = int(table.version())
        self._fields = json.loads(table.schema().to_json())["fields"]
        self._schema = schema_of_table(table)
        self._parts = tuple(metadata.partition_columns)
        protocol = table.protocol()
        self._needs = protocol.min_reader_version, frozenset(protocol.reader_features or ())
        self._names = tuple(columns_to_read(source.place, source.columns, self._schema, where).names)
        self._rows_at: tuple[int, tuple[LogFile, ...]] | None = None
        self._traces: dict[int, tuple[int | None, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_rows_at": None}

    def describe(self) -> str:
        return self._described

    # The parts that differ

    def _files(self, commit: Commit) -> tuple[LogFile, ...]:
        """The files to read of a commit; an error if it must not be read."""
        raise NotImplementedError

    def _parts_of(self, files: tuple[LogFile, ...]) -> list[tuple[LogFile, ...]]:
        """The files of a commit, as they may be read together or apart."""
        return [(file,) for file in files]

    def _ends_before(self, version: int) -> bool:
        """True if nothing from a version on is read."""
        return False

    # Positions

    def _position(self, version: int, index: int = 0, is_whole: bool = False) -> dict[str, Any]:
        return {"table": self._table_id, "version": version, "index": index, "is_whole": is_whole}

    def _at_version(self, version: int) -> dict[str, Any]:
        """The position before a version, of which the log must know."""
        newest = find_newest_version(files_of(self._place, self._where))
        if newest is None or version > newest + 1:
            raise make_version_error(self._place, str(version), f"the newest is {newest}", self._where)
        if version <= newest and self._commit(version) is None:
            raise self._make_gone_error(version)
        return self._position(version)

    def last_position(self, start: Mapping[str, Any], max_records: int | None) -> dict[str, Any]:
        end, taken = dict(start), 0
        for position, files in self._after(start):
            if files:
                # The log may not know how many rows a file has.
                count = sum((max_records or 1) if file.rows is None else file.rows for file in files)
                if max_records is not None and taken and taken + count > max_records:
                    break
                taken += count
            end = position
        self._check_same(_read_version(start), _read_version(end))
        return end

    def ranges(self, start: Mapping[str, Any], end: Mapping[str, Any], parallelism: int) -> list[SourceRange]:
        found = []
        at = dict(start)
        for position, files in self._after(start):
            if at == end:
                break
            if files:
                found.append(SourceRange("", (position["version"], position["index"]), files))
            at = position
        if at != end:
            raise self._make_gone_error(at["version"])
        return found

    def _after(self, start: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], tuple[LogFile, ...]]]:
        """All that follows a position: files, and the position after them."""
        if start["table"] != self._table_id:
            raise self._make_other_table_error()
        version, index = start["version"], start["index"]
        if start["is_whole"]:
            yield from self._steps(version, index, [(file,) for file in self._whole(version)], True)
            version, index = version + 1, 0
        while not self._ends_before(version):
            commit = self._commit(version)
            if commit is None:
                self._check_gap(version)
                return
            self._check_layout(commit)
            yield from self._steps(version, index, self._parts_of(self._files(commit)), False)
            version, index = version + 1, 0

    def _steps(
        self, version: int, index: int, parts: list[tuple[LogFile, ...]], is_whole: bool
    ) -> Iterator[tuple[dict[str, Any], tuple[LogFile, ...]]]:
        for number in range(index, len(parts)):
            is_last = number + 1 == len(parts)
            after = self._position(version, number + 1, is_whole)
            yield self._position(version + 1) if is_last else after, parts[number]
        if index >= len(parts):
            yield self._position(version + 1), ()

    def _commit(self, version: int) -> Commit | None:
        return read_commit(files_of(self._place, self._where), version, self._schema, self._parts)

    def _whole(self, version: int) -> tuple[LogFile, ...]:
        """All files of a version, in an order that does not change."""
        if self._rows_at is None or self._rows_at[0] != version:
            table = table_at(self._place, version, None, self._where)
            with translate_errors(self._place, "cannot be read", self._where):
                log = pa.table(table.get_add_actions())
                counts = dict(
                    zip(log.column("path").to_pylist(), log.column("num_records").to_pylist(), strict=True)
                )
                found = [
                    LogFile(each.path, each.partition_expression, counts.get(each.path), "add")
                    for each in table.to_pyarrow_dataset().get_fragments()
                ]
            self._rows_at = version, tuple(sorted(found, key=lambda file: file.path))
        return self._rows_at[1]

    def _check_gap(self, version: int) -> None:
        """Refuses to wait for a version that will never be written."""
        files = files_of(self._place, self._where)
        newest = find_newest_version(files)
        if newest is None or newest < version - 1:
            is_there = "no longer has a log" if newest is None else f"ends with version {newest}"
            what = (
                f"the Delta table {self._place.shown} {is_there}, but it was read up to version {version - 1}"
            )
            raise refusal(LookupError, what, hint="if it was created again, start with a new checkpoint")
        if newest > version or (newest == version and self._commit(version) is None):
            raise self._make_gone_error(version)

    def _make_gone_error(self, version: int) -> Exception:
        what = f"version {version} is no longer in the log of the Delta table {self._place.shown}"
        hint = "keep the log longer (delta.logRetentionDuration); start with a new checkpoint to continue without it"
        return refusal(LookupError, what, hint=hint)

    def _check_same(self, first: int, last: int) -> None:
        """Refuses a table that was created again, because its versions do not follow the ones that were read.

        Versions of a new table have files of their own in the log. So as long as the file of the version before the
        ones that were just read is the same, these are versions of the same table. Only a file that is another one, or
        gone, makes it worth opening the table.
        """
        files = files_of(self._place, self._where)
        # Mostly nothing is new, and both are one version.
        traces = {version: find_trace(files, version) for version in dict.fromkeys((last, first))}
        if self._traces.get(first) != traces[first]:
            metadata = open_table(self._place, self._where).metadata()
            if str(metadata.id) != self._table_id:
                raise self._make_other_table_error()
        self._traces = traces

    def _make_other_table_error(self) -> Exception:
        what = (
            f"the Delta table {self._place.shown} is not the same as before: it was deleted and created again"
        )
        return refusal(ValueError, what, hint="start with a new checkpoint")

    def _check_layout(self, commit: Commit) -> None:
        """Refuses rows that look different from those that this run knows."""
        if commit.version <= self._opened:
            return
        metadata = commit.metadata
        is_changed = metadata is not None and (
            json.loads(metadata["schemaString"])["fields"] != self._fields
            or tuple(metadata["partitionColumns"]) != self._parts
        )
        protocol = commit.protocol
        needs_more = protocol is not None and self._needs != (
            protocol["minReaderVersion"],
            frozenset(protocol.get("readerFeatures") or ()),
        )
        if is_changed or needs_more:
            changed = f"version {commit.version} has changed the columns or the features"
            what = f"{changed} of the Delta table {self._place.shown}"
            raise refusal(ValueError, what, hint="start the pipeline again: it reads the new columns then")

    # Reading, in tasks

    def _batches(
        self, file: LogFile, names: tuple[str, ...], where: object = None
    ) -> Iterator[pa.RecordBatch]:
        schema = self._schema
        if _TYPE in names:
            schema = schema.append(pa.field(_TYPE, pa.string()))
        try:
            files = files_of(self._place, self._where)
            fragment = ds.ParquetFileFormat().make_fragment(file.path, files, file.guarantee)
            yield from fragment.scanner(
                schema, columns=list(names), filter=where, batch_size=_BATCH_ROWS
            ).to_batches()
        except OSError:
            what = f"the file {file.path} of the Delta table {self._place.shown} cannot be read"
            hint = "vacuum may have deleted it: keep files for longer than a stream may be stopped"
            raise refusal(OSError, what, hint=hint) from None


def _read_version(position: Mapping[str, Any]) -> int:
    """The last version that is read before a position, or read in part; 0 if there is none."""
    version: int = position["version"]
    return version if position["is_whole"] else max(0, version - 1)


def _as_they_are(batch: pa.RecordBatch) -> object:
    return batch


class AddedRows(_Versions):
    """The rows of a table, and those that are added later."""

    def __init__(self, source: DeltaSource, where: str) -> None:
        super().__init__(source, where)
        self._source = source
        is_newest = source.starting_version in (None, "latest") and source.version is None
        self.asks_first_position_once = is_newest

    @property
    def schema(self) -> T.StructType:
        """The columns of the elements."""
        return struct_of(pa.schema([self._schema.field(name) for name in self._names]))

    def of_columns(self, wanted: T.StructType) -> AddedRows:
        """Returns a copy of the source, whose parts are Arrow batches of some columns."""
        other = copy(self)
        other._names, other._to_elements = tuple(wanted.names), _as_they_are
        return other

    def first_position(self) -> dict[str, Any]:
        source = self._source
        if source.starting_version == "latest":
            return self._position(self._opened + 1)
        if source.starting_version is not None:
            return self._at_version(int(source.starting_version))
        table = table_at(source.place, source.version, source.timestamp, self._where)
        return self._position(int(table.version()), is_whole=True)

    def _files(self, commit: Commit) -> tuple[LogFile, ...]:
        if not commit.removed:
            return commit.added
        if self._source.skips_changes:
            return ()
        what = f"version {commit.version} of the Delta table {self._place.shown} removes or changes rows"
        hint = "read it with ReadChangesFromDelta, or leave such versions out with skip_change_commits=True"
        raise refusal(ValueError, what, hint=hint)

    def read(self, piece: SourceRange) -> Iterator[list[Any]]:
        for file in piece.end:
            for batch in self._batches(file, self._names):
                yield self._to_elements(batch)


class ChangedRows(_Versions):
    """The changes of a table, each with its kind."""

    def __init__(self, source: DeltaChangesSource, where: str) -> None:
        super().__init__(source, where)
        self._source = source
        # The newest version may be another one when the same question is asked again.
        self.asks_first_position_once = source.starting_version is None
        first = self._opened if source.starting_version is None else source.starting_version
        if source.ending_version is not None and source.ending_version > self._opened:
            known = f"the newest is {self._opened}"
            raise make_version_error(source.place, str(source.ending_version), known, where)
        if first <= self._opened:
            # Only this shows whether the first version was written with the property.
            settings = table_at(source.place, first, None, where).metadata().configuration
            self._check_feed(settings, first)

    def first_position(self) -> dict[str, Any]:
        if self._source.starting_version is None:
            return self._position(self._opened, is_whole=True)
        return self._at_version(self._source.starting_version)

    def _ends_before(self, version: int) -> bool:
        return self._source.ending_version is not None and version > self._source.ending_version

    def _files(self, commit: Commit) -> tuple[LogFile, ...]:
        if commit.metadata is not None:
            self._check_feed(commit.metadata.get("configuration", {}), commit.version)
        return commit.changes or (*commit.removed, *commit.added)

    def _parts_of(self, files: tuple[LogFile, ...]) -> list[tuple[LogFile, ...]]:
        # Deleted and inserted rows stay together: a row must not come before the one that it replaces has gone.
        return [files] if files else []

    def _check_feed(self, settings: Mapping[str, str], version: int) -> None:
        if settings.get(_FEED, "false").lower() != "true":
            what = f"the Delta table {self._place.shown} does not record its changes in version {version}"
            hint = f"set {_FEED} to true, and start with a later version"
            raise refusal(ValueError, what, where=self._where, hint=hint)

    def read(self, piece: SourceRange) -> Iterator[list[Any]]:
        for kinds in (_GO, _COME):
            for file in piece.end:
                yield from self._changes(file, kinds)

    def _changes(self, file: LogFile, kinds: tuple[str, ...]) -> Iterator[list[Any]]:
        if file.kind == "cdc":
            wanted = pc.field(_TYPE).isin(list(kinds))
            for batch in self._batches(file, (*self._names, _TYPE), wanted):
                types = [_KINDS[each] for each in batch.column(_TYPE).to_pylist()]
                yield list(zip(types, self._to_elements(batch.select(list(self._names))), strict=True))
        elif (file.kind == "remove") == (kinds is _GO):
            kind = ValueKind.DELETE if file.kind == "remove" else ValueKind.INSERT
            for batch in self._batches(file, self._names):
                yield [(kind, element) for element in self._to_elements(batch)]
