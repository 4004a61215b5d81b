"""Reads and writes tables of Apache Iceberg by the package ``pyiceberg``, without a jar or a Spark connector."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
)
from penstock.io.formats.record_types import hint_of_records
from penstock.io.sink_transforms import TableSinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import Streamable

__all__ = ["ReadFromIceberg", "WriteToIceberg"]

_NAMED = re.compile(r"\s*(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*\(\s*([^()]+?)\s*\)\s*")
_NUMBERED = ("bucket", "truncate")
_PLAIN = ("identity", "year", "month", "day", "hour")


@dataclass(frozen=True)
class CatalogTable:
    """A table of a catalog; the properties of the catalog may hold secrets, and are never shown.

    >>> CatalogTable("lake.scores", "prod", (("uri", "http://me:secret@catalog"),))
    CatalogTable('prod.lake.scores')
    """

    name: str
    catalog: str = "default"
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def shown(self) -> str:
        """The name of the table, and before it the name of its catalog unless that is the default."""
        return self.name if self.catalog == "default" else f"{self.catalog}.{self.name}"

    def __repr__(self) -> str:
        return f"CatalogTable({self.shown!r})"


@dataclass(frozen=True)
class PartitionPart:
    """A column, and how its values decide the partition of a row."""

    column: str
    transform: str = "identity"

    def __str__(self) -> str:
        return self.column if self.transform == "identity" else f"{self.transform}({self.column})"


@dataclass(frozen=True)
class IcebergSource(Streamable):
    """The rows of an Iceberg table; see `ReadFromIceberg`."""

    place: CatalogTable
    snapshot_id: int | None = None
    as_of: str | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    elements: str = "dict"  # Or ``"row"``.

    has_fields = True
    reads_files = False

    def describe(self) -> str:
        at = self.as_of if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        columns = f" [{', '.join(self.columns)}]" if self.columns else ""
        where = f" where {self.filter}" if self.filter else ""
        return f"iceberg {self.place.shown}" + (f" at {at}" if at else "") + columns + where

    def why_no_stream(self) -> tuple[str, str] | None:
        hint = "read it in batch, or stream it with ReadFromSpark('iceberg', table) and Iceberg's own jar"
        return "an Iceberg table cannot be read as a stream without Spark's connector", hint

    def known_fields(self) -> tuple[str, ...] | None:
        return self.columns


@dataclass(frozen=True)
class IcebergSink(Sink):
    """Rows added to an Iceberg table, or changes merged into it by key; see `WriteToIceberg`."""

    place: CatalogTable
    partition_by: tuple[PartitionPart, ...] = ()
    key: tuple[str, ...] = ()
    value: str | None = None
    schema: Any = None
    element_type: Any = None

    def describe(self) -> str:
        return f"iceberg {self.place.shown}" + (f" by {', '.join(self.key)}" if self.key else "")


class ReadFromIceberg(SourceTransform[Any]):
    """Reads the rows of one snapshot of an Iceberg table (penstock's own; Beam's is a Java transform).

    Each task reads data files of the table, without Java, and skips the rows that delete files name. Columns are found
    by their identifiers, so files from before a column was renamed or added are read correctly. Elements are dicts:
    nested columns are dicts and lists, maps are lists of pairs, instants are ``datetime`` values in UTC, decimals are
    ``Decimal``, and null is None. Install ``penstock[iceberg]``.

    Args:
        table: The name of the table with its namespace, such as ``"lake.scores"``.
        catalog: The properties of the catalog, as ``pyiceberg.catalog.load_catalog`` takes them, with its name as
            ``"name"``; or only the name of a catalog that is configured for pyiceberg. They are never shown.
        snapshot_id: The snapshot to read; None is the current one when the pipeline starts.
        as_of: Reads the snapshot that was current at that time instead: a ``datetime``, or a string such as
            ``2026-05-01T12:00:00Z``.
        columns: The columns to read; None reads all.
        filter: Which rows to read, in pyiceberg's syntax, such as ``"points > 3 and team = 'red'"``. Files without
            such rows are not opened.
        as_rows: Whether the elements are ``Row`` values, not dicts.

    Raises:
        ValueError: If both a snapshot and a time are given. When the pipeline starts: if the table has no such snapshot
            or column, or the filter cannot be understood.
        LookupError: When the pipeline starts, if there is no such table.
        UnsupportedByRunner: When the pipeline starts, if the table has delete files that name rows by values.

    >>> ReadFromIceberg("lake.scores", snapshot_id=3, columns=["team"]).source.describe()
    'iceberg lake.scores at snapshot 3 [team]'
    """

    source: IcebergSource

    def __init__(
        self,
        table: str,
        catalog: Mapping[str, str] | str = "default",
        snapshot_id: int | None = None,
        as_of: datetime.datetime | str | None = None,
        columns: Iterable[str] | None = None,
        filter: str | None = None,
        as_rows: bool = False,
    ) -> None:
        check_one_of(snapshot_id=snapshot_id, as_of=as_of)
        if filter is not None and (not isinstance(filter, str) or not filter.strip()):
            what = f"filter must be a string such as 'points > 3', but is {filter!r}"
            raise refusal(TypeError, what, hint="leave it out to read all rows")
        source = IcebergSource(
            _place(table, catalog),
            check_number_from_zero("snapshot_id", snapshot_id, "table.history() lists the snapshots"),
            moment_of("as_of", as_of),
            None if columns is None else check_column_names("columns", columns),
            filter,
            "row" if as_rows else "dict",
        )
        super().__init__(source)

    def infer_output_type(self, input_type: object) -> object:
        return hint_of_records(self.source.elements == "row")


class WriteToIceberg(TableSinkTransform):
    """Adds rows to an Iceberg table, or merges changes into it by key (penstock's own); no output.

    The tasks write data files into the folder of the table; then the driver makes them part of the table in one commit.
    A stream records its name and the number of the micro-batch as a property of the table in the same commit, so each
    element is in the table exactly once after any crash, even if an old driver is still alive. A micro-batch without
    elements does not commit. In batch, one commit adds all rows, or nothing if the run fails. Files of failed attempts
    are not part of the table; Iceberg's maintenance removes such orphans. Install ``penstock[iceberg]``.

    If the table exists, its columns apply: fields that the elements lack become null. Otherwise, the schema or the
    element type defines the columns, and the first commit creates the table; its namespace must exist.

    With a key, the elements are the changes that ``Upserts()`` emits: a row that replaces those with the same key, or
    a deletion. A key of ``Upserts(by_window=True)`` fills a column for each of its parts, then one for the start and
    one for the end of the window. Elements that only the key distinguishes must not be shuffled in between. The driver
    rewrites each data file that has rows with these keys.

    Args:
        table: The name of the table with its namespace, such as ``"lake.scores"``.
        catalog: The properties of the catalog, as ``pyiceberg.catalog.load_catalog`` takes them, with its name as
            ``"name"``; or only the name of a catalog that is configured for pyiceberg. They are never shown.
        partition_by: The columns whose values divide the files, or transforms of columns: ``"team"``,
            ``"bucket[16](team)"``, ``"truncate[3](team)"``, ``"day(at)"``, and likewise hour, month and year. None
            means the table's.
        key: The column, or the columns, of the row's key. The elements are then ``Upsert`` values.
        value: With a key: the column of the upsert's value, if the value is not a record.
        schema: A ``pyarrow.Schema`` of the table to create.

    Raises:
        ValueError: For arguments that do not fit together. When it is applied: if no columns are known. Before
            the pipeline starts: if the elements do not fit the table.
        LookupError: Before the pipeline starts, if neither the table nor its namespace exists.
        UnsupportedByRunner: Before the pipeline starts, if the table has a format newer than 2.

    >>> WriteToIceberg("lake.totals", {"uri": "sqlite:////lake.db"}, key="team", value="points").sink.describe()
    'iceberg lake.totals by team'
    >>> WriteToIceberg("lake.totals", partition_by="bucket(team)")
    Traceback (most recent call last):
    ...
    ValueError: partition_by has 'bucket(team)', but bucket needs a number
      at ...
      hint: write 'bucket[16](team)', for example
    """

    sink: IcebergSink

    def __init__(
        self,
        table: str,
        catalog: Mapping[str, str] | str = "default",
        partition_by: object = (),
        key: object = None,
        *,
        value: str | None = None,
        schema: object = None,
    ) -> None:
        parts = (
            ()
            if partition_by is None
            else check_column_names("partition_by", partition_by, may_be_empty=True)
        )
        super().__init__(
            IcebergSink(
                _place(table, catalog),
                tuple(map(_part, parts)),
                check_key_and_value(key, value),
                value,
                schema,
            )
        )

    def _partition_columns(self) -> list[str]:
        return [part.column for part in self.sink.partition_by]


def _place(table: object, catalog: object) -> CatalogTable:
    if not isinstance(table, str) or not all(table.split(".")) or "." not in table:
        what = f"table must be a name with its namespace, but is {table!r}"
        raise refusal(
            ValueError if isinstance(table, str) else TypeError,
            what,
            hint="write table='lake.scores', for example",
        )
    if isinstance(catalog, str) and catalog:
        return CatalogTable(table, catalog)
    if not isinstance(catalog, Mapping):
        what = f"catalog must have properties or be a name, but is {noun_for(catalog)}"
        raise refusal(TypeError, what, hint="write catalog={'type': 'rest', 'uri': ...}")
    properties = dict(check_text_pairs("catalog", catalog))
    name = properties.pop("name", "default")
    return CatalogTable(table, name, tuple(properties.items()))


def _part(text: str) -> PartitionPart:
    """A partition field.

    >>> _part("bucket[16](team)"), _part("team")
    (PartitionPart(column='team', transform='bucket[16]'), PartitionPart(column='team', transform='identity'))
    """
    found = _NAMED.fullmatch(text)
    if found is None:
        return PartitionPart(text)
    name, number, column = found.groups()
    if name not in _NUMBERED + _PLAIN:
        what = f"partition_by has {text!r}, but {name} is not a transform"
        known = f"use one of {', '.join(_PLAIN)}, bucket[16] and truncate[3]"
        hint = hint_at_name(name, _NUMBERED + _PLAIN, known)
        raise refusal(ValueError, what, hint=hint)
    if (name in _NUMBERED) != (number is not None and int(number) > 0):
        needs = "needs a number" if name in _NUMBERED else "takes no number"
        example = f"{name}[16]({column})" if name in _NUMBERED else f"{name}({column})"
        what = f"partition_by has {text!r}, but {name} {needs}"
        raise refusal(ValueError, what, hint=f"write {example!r}, for example")
    return PartitionPart(column, name if number is None else f"{name}[{int(number)}]")
