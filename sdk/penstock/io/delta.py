"""Tables of Delta Lake, read and written by the package ``deltalake``: neither a jar nor a connector of Spark's."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.base.row import Row
from penstock.base.where import here
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.graph import Sink
from penstock.io.columnar import type_of_records
from penstock.io.primitive import SinkTransform, SourceTransform
from penstock.io.streams import Streamable
from penstock.transforms.field_checks import check_field_names
from penstock.typehints import typehints

__all__ = ["ReadFromDelta", "WriteToDelta"]

_MODES = ("append", "overwrite", "error")


@dataclass(frozen=True)
class TablePlace:
    """Where a table is, and how to get there; the options may hold secrets, and are never shown.

    >>> TablePlace("s3://me:secret@lake/scores", (("aws_secret_access_key", "secret"),))
    TablePlace('s3://lake/scores')
    """

    path: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)

    @property
    def shown(self) -> str:
        """The path without a user or a password."""
        return re.sub(r"(?<=://)[^/@]*@", "", self.path)

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

    has_fields = True
    reads_files = False

    def describe(self) -> str:
        version = self.timestamp if self.version is None else f"version {self.version}"
        columns = f" [{', '.join(self.columns)}]" if self.columns else ""
        return f"delta {self.place.shown}" + (f" at {version}" if version else "") + columns

    def why_no_stream(self) -> tuple[str, str] | None:
        hint = "read it in batch, or stream it with ReadFromSpark('delta', path) and Delta's own jar"
        return "a Delta table cannot be read as a stream without Spark's connector", hint

    def known_fields(self) -> tuple[str, ...] | None:
        return self.columns


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
    """The rows of a Delta table, as of one version (penstock's own; Beam's is a Java transform).

    Each task reads files of the table; none of them goes through Java. Elements are dicts: nested columns are dicts
    and lists, maps lists of pairs, instants ``datetime`` in UTC, decimals ``Decimal``, null None. Install
    ``penstock[delta]``.

    Args:
        path: The folder of the table, or its URL, such as ``s3://lake/scores``.
        version: The number of the version to read; None is the newest when the pipeline starts.
        timestamp: Reads the version of that moment instead: a ``datetime``, or text of the form
            ``2026-05-01T12:00:00Z``.
        columns: The columns to read; None reads all.
        storage_options: What the store needs, such as keys and regions, by the names of ``deltalake``. They are not
            shown anywhere.
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
        path: Any,
        version: int | None = None,
        timestamp: datetime.datetime | str | None = None,
        columns: Iterable[str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        as_rows: bool = False,
    ) -> None:
        if version is not None and timestamp is not None:
            raise refusal(
                ValueError, "both version and timestamp are given", where=here(), hint="leave one of them out"
            )
        if version is not None and (not isinstance(version, int) or isinstance(version, bool) or version < 0):
            what = f"version must be a number from 0, but is {version!r}"
            raise refusal(
                ValueError, what, where=here(), hint="DeltaTable(path).history() lists the versions"
            )
        source = DeltaSource(
            _place(path, storage_options),
            version,
            _moment(timestamp),
            None if columns is None else _names("columns", columns),
            "row" if as_rows else "dict",
        )
        super().__init__(source)

    def infer_output_type(self, input_type: Any) -> Any:
        return Row if self.source.elements == "row" else typehints.Dict[str, Any]


