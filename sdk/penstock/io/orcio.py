"""Reading and writing ORC files (penstock's own; the arguments are those of `penstock.io.parquetio`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.checks.similar_names import hint_at_name
from penstock.error import refusal
from penstock.io.argument_checks import check_column_names
from penstock.io.files.file_readers import ReadAllFiles, ReadFiles
from penstock.io.files.paths import Path
from penstock.io.files.shards import Shards
from penstock.io.formats.file_formats import RecordFileSink, RecordFileSource
from penstock.io.formats.record_types import hint_of_records
from penstock.io.sink_transforms import RecordFileSinkTransform
from penstock.io.source_transforms import SourceTransform

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ReadAllFromOrc", "ReadFromOrc", "WriteToOrc"]

_CODECS = ("none", "zlib", "snappy", "lz4", "zstd")
_STRIPE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class OrcSource(RecordFileSource):
    """Records of ORC files; see `ReadFromOrc`.

    >>> OrcSource("/data/*.orc").describe()
    'orc /data/*.orc'
    """

    format: ClassVar[str] = "orc"

    as_rows: bool = False

    has_fields = True
    has_columns = True


@dataclass(frozen=True)
class OrcSink(RecordFileSink):
    """Records in ORC files; see `WriteToOrc`."""

    format: ClassVar[str] = "orc"

    codec: str = "none"
    stripe_size: int = _STRIPE_BYTES


class ReadFromOrc(SourceTransform[Any]):
    """Reads the records of ORC files (penstock's own).

    Values are the Python values that ``pyarrow`` makes of the columns: lists and dicts for nested columns, lists of
    pairs for maps, ``Decimal``, ``datetime`` (in UTC if it is an instant in the file), and None for null. Each task
    reads some stripes of the files. A column that only some files have is None in the others.

    Args:
        file_pattern: The path, with wildcards as in ``ReadFromText``.
        min_bundle_size: Ignored; Spark decides.
        validate: Whether a pattern that matches nothing is an error.
        columns: The columns to read; None reads all.
        as_rows: Whether the elements are ``Row`` values, not dicts.
        partition_by: The columns whose values are in the names of folders, as `WriteToOrc` writes them. The path is
            then the folder of the table, perhaps with a pattern of the files' names. These columns come last.
        schema: A ``pyarrow.Schema`` or a type of rows that has the types of the columns of `partition_by`, which are
            strings, integers, booleans or dates; without it, they are strings.
        rejects: Whether there is a second output, tagged ``"rejected"``, with a `penstock.io.rejects.RejectedRecord`
            for each file that cannot be read, and each record with a null where the type of ``with_output_types``
            excludes None; otherwise it is an error.

    Raises:
        OSError: If no file matches.
        ValueError: If `schema` lacks a column of `partition_by`. When the pipeline runs: if a file is damaged.

    >>> ReadFromOrc("/data/*", validate=False, columns=["a"]).source.describe()
    'orc /data/* [a]'
    """

    source: OrcSource

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
        rejects: bool = False,
    ) -> None:
        wanted = None if columns is None else check_column_names("columns", columns)
        source = OrcSource.in_folders(
            file_pattern, partition_by, schema, validate=validate, columns=wanted, as_rows=as_rows
        )
        super().__init__(source, rejects=rejects)

    def infer_output_type(self, input_type: object) -> object:
        return hint_of_records(self.source.as_rows)


class ReadAllFromOrc(ReadAllFiles):
    """Reads the ORC files that the elements name, as dicts (penstock's own).

    Args:
        with_filename: Whether the elements are (file name, record).
        columns: The columns to read; None reads all.
        label: The name of the step that reads.
    """

    def __init__(
        self, with_filename: bool = False, columns: object = None, label: str = "ReadAllFiles"
    ) -> None:
        wanted = None if columns is None else check_column_names("columns", columns)
        super().__init__(label, ReadFiles(OrcSource, with_filename, columns=wanted))


class WriteToOrc(RecordFileSinkTransform):
    """Writes dicts, or rows of a known type, to ORC files, and returns the files' names (penstock's own).

    Args:
        file_path_prefix: The beginning of every file's path; a path on a disk that all workers share, or the URL of an
            object store that Spark cannot access itself.
        schema: A ``pyarrow.Schema``; None takes it from the element type, which must then be a type of rows.
        stripe_size: Bytes in memory after which a stripe is written.
        codec: The compression: ``"none"``, ``"zlib"``, ``"snappy"``, ``"lz4"`` or ``"zstd"``.
        file_name_suffix: The end of every file's path.
        num_shards: The number of files; with 0, Spark decides.
        shard_name_template: The middle of a file's name.
        mime_type: Ignored; no supported file system stores it.
        triggering_frequency: The length of the windows by which an unbounded collection is written, in seconds.
        partition_by: The columns whose values divide the files into folders, as in ``WriteToParquet``.

    Raises:
        ValueError: For an unknown codec. When it is applied: if no columns are known. When the pipeline
            starts: if ORC has no type for a column.
        UnsupportedByRunner: When the pipeline starts, for a path that only Hadoop's file systems reach.

    >>> WriteToOrc("/out/scores", codec="gzip")
    Traceback (most recent call last):
    ...
    ValueError: ORC has no codec 'gzip'
      at ...
      hint: use one of none, zlib, snappy, lz4, zstd
    """

    sink: OrcSink
    _without_schema = "WriteToOrc does not know the columns"

    def __init__(
        self,
        file_path_prefix: Path,
        schema: pa.Schema = None,
        stripe_size: int = 64 * 1024 * 1024,
        codec: str = "none",
        file_name_suffix: Path = "",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        mime_type: str = "application/x-orc",
        triggering_frequency: float | None = None,
        *,
        partition_by: object = (),
    ) -> None:
        if codec not in _CODECS:
            what = f"ORC has no codec {codec!r}"
            raise refusal(
                ValueError, what, hint=hint_at_name(str(codec), _CODECS, f"use one of {', '.join(_CODECS)}")
            )
        sink = OrcSink.in_folders(
            Shards(file_path_prefix, file_name_suffix, num_shards, shard_name_template),
            partition_by,
            schema=schema,
            codec=codec,
            stripe_size=stripe_size,
            triggering_frequency=triggering_frequency,
        )
        super().__init__(sink)
