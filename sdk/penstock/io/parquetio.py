"""Reading and writing Parquet files (Beam's ``apache_beam.io.parquetio``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from penstock.absent import hint_at_absent_names
from penstock.construction.applicable import ResultT
from penstock.io.files.file_readers import ReadAllFiles, ReadFiles
from penstock.io.files.paths import Path
from penstock.io.files.shards import Shards
from penstock.io.formats.file_formats import RecordFileSink, RecordFileSource
from penstock.io.formats.record_types import hint_of_records
from penstock.io.sink_transforms import RecordFileSinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.typehints.row_type import RowTypeConstraint

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.elements.row import Row

__all__ = [
    "ReadAllFromParquet",
    "ReadAllFromParquetBatched",
    "ReadFromParquet",
    "ReadFromParquetBatched",
    "WriteToParquet",
    "WriteToParquetBatched",
]

_ROW_GROUP_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class ParquetSource(RecordFileSource):
    """Records of Parquet files; see `ReadFromParquet`.

    >>> ParquetSource("/data/*.parquet").describe()
    'parquet /data/*.parquet'
    """

    format: ClassVar[str] = "parquet"

    elements: str = "dict"  # Or ``"row"``, or ``"table"``: a ``pyarrow.Table`` of many records.

    has_columns = True
    is_table = True

    @property
    def has_fields(self) -> bool:  # type: ignore[override]
        """True if elements are records, not tables."""
        return self.elements != "table"

    def with_declared_fields(self, row: RowTypeConstraint) -> ParquetSource:
        return super().with_declared_fields(row) if self.has_fields else self

    def why_no_stream(self) -> tuple[str, str] | None:
        if self.elements != "table":
            return None
        what = "tables of records cannot be streamed: their contents would depend on the time of reading"
        return what, "use ReadFromParquet, which reads the records"

    def known_fields(self) -> tuple[str, ...] | None:
        # A name with a dot may be a field of a record, or a column of that name.
        return None if self.columns is None or "." in "".join(self.columns) else self.columns


@dataclass(frozen=True)
class ParquetSink(RecordFileSink):
    """Records in Parquet files; see `WriteToParquet`."""

    format: ClassVar[str] = "parquet"

    codec: str = "none"
    row_group_buffer_size: int = _ROW_GROUP_BYTES
    record_batch_size: int = 1000
    use_deprecated_int96_timestamps: bool = False
    use_compliant_nested_type: bool = False
    batched: bool = False  # Whether the elements are ``pyarrow.Table`` values.


class _ReadParquet(SourceTransform[ResultT]):
    source: ParquetSource

    def __init__(
        self,
        file_pattern: object,
        validate: bool,
        columns: object,
        elements: str,
        partition_by: object = (),
        schema: object = None,
    ) -> None:
        wanted = _wanted(columns)
        source = ParquetSource.in_folders(
            file_pattern, partition_by, schema, validate=validate, columns=wanted, elements=elements
        )
        super().__init__(source)


def _wanted(columns: Any) -> tuple[str, ...] | None:
    """The columns to read; None reads all."""
    if columns is None:
        return None
    return (columns,) if isinstance(columns, str) else tuple(columns)


class ReadFromParquet(_ReadParquet[ResultT]):
    """Reads the records of Parquet files (Beam's ``ReadFromParquet``).

    Values are Python's: ``int`` for all integers, signed or unsigned, ``Decimal``, ``datetime`` (in UTC if it is
    an instant in the file, otherwise without a zone), ``timedelta``, None for null, lists and dicts for nested columns.
    Times that are INT96, as Spark and Hive write them, are instants. The types come from the footers of the files when
    the transform is applied. All transforms that read Parquet, and streams, return the same values.

    If a column has different types in files on disks or object stores, all its values have the type that can represent
    them without loss, such as ``int64`` for ``int32`` and ``int64``. If no type can, as for ``int64`` and ``double``,
    the column is refused. Nanoseconds, also in durations, are truncated to microseconds, because Python has nothing
    finer. Column names may contain dots, and may differ only in case.

    Args:
        file_pattern: The path, with wildcards as in ``ReadFromText``.
        min_bundle_size: Ignored; Spark decides.
        validate: Whether a pattern that matches nothing is an error.
        columns: The columns to read; ``a`` includes the field ``a.b``. A name with a dot is a column of that name if
            there is one.
        as_rows: Whether the elements are ``Row`` values, not dicts.
        partition_by: The columns whose values are in the names of folders, as `WriteToParquet` writes them. The path
            is then the folder of the table, perhaps with a pattern of the files' names. These columns come last.
        schema: A ``pyarrow.Schema`` or a type of rows that has the types of the columns of `partition_by`, which are
            strings, integers, booleans or dates; without it, they are strings.

    Raises:
        OSError: If no file matches.
        ValueError: If `schema` lacks a column of `partition_by`. When it runs: for a null where the type of
            ``with_output_types`` excludes None.

    >>> ReadFromParquet("/data/*", validate=False, columns=["a"]).source.describe()
    'parquet /data/* [a]'
    >>> ReadFromParquet("/visits", validate=False, partition_by=("country", "day")).source.describe()
    'parquet /visits/country=*/day=*/*'
    """

    @overload
    def __init__(
        self: ReadFromParquet[Row],
        file_pattern: object = None,
        min_bundle_size: int = 0,
        validate: bool = True,
        columns: object = None,
        *,
        as_rows: Literal[True],
        partition_by: object = (),
        schema: object = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        file_pattern: object = None,
        min_bundle_size: int = 0,
        validate: bool = True,
        columns: object = None,
        as_rows: bool = False,
        *,
        partition_by: object = (),
        schema: object = None,
    ) -> None: ...

    def __init__(
        self,
        file_pattern: object = None,
        min_bundle_size: int = 0,
        validate: bool = True,
        columns: object = None,
        as_rows: bool = False,
        *,
        partition_by: object = (),
        schema: object = None,
    ) -> None:
        elements = "row" if as_rows else "dict"
        super().__init__(file_pattern, validate, columns, elements, partition_by, schema)

    def infer_output_type(self, input_type: object) -> object:
        return hint_of_records(self.source.elements == "row")


class ReadFromParquetBatched(_ReadParquet[Any]):
    """Reads the records of Parquet files, many at a time, as ``pyarrow.Table`` values (Beam's name).

    A table is a batch of records of Spark; in Beam it is a row group. The columns have the types of Python
    values: nanoseconds are truncated to microseconds, and lists of one length are plain lists. See
    `ReadFromParquet` for the arguments.
    """

    def __init__(
        self,
        file_pattern: object = None,
        min_bundle_size: int = 0,
        validate: bool = True,
        columns: object = None,
        *,
        partition_by: object = (),
        schema: object = None,
    ) -> None:
        super().__init__(file_pattern, validate, columns, "table", partition_by, schema)


class ReadAllFromParquetBatched(ReadAllFiles):
    """Reads the files that the elements name, as one ``pyarrow.Table`` for each row group (Beam's name).

    Args:
        min_bundle_size: Ignored.
        desired_bundle_size: Ignored.
        columns: The columns to read.
        with_filename: Whether the elements are (file name, table).
        label: The name of the step that reads.
    """

    DEFAULT_DESIRED_BUNDLE_SIZE = _ROW_GROUP_BYTES
    _as_tables = True

    def __init__(
        self,
        min_bundle_size: int = 0,
        desired_bundle_size: int = DEFAULT_DESIRED_BUNDLE_SIZE,
        columns: object = None,
        with_filename: bool = False,
        label: str = "ReadAllFiles",
    ) -> None:
        read = ReadFiles(ParquetSource, with_filename, columns=_wanted(columns), as_tables=self._as_tables)
        super().__init__(label, read)


class ReadAllFromParquet(ReadAllFromParquetBatched):
    """Reads the Parquet files that the elements name, as dicts (Beam's ``ReadAllFromParquet``).

    The arguments are those of `ReadAllFromParquetBatched`.

    Example: ``pipeline | Create(["/scores/*.parquet"]) | ReadAllFromParquet()``.
    """

    _as_tables = False

    def __init__(self, with_filename: bool = False, **kwargs: Any) -> None:
        super().__init__(with_filename=with_filename, **kwargs)


class WriteToParquet(RecordFileSinkTransform):
    """Writes dicts, or rows of a known type, to Parquet files, and returns the files' names (Beam's
    ``WriteToParquet``).

    Args:
        file_path_prefix: The beginning of every file's path.
        schema: A ``pyarrow.Schema``; None takes it from the element type, which must then be a type of rows.
        row_group_buffer_size: Bytes in memory after which a row group is written.
        record_batch_size: The number of records that are collected before they become columns.
        codec: The compression, by pyarrow's name.
        use_deprecated_int96_timestamps: Whether timestamps are written as INT96, which are read as instants.
        use_compliant_nested_type: Whether lists have the names of the Parquet specification.
        file_name_suffix: The end of every file's path.
        num_shards: The number of files; with 0, Spark decides.
        shard_name_template: The middle of a file's name.
        mime_type: Ignored; no supported file system stores it.
        triggering_frequency: The length of the windows by which an unbounded collection is written, in seconds.
        partition_by: The columns whose values divide the files into folders such as
            ``country=DE/day=2026-01-02`` below the folder of the prefix, as Hive and Spark name them. The files do not
            have these columns. They contain strings, integers, booleans or dates; None becomes
            ``__HIVE_DEFAULT_PARTITION__``. `num_shards` is then the maximum number of files in a folder. A run without
            elements writes no file.

    Raises:
        ValueError: When it is applied: if no columns are known, if the elements lack a column of `partition_by`, or if
            no other column is left. When the pipeline starts: if such a column has another type. When it runs: for an
            empty string in such a column, which readers would read as None.

    Example: ``scores | WriteToParquet("/out/scores", pyarrow.schema([("team", pyarrow.string())]))``.
    """

    _without_schema = "A schema is required to write non-schema'd data."

    def __init__(
        self,
        file_path_prefix: Path,
        schema: pa.Schema = None,
        row_group_buffer_size: int = 64 * 1024 * 1024,
        record_batch_size: int = 1000,
        codec: str = "none",
        use_deprecated_int96_timestamps: bool = False,
        use_compliant_nested_type: bool = False,
        file_name_suffix: Path = "",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        mime_type: str = "application/x-parquet",
        triggering_frequency: float | None = None,
        *,
        partition_by: object = (),
    ) -> None:
        sink = ParquetSink.in_folders(
            Shards(file_path_prefix, file_name_suffix, num_shards, shard_name_template),
            partition_by,
            schema=schema,
            codec=codec,
            row_group_buffer_size=row_group_buffer_size,
            record_batch_size=record_batch_size,
            use_deprecated_int96_timestamps=use_deprecated_int96_timestamps,
            use_compliant_nested_type=use_compliant_nested_type,
            triggering_frequency=triggering_frequency,
        )
        super().__init__(sink)


class WriteToParquetBatched(RecordFileSinkTransform):
    """Writes ``pyarrow.Table`` values to Parquet files, and returns the files' names (Beam's name).

    The arguments are those of `WriteToParquet`, without the sizes of buffers.
    """

    def __init__(
        self,
        file_path_prefix: Path,
        schema: pa.Schema = None,
        codec: str = "none",
        use_deprecated_int96_timestamps: bool = False,
        use_compliant_nested_type: bool = False,
        file_name_suffix: Path = "",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        mime_type: str = "application/x-parquet",
        triggering_frequency: float | None = None,
        *,
        partition_by: object = (),
    ) -> None:
        sink = ParquetSink.in_folders(
            Shards(file_path_prefix, file_name_suffix, num_shards, shard_name_template),
            partition_by,
            schema=schema,
            codec=codec,
            use_deprecated_int96_timestamps=use_deprecated_int96_timestamps,
            use_compliant_nested_type=use_compliant_nested_type,
            batched=True,
            triggering_frequency=triggering_frequency,
        )
        super().__init__(sink)

    def _takes_records(self) -> bool:
        return False


hint_at_absent_names(globals())