class WriteToDelta(SinkTransform[Any]):
    """Writes rows to a Delta table, or merges changes into it by key (penstock's own); no output.

    The tasks write data files into the folder of the table; then the driver makes them part of the table in one
    commit. A stream notes its name and the number of the micro-batch in the same commit, so each element is in the
    table exactly once after any crash, and also if an old driver is still alive. A micro-batch without elements makes
    no commit. In batch, one commit adds everything, or nothing if the run fails. Files of attempts that have failed are
    no part of the table; Delta's ``vacuum`` deletes them. Install ``penstock[delta]``.

    The table gives the columns if it exists: fields that the elements lack become null. Otherwise the schema, or the
    element type, gives them.

    With a key, the elements are the changes that ``Upserts()`` gives: a row that replaces the one with the same key, or
    a deletion. A key of ``Upserts(by_window=True)`` fills a column for each of its parts, then one for the start and
    one for the end of the window. The elements that only the key tells apart must not be shuffled in between.

    Args:
        path: The folder of the table, or its URL, such as ``s3://lake/scores``. A folder must be on a disk that all
            workers share.
        mode: What to do with an existing table: ``"append"`` adds to it, ``"overwrite"`` replaces its rows, ``"error"``
            refuses to start. A stream does this once, when it starts for the first time.
        partition_by: The columns by whose values files are kept apart; None takes those of the table.
        key: The column, or the columns, of the row's key. The elements are then ``Upsert`` values.
        value: With a key: the column of the upsert's value, if the value is no record.
        schema: A ``pyarrow.Schema`` of the table to make.
        storage_options: What the store needs, such as keys and regions, by the names of ``deltalake``. They are not
            shown anywhere.

    Raises:
        ValueError: For arguments that do not fit together. When it is applied: if nothing gives the columns. Before
            the pipeline starts: if the elements do not fit the table.
        FileExistsError: Before the pipeline starts, if there is a table and the mode is ``"error"``.

    >>> WriteToDelta("/lake/totals", key="team", value="points").sink.describe()
    'delta /lake/totals by team'
    >>> WriteToDelta("/lake/totals", mode="overwrite", key="team")
    Traceback (most recent call last):
    ...
    ValueError: a key merges elements into the table, but the mode is 'overwrite'
      at ...
      hint: leave mode out, or delete the rows before
    """

    sink: DeltaSink

    def __init__(
        self,
        path: Any,
        mode: str = "append",
        partition_by: Any = (),
        key: Any = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        value: str | None = None,
        schema: Any = None,
    ) -> None:
        if mode not in _MODES:
            what = f"{mode!r} is not a mode of WriteToDelta"
            raise refusal(ValueError, what, where=here(), hint=f"use one of {', '.join(_MODES)}")
        keys = () if key is None else _names("key", key)
        if keys and mode != "append":
            what = f"a key merges elements into the table, but the mode is {mode!r}"
            raise refusal(ValueError, what, where=here(), hint="leave mode out, or delete the rows before")
        if value is not None and not keys:
            what = "value names the column beside a key, but there is no key"
            raise refusal(ValueError, what, where=here(), hint="pass key=, or leave value out")
        parts = () if partition_by is None else _names("partition_by", partition_by)
        super().__init__(DeltaSink(_place(path, storage_options), mode, parts, keys, value, schema))

    def expand(self, pcoll: Any) -> PCollection[Any]:
        if not self.sink.key and self.sink.schema is None:
            what = "WriteToDelta does not know the columns"
            element_type = type_of_records(self, pcoll, what, "schema=pyarrow.schema([...])")
            self.sink = replace(self.sink, element_type=element_type)
            check_field_names(self.sink.partition_by, element_type, self._where())
        result: PCollection[Any] = super().expand(pcoll)
        return result


def _place(path: Any, options: Mapping[str, str] | None) -> TablePlace:
    path = path if isinstance(path, str) else getattr(path, "__fspath__", lambda: path)()
    if not isinstance(path, str) or not path:
        what = f"the path of a Delta table must be text, but is a {type(path).__name__}"
        raise refusal(
            TypeError, what, where=here(), hint="write path='/lake/scores' or path='s3://lake/scores'"
        )
    pairs = dict(options or {}).items()
    if not all(isinstance(part, str) for pair in pairs for part in pair):
        what = "storage_options must have text as names and values"
        raise refusal(
            TypeError, what, where=here(), hint="write numbers and truth values as text, such as 'true'"
        )
    return TablePlace(path, tuple(sorted(pairs)))


def _names(argument: str, given: Any) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        what = f"{argument} must be the name of a column, or several names"
        raise refusal(TypeError, what, where=here(), hint=f"write {argument}='team', for example")
    if len(set(names)) < len(names) or (argument != "partition_by" and not names):
        what = f"{argument} must name columns, each once"
        raise refusal(ValueError, what, where=here(), hint=f"write {argument}='team', for example")
    return names


def _moment(timestamp: datetime.datetime | str | None) -> str | None:
    if timestamp is None:
        return None
    try:
        if isinstance(timestamp, str):
            timestamp = datetime.datetime.fromisoformat(timestamp)
        aware = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=datetime.UTC)
        return aware.astimezone(datetime.UTC).isoformat()
    except (AttributeError, TypeError, ValueError):
        what = "timestamp must be a datetime, or text such as 2026-05-01T12:00:00Z"
        raise refusal(ValueError, what, where=here(), hint="times without a zone are in UTC") from None
