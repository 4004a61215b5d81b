"""A file format: what its source and its sink declare, and what all formats of records have in common.

A format has a frozen dataclass for its source, derived from `FileSource` or `RecordFileSource`, and one for its sink,
derived from `ShardedSink` or `RecordFileSink`. It adds what only this format knows, such as a codec. The runner finds
the format by the class.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from penstock.graph import Sink
from penstock.io.files.paths import Path, check_path
from penstock.io.files.shards import Shards
from penstock.io.formats.declared_fields import DeclaredFields
from penstock.io.formats.partition_folders import (
    check_partitions_to_read,
    describe_partitions,
    partition_columns,
    pattern_of_table,
)
from penstock.io.formats.record_types import column_names_of
from penstock.io.streaming.stream_sources import Streamable
from penstock.typehints.row_type import RowTypeConstraint


@dataclass(frozen=True)
class FileSource(Streamable):
    """Files that a pattern names.

    Attributes:
        format: The name of the format, for people.
        file_pattern: The path, with wildcards.
        takes_validate: Whether the user may allow a pattern that matches nothing.
        validate: Whether a pattern that matches nothing is an error.
    """

    format: ClassVar[str]
    takes_validate: ClassVar[bool] = True

    file_pattern: Path
    validate: bool = field(default=True, kw_only=True)

    def describe(self) -> str:
        return f"{self.format} {self.file_pattern}"


@dataclass(frozen=True)
class RecordFileSource(FileSource):
    """Files of records, perhaps in the folders of a table.

    Attributes:
        columns: The columns to read; None reads all.
        partition_by: The columns that are in the names of folders, which the pattern has.
        schema: What has the types of these columns; without it, they are strings.
        declared: The fields that the program declares, without these columns: a record must fit their types.
    """

    columns: tuple[str, ...] | None = field(default=None, kw_only=True)
    partition_by: tuple[str, ...] = field(default=(), kw_only=True)
    schema: Any = field(default=None, kw_only=True)
    declared: DeclaredFields = field(default=(), kw_only=True)

    @classmethod
    def in_folders(
        cls,
        path: object,
        partition_by: object,
        schema: object,
        *,
        argument: str = "file_pattern",
        **fields: Any,
    ) -> Self:
        """Returns the source of the files of a path, which is a table's folder if there are partitions.

        Args:
            path: The path that the user passes.
            partition_by: The columns whose values are in the names of folders.
            schema: What has the types of these columns.
            argument: The name of the argument that has the path.
            fields: What else the source has.
        """
        check_path(path, argument)
        parts = check_partitions_to_read(partition_by, schema)
        return cls(pattern_of_table(path, parts), partition_by=parts, schema=schema, **fields)

    def with_declared_fields(self, row: RowTypeConstraint) -> Self:
        """Returns the source whose records must fit the fields of a declared type."""
        return replace(
            self, declared=tuple((name, hint) for name, hint in row.fields if name not in self.partition_by)
        )

    def describe(self) -> str:
        return super().describe() + (f" [{', '.join(self.columns)}]" if self.columns else "")

    def known_fields(self) -> tuple[str, ...] | None:
        return self.columns


@dataclass(frozen=True)
class ShardedSink(Sink):
    """Files whose names have a prefix, the number of the shard, and a suffix.

    Attributes:
        format: The name of the format, for people.
        shards: The names of the files.
        triggering_frequency: The length of the windows by which an unbounded collection is written, in seconds.
    """

    format: ClassVar[str]

    shards: Shards
    triggering_frequency: float | None = field(default=None, kw_only=True)

    def describe(self) -> str:
        return self.shards.describe(self.format)

    def names_windows(self) -> bool:
        return self.shards.names_windows


@dataclass(frozen=True)
class RecordFileSink(ShardedSink):
    """Files of records, perhaps in the folders of a table.

    Attributes:
        schema: The columns, in the format's own form; None takes them from `element_type`.
        element_type: The type of the elements, where there is no schema.
        partition_by: The columns whose values divide the files into folders.
    """

    schema: Any = None
    element_type: Any = field(default=None, kw_only=True)
    partition_by: tuple[str, ...] = field(default=(), kw_only=True)

    @classmethod
    def in_folders(cls, shards: Shards, partition_by: object, **fields: Any) -> Self:
        """Returns the sink of these files, which are in folders if there are partitions."""
        return cls(shards.check(), partition_by=partition_columns(partition_by), **fields)

    def describe(self) -> str:
        return super().describe() + describe_partitions(self.partition_by)

    def column_names(self) -> tuple[str, ...] | None:
        """Returns the names of the columns; None if they are unknown."""
        return column_names_of(self.element_type if self.schema is None else self.schema)
