"""The systems that tables are in, by their names in SQL, and the transforms that read and write them.

The settings of a table are the arguments of these transforms, so that each is stated once.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias

from penstock.checks.similar_names import hint_at_name
from penstock.construction.ptransform import PTransform
from penstock.error import refusal
from penstock.io.avroio import ReadFromAvro, WriteToAvro
from penstock.io.database import ReadFromDatabase, WriteToDatabase
from penstock.io.delta import ReadChangesFromDelta, ReadFromDelta, WriteToDelta
from penstock.io.iceberg import ReadFromIceberg, WriteToIceberg
from penstock.io.kafka import ReadFromKafka, WriteToKafka
from penstock.io.orcio import ReadFromOrc
from penstock.io.parquetio import ReadFromParquet
from penstock.io.postgres_changes import ReadChangesFromPostgres
from penstock.io.source_transforms import SourceTransform
from penstock.io.sparkio import ReadFromSpark, WriteToSpark
from penstock.sql.tables import spark_settings
from penstock.sql.tables.printed_rows import PrintRows
from penstock.sql.tables.row_changes import ApplyChanges

GROUP = "penstock.tables"
"""The group of entry points in which packages name their connectors for SQL."""

Make: TypeAlias = Callable[..., PTransform[Any, Any]]
"""Makes a transform that reads or writes, of arguments by name."""


@dataclass(frozen=True)
class TableConnector:
    """Describes to SQL how the tables of a system are read and written (penstock's own).

    Each argument of `read`, of the ``as_stream`` of what it makes, and of `write` is a setting of a table, if a text
    can say its value. SQL has words of its own for these arguments, which are not settings: ``columns``, ``schema``,
    ``key``, ``partition_by``, ``mode``, ``as_rows``, ``event_time``, ``watermark`` and ``rejects``.

    Attributes:
        read: Makes the transform that reads a table; None if SQL cannot read one.
        write: Makes the transform that writes one, of rows, or if it has an argument ``key`` of their changes.
        names: What arguments are called in SQL, where it is something else.
        hidden: The arguments that are not settings.
        known: More settings, which `read` and `write` take under any name; None takes all.
        appends: Arguments of `write` for INSERT INTO.
        overwrites: Arguments of `write` for INSERT OVERWRITE; None if it cannot overwrite.
        merges: Arguments of `write` for a table with a primary key.
        shows_changes: Whether it writes retractions as what they are.
        schema: ``spark`` if the argument ``schema`` is Spark's text; None if the type of the elements has the columns.
        file_pattern: The argument of `read` for the files of a folder.
        file_prefix: The argument of `write` for the beginning of the names of files in a folder.
        records: Whether elements are pairs of a key and a value in bytes: `read` has ``value_deserializer`` and
            ``with_metadata``, which makes elements of `penstock.io.kafka.KafkaRecord`.
        after_read: Makes rows of what is read.
        columns_of: Makes the transform that reads a table with the same columns, of those arguments of `read` that it
            has; None if `read` knows the columns.
        always_streams: Whether it is read as a stream, unless the job is a batch.
        needs_columns: Whether the data does not contain its columns.
        finds_in_engine: Whether only Spark finds the columns of the data.
        rejects: Whether `read` has an argument ``rejects``, which keeps records apart that cannot be read.

    Example: ``TableConnector(read=ReadScores, write=WriteScores)``.
    """

    read: Make | None = None
    write: Make | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    known: frozenset[str] | None = frozenset()
    appends: Mapping[str, object] = field(default_factory=dict)
    overwrites: Mapping[str, object] | None = None
    merges: Mapping[str, object] = field(default_factory=dict)
    shows_changes: bool = False
    schema: str | None = None
    file_pattern: str | None = None
    file_prefix: str | None = None
    records: bool = False
    after_read: Make | None = None
    columns_of: Make | None = None
    always_streams: bool = False
    needs_columns: bool = False
    finds_in_engine: bool = False
    rejects: bool = False

    @property
    def has_keys(self) -> bool:
        """True if `write` takes the columns of a key."""
        return self.write is not None and "key" in inspect.signature(self.write).parameters

    @property
    def merges_by_key(self) -> bool:
        """True if it writes changes of rows by their key."""
        return self.has_keys or (self.write is not None and self.records)

    def as_stream(self) -> Callable[..., object] | None:
        """Returns the method that makes a stream of what `read` makes; None if there is none."""
        made = self.read.func if isinstance(self.read, functools.partial) else self.read
        return getattr(made, "as_stream", None)


_MODES: Mapping[str, Any] = {
    "appends": {"mode": "append"},
    "overwrites": {"mode": "overwrite"},
}
_FILES = frozenset({"min_bundle_size", "validate", "use_fastavro", "label", "value"})


def _spark_files(format: str, rejects: bool = False) -> TableConnector:
    """A format of files that Spark reads and writes."""
    return TableConnector(
        functools.partial(ReadFromSpark, format),
        functools.partial(WriteToSpark, format),
        known=spark_settings.of_format(format),
        schema="spark",
        finds_in_engine=True,
        rejects=rejects,
        **_MODES,
    )


def _typed_files(format: str, read: Make, rejects: bool = False) -> TableConnector:
    """A format of files that know their types."""
    return TableConnector(
        read,
        functools.partial(WriteToSpark, format),
        names={"file_pattern": "path"},
        hidden=_FILES,
        known=spark_settings.of_format(format),
        schema="spark",
        file_pattern="file_pattern",
        rejects=rejects,
        **_MODES,
    )


_DATABASE = TableConnector(
    ReadFromDatabase, WriteToDatabase, schema="spark", appends={"mode": "insert"}, merges={"mode": "upsert"}
)
_KAFKA = TableConnector(
    ReadFromKafka,
    WriteToKafka,
    rejects=True,
    names={"consumer_config": "properties", "producer_config": "properties", "topics": "topic"},
    hidden=frozenset(
        [
            *("key_deserializer", "value_deserializer", "key_serializer", "value_serializer"),
            *("with_headers", "with_metadata", "expansion_service", "timestamp_policy"),
        ]
    ),
    records=True,
    always_streams=True,
    needs_columns=True,
)
CONNECTORS: Mapping[str, TableConnector] = {
    "csv": _spark_files("csv", rejects=True),
    "json": _spark_files("json", rejects=True),
    "text": _spark_files("text"),
    "parquet": _typed_files("parquet", ReadFromParquet),
    "orc": _typed_files("orc", ReadFromOrc, rejects=True),
    "avro": TableConnector(
        ReadFromAvro,
        functools.partial(WriteToAvro, file_name_suffix=".avro"),
        names={"file_pattern": "path", "file_path_prefix": "path"},
        hidden=_FILES | {"file_name_suffix", "shard_name_template", "mime_type"},
        file_pattern="file_pattern",
        file_prefix="file_path_prefix",
        rejects=True,
    ),
    "delta": TableConnector(ReadFromDelta, WriteToDelta, hidden=frozenset({"value"}), **_MODES),
    "delta_changes": TableConnector(
        ReadChangesFromDelta, after_read=ApplyChanges, columns_of=ReadFromDelta, always_streams=True
    ),
    "iceberg": TableConnector(ReadFromIceberg, WriteToIceberg, hidden=frozenset({"value"})),
    "database": _DATABASE,
    "jdbc": _DATABASE,
    "postgres_changes": TableConnector(
        ReadChangesFromPostgres, after_read=ApplyChanges, columns_of=ReadFromDatabase, always_streams=True
    ),
    "kafka": _KAFKA,
    "print": TableConnector(write=PrintRows, shows_changes=True),
    "rate": TableConnector(
        functools.partial(ReadFromSpark, "rate"),
        known=spark_settings.of_format("rate"),
        finds_in_engine=True,
        always_streams=True,
    ),
    "noop": TableConnector(
        write=functools.partial(WriteToSpark, "noop"), hidden=frozenset({"path"}), schema="spark", **_MODES
    ),
    "spark": TableConnector(
        ReadFromSpark,
        WriteToSpark,
        names={"format": "spark_format"},
        known=None,
        schema="spark",
        finds_in_engine=True,
        **_MODES,
    ),
}
"""The connectors of penstock; packages add others by entry points."""


def find_connector(name: str) -> TableConnector:
    """Returns the connector of a name.

    Raises:
        ValueError: There is none, or it cannot be loaded.

    >>> find_connector("csv").rejects
    True
    >>> find_connector("parqet")
    Traceback (most recent call last):
        ...
    ValueError: there is no connector 'parqet'
      at ...
      hint: did you mean 'parquet'?
    """
    found = CONNECTORS.get(name.lower())
    if found is not None:
        return found
    points = {point.name.lower(): point for point in entry_points(group=GROUP)}
    if name.lower() in points:
        return _load(points[name.lower()])
    known = f"use one of {', '.join(sorted([*CONNECTORS, *points]))}"
    hint = hint_at_name(name, [*CONNECTORS, *points], known)
    raise refusal(ValueError, f"there is no connector {name!r}", hint=hint)


def _load(point: EntryPoint) -> TableConnector:
    hint = "install another version of its package, and what it needs"
    try:
        found = point.load()
    except Exception as error:
        what = f"the connector {point.name!r} cannot be imported: {type(error).__name__}: {error}"
        raise refusal(ValueError, what, hint=hint) from error
    if not isinstance(found, TableConnector):
        what = f"the connector {point.name!r} is not a TableConnector, but {type(found).__name__}"
        raise refusal(ValueError, what, hint=hint)
    return found


@dataclass(frozen=True)
class Setting:
    """A setting of a table.

    Attributes:
        argument: The argument that it is.
        kind: How its text is read.
        is_needed: Whether it must be given.
    """

    argument: str
    kind: str
    is_needed: bool = False


OWN_WORDS = frozenset(
    [
        *("columns", "schema", "key", "partition_by", "mode", "as_rows"),
        *("event_time", "watermark", "rejects", "self"),
    ]
)
"""Arguments for which SQL has words of its own."""

_KINDS = {
    "bool": "truth",
    "int": "whole",
    "float": "number",
    "DurationTypes": "seconds",
    "str": "text",
    "object": "text",
    "Path": "text",
    "Url": "text",
    "int | str": "whole or text",
    "datetime.datetime | str": "text",
    "str | Callable[[Any], Any]": "text",
    "Mapping[str, str]": "pairs",
    "Mapping[str, Any]": "pairs",
    "Mapping[str, str] | str": "pairs or text",
    "Iterable[str]": "list",
    "Sequence[str]": "list",
    "list[str] | tuple[str, ...]": "list",
    "str | Mapping[str, Mapping[int, int]]": "text",
}
_OF_DEFAULTS = {bool: "truth", int: "whole", float: "number"}


def settings_of(function: Callable[..., object], connector: TableConnector) -> dict[str, Setting]:
    """Returns the settings that the arguments of a function are, by their names in SQL.

    >>> list(settings_of(find_connector("delta").write, find_connector("delta")))
    ['path', 'storage_options']
    """
    return dict(_settings(function, connector))


def _settings(function: Callable[..., object], connector: TableConnector) -> Iterator[tuple[str, Setting]]:
    for name, parameter in inspect.signature(function).parameters.items():
        if name in OWN_WORDS | connector.hidden or parameter.kind in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            continue
        annotation = parameter.annotation
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        bare = re.sub(r" \| None$", "", text)
        kind = _KINDS.get(bare)
        if parameter.annotation is parameter.empty:
            kind = _OF_DEFAULTS.get(type(parameter.default), "text")
        if kind is None:
            continue
        if name.endswith("_bound"):
            kind = "bound"
        needed = parameter.default is parameter.empty or name in (connector.file_pattern, "path")
        yield connector.names.get(name, name), Setting(name, kind, needed)


def stream_settings(connector: TableConnector) -> dict[str, Setting]:
    """Returns the settings of a table that is read as a stream: of its own ``as_stream``, and of every other."""
    own = connector.as_stream()
    if own is None:
        return {}
    return settings_of(SourceTransform.as_stream, connector) | settings_of(own, connector)
