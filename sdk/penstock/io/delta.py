"""Reads and writes tables of Delta Lake by the package ``deltalake``, without a jar or a Spark connector."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.checks.similar_names import hint_at_name
from penstock.error import noun_for, refusal
from penstock.graph import Sink
from penstock.io.argument_checks import (
    check_column_names,
    check_key_and_value,
    check_number_from_zero,
    check_one_of,
    check_text_pairs,
    moment_of,
    strip_user,
)
from penstock.io.formats.record_types import hint_of_records
from penstock.io.sink_transforms import TableSinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import Streamable
from penstock.typehints import typehints
from penstock.utils.windowed_value import ValueKind

__all__ = ["ReadChangesFromDelta", "ReadFromDelta", "WriteToDelta"]

_VERSIONS = "DeltaTable(path).history() lists the versions"
_MODES = ("append", "overwrite", "error")


@dataclass(frozen=True)
class TablePlace:
    """Locates a table, and holds the options to reach it; these may hold secrets, and are never shown.

    >>> TablePlace("s3://me:secret@lake/scores", (("aws_secret_access_key", "secret"),))
    TablePlace('s3://lake/scores')
    """

    path: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)

    @property
    def shown(self) -> str:
        """The path without a user or a password."""
        return strip_user(self.path)

    def __repr__(self) -> str:
        return f"TablePlace({self.shown!r})"


@dataclass(frozen=True)
class DeltaSource(Streamable):
    """The rows of a Delta table; see `ReadFromDelta`."""

    place: TablePlace
    version: int | None = None
    timestamp: str | None = None
    columns: tuple[str, ...] | None = None
    elements: str = "dict"  # Or ``"row"``.
    starting_version: int | str | None = None  # Of a stream that leaves out what is in the table.
    skips_changes: bool = False

    has_fields = True
    has_columns = True
    reads_files = False
    limits_records = True

    def describe(self) -> str:
        version = self.timestamp if self.version is None else f"version {self.version}"
        columns = f" [{', '.join(self.columns)}]" if self.columns else ""
        return f"delta {self.place.shown}" + (f" at {version}" if version else "") + columns

    def known_fields(self) -> tuple[str, ...] | None:
        return self.columns


@dataclass(frozen=True)
class DeltaChangesSource(Streamable):
    """The changes of a Delta table; see `ReadChangesFromDelta`."""

    place: TablePlace
    starting_version: int | None = None
    ending_version: int | None = None
    columns: tuple[str, ...] | None = None
    elements: str = "dict"  # Or ``"row"``.

    reads_files = False
    limits_records = True

    def describe(self) -> str:
        start = "" if self.starting_version is None else f" from version {self.starting_version}"
        end = "" if self.ending_version is None else f" to version {self.ending_version}"
        return f"changes of delta {self.place.shown}{start}{end}"

    def why_no_stream(self) -> tuple[str, str] | None:
        if self.ending_version is None:
            return None
        return "a stream of changes does not end, but ending_version is given", "leave ending_version out"


@dataclass(frozen=True)
class DeltaSink(Sink):
    """Rows added to a Delta table, or changes merged into it by key; see `WriteToDelta`."""

    place: TablePlace
    mode: str = "append"
    partition_by: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    value: str | None = None
    schema: Any = None
    element_type: Any = None

    def describe(self) -> str:
        return f"delta {self.place.shown}" + (f" by {', '.join(self.key)}" if self.key else "")


class ReadFromDelta(SourceTransform[Any]):
    """Reads the rows of one version of a Delta table (penstock's own; Beam's is a Java transform).

    Each task reads files of the table, without Java. Elements are dicts: nested columns are dicts and lists, maps are
    lists of pairs, instants are ``datetime`` values in UTC, decimals are ``Decimal``, and null is None. Install
    ``penstock[delta]``.

    Args:
        path: The folder of the table, or its URL, such as ``s3://lake/scores``.
        version: The number of the version to read; None is the newest when the pipeline starts.
        timestamp: Reads the version at that time instead: a ``datetime``, or a string such as ``2026-05-01T12:00:00Z``.
        columns: The columns to read; None reads all.
        storage_options: Settings of the store, such as keys and regions, with the names that ``deltalake`` uses. They
            are not shown anywhere.
        as_rows: Whether the elements are ``Row`` values, not dicts.

    Raises:
        ValueError: If both a version and a timestamp are given. When the pipeline starts: if the table has no such
            version or column, or was written with a feature that only newer readers know.
        FileNotFoundError: When the pipeline starts, if there is no table.

    >>> ReadFromDelta("/lake/scores", version=3, columns=["team"]).source.describe()
    'delta /lake/scores at version 3 [team]'
    """

    source: DeltaSource

    def __init__(
        self,
        path: object,
        version: int | None = None,
        timestamp: datetime.datetime | str | None = None,
        columns: Iterable[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        as_rows: bool = False,
    ) -> None:
        check_one_of(version=version, timestamp=timestamp)
        source = DeltaSource(
            _place(path, storage_options),
            check_number_from_zero("version", version, _VERSIONS),
            moment_of("timestamp", timestamp),
            None if columns is None else check_column_names("columns", columns),
            "row" if as_rows else "dict",
        )
        super().__init__(source)

    def as_stream(
        self,
        event_time: Any = None,
        watermark: Any = None,
        *,
        starting_version: int | str | None = None,
        skip_change_commits: bool = False,
        **arguments: Any,
    ) -> Any:
        """Reads the rows of the table, then the rows that are added to it; other arguments as in every ``as_stream``.

        A commit that removes rows, or rewrites files with different rows, stops the stream with an error, unless such
        commits are skipped. So does a version that is removed from the log before it is read, and a change of the
        columns; after a change of the columns, start the pipeline again. Commits that only move rows to other files,
        such as ``optimize``, are ignored.

        Example: ``ReadFromDelta("/lake/scores").as_stream(max_records_per_batch=100_000)``.

        Args:
            event_time: An element's event time: the name of a column, or a function of the element.
            watermark: A policy of `penstock.io.watermarks`, which an event time needs.
            starting_version: Skips the existing rows of the table, and begins with the rows that this version has
                added; ``"latest"`` begins with the next version.
            skip_change_commits: Whether to skip commits that remove or change rows, with all rows that they add.
            **arguments: The other arguments of ``as_stream``. Files are read whole, so a micro-batch may have more than
                ``max_records_per_batch`` records if a file does.

        >>> ReadFromDelta("/lake/scores").as_stream(starting_version="latest").source.describe()
        'stream of delta /lake/scores, IngressTime'
        """
        check_one_of(version=self.source.version, starting_version=starting_version)
        check_one_of(timestamp=self.source.timestamp, starting_version=starting_version)
        if starting_version != "latest":
            check_number_from_zero("starting_version", starting_version, _VERSIONS)
        read = copy.copy(self)
        read.source = replace(
            self.source, starting_version=starting_version, skips_changes=bool(skip_change_commits)
        )
        return super(ReadFromDelta, read).as_stream(event_time, watermark, **arguments)

    def infer_output_type(self, input_type: object) -> object:
        return hint_of_records(self.source.elements == "row")


class ReadChangesFromDelta(SourceTransform[Any]):
    """Reads the changes of the rows of a Delta table (penstock's own).

    The table must have the property ``delta.enableChangeDataFeed``. Elements are pairs of a `ValueKind` and a row, as
    `Changelog` emits them and as `WriteToDatabase` takes them with ``mode="upsert"``: an INSERT, a DELETE, or an
    UPDATE_BEFORE with the old row and an UPDATE_AFTER with the new one. Within a version, removed rows are emitted
    before added rows. With ``as_stream``, it also reads every later version; ``max_records_per_batch`` does not divide
    a version. Rows have the columns of the newest version when the pipeline starts. Install ``penstock[delta]``.

    Args:
        path: The folder of the table, or its URL, such as ``s3://lake/scores``.
        starting_version: The first version whose changes are read; None begins with the rows of the newest version when
            the pipeline starts for the first time, each as an INSERT.
        ending_version: The last version whose changes are read in batch; None is the newest when the pipeline starts.
        columns: The columns to read; None reads all.
        storage_options: Settings of the store, such as keys and regions, with the names that ``deltalake`` uses. They
            are not shown anywhere.
        as_rows: Whether rows are ``Row`` values, not dicts.

    Raises:
        ValueError: If the last version is before the first. When the pipeline starts: if the table does not record its
            changes, or has no such version or column.
        FileNotFoundError: When the pipeline starts, if there is no table.
        LookupError: While a stream runs, if a version is removed from the log before it is read.

    >>> ReadChangesFromDelta("/lake/scores", starting_version=3).source.describe()
    'changes of delta /lake/scores from version 3'
    """

    source: DeltaChangesSource

    def __init__(
        self,
        path: object,
        starting_version: int | None = None,
        ending_version: int | None = None,
        columns: Iterable[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        as_rows: bool = False,
    ) -> None:
        first = check_number_from_zero("starting_version", starting_version, _VERSIONS)
        last = check_number_from_zero("ending_version", ending_version, _VERSIONS)
        if last is not None and (first is None or last < first):
            what = "ending_version needs a starting_version that is not after it"
            raise refusal(ValueError, what, hint=_VERSIONS)
        source = DeltaChangesSource(
            _place(path, storage_options),
            first,
            last,
            None if columns is None else check_column_names("columns", columns),
            "row" if as_rows else "dict",
        )
        super().__init__(source)

    def infer_output_type(self, input_type: object) -> object:
        row = hint_of_records(self.source.elements == "row")
        return typehints.Tuple[ValueKind, row]


class WriteToDelta(TableSinkTransform):
    """Writes rows to a Delta table, or merges changes into it by key (penstock's own); no output.

    The tasks write data files into the folder of the table; then the driver makes them part of the table in one commit.
    A stream records its name and the number of the micro-batch in the same commit, so each element is in the table
    exactly once after any crash, even if an old driver is still alive. A micro-batch without elements does not commit.
    In batch, one commit adds all rows, or nothing if the run fails. Files of failed attempts are not part of the table;
    Delta's ``vacuum`` deletes them. Install ``penstock[delta]``.

    If the table exists, its columns apply: fields that the elements lack become null. Otherwise, the schema or the
    element type defines the columns.

    With a key, the elements are the changes that ``Upserts()`` emits: a row that replaces the one with the same key, or
    a deletion. A key of ``Upserts(by_window=True)`` fills a column for each of its parts, then one for the start and
    one for the end of the window. Elements that only the key distinguishes must not be shuffled in between.

    Args:
        path: The folder of the table, or its URL, such as ``s3://lake/scores``. A folder must be on a disk that all
            workers share.
        mode: What to do with an existing table: ``"append"`` adds to it, ``"overwrite"`` replaces its rows, ``"error"``
            refuses to start. A stream applies it once, when it starts for the first time.
        partition_by: The columns whose values divide the files; None takes the table's.
        key: The column, or the columns, of the row's key. The elements are then ``Upsert`` values.
        value: With a key: the column of the upsert's value, if the value is not a record.
        schema: A ``pyarrow.Schema`` of the table to create.
        storage_options: Settings of the store, such as keys and regions, with the names that ``deltalake`` uses. They
            are not shown anywhere.

    Raises:
        ValueError: For arguments that do not fit together. When it is applied: if no columns are known. Before
            the pipeline starts: if the elements do not fit the table.
        FileExistsError: Before the pipeline starts, if the table exists and the mode is ``"error"``.

    >>> WriteToDelta("/lake/totals", key="team", value="points").sink.describe()
    'delta /lake/totals by team'
    >>> WriteToDelta("/lake/totals", mode="overwrite", key="team")
    Traceback (most recent call last):
    ...
    ValueError: a key merges elements into the table, but the mode is 'overwrite'
      at ...
      hint: leave mode out, or delete the rows first
    """

    sink: DeltaSink

    def __init__(
        self,
        path: object,
        mode: str = "append",
        partition_by: object = (),
        key: object = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        value: str | None = None,
        schema: object = None,
    ) -> None:
        if mode not in _MODES:
            what = f"{mode!r} is not a mode of WriteToDelta"
            raise refusal(
                ValueError, what, hint=hint_at_name(str(mode), _MODES, f"use one of {', '.join(_MODES)}")
            )
        keys = check_key_and_value(key, value)
        if keys and mode != "append":
            what = f"a key merges elements into the table, but the mode is {mode!r}"
            raise refusal(ValueError, what, hint="leave mode out, or delete the rows first")
        parts = (
            ()
            if partition_by is None
            else check_column_names("partition_by", partition_by, may_be_empty=True)
        )
        super().__init__(DeltaSink(_place(path, storage_options), mode, parts, keys, value, schema))


def _place(path: object, options: Mapping[str, str] | None) -> TablePlace:
    path = path if isinstance(path, str) else getattr(path, "__fspath__", lambda: path)()
    if not isinstance(path, str) or not path:
        what = f"the path of a Delta table must be a string, but is {noun_for(path)}"
        raise refusal(TypeError, what, hint="write path='/lake/scores' or path='s3://lake/scores'")
    return TablePlace(path, check_text_pairs("storage_options", options))
