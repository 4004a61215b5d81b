"""Reading and writing Avro files (Beam's ``apache_beam.io.avroio``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.absent import hint_at_absent_names
from penstock.checks.similar_names import hint_at_name
from penstock.construction.pvalue import PBegin, PCollection
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.io.files.file_readers import ReadAllFiles, ReadFiles
from penstock.io.files.match_files import MatchContinuously, divide_arguments
from penstock.io.files.paths import Path
from penstock.io.files.shards import Shards
from penstock.io.formats.file_formats import RecordFileSink, RecordFileSource
from penstock.io.sink_transforms import RecordFileSinkTransform
from penstock.io.source_transforms import SourceTransform

__all__ = ["ReadAllFromAvro", "ReadAllFromAvroContinuously", "ReadFromAvro", "WriteToAvro"]

_CODECS = ("null", "deflate", "bzip2", "snappy", "zstandard", "lz4", "xz")


@dataclass(frozen=True)
class AvroSource(RecordFileSource):
    """Records of Avro files; see `ReadFromAvro`.

    >>> AvroSource("/data/*.avro").describe()
    'avro /data/*.avro'
    """

    format: ClassVar[str] = "avro"

    as_rows: bool = False


@dataclass(frozen=True)
class AvroSink(RecordFileSink):
    """Records in Avro files; see `WriteToAvro`."""

    format: ClassVar[str] = "avro"

    codec: str = "deflate"


class ReadFromAvro(SourceTransform[Any]):
    """Reads the records of Avro files (Beam's ``ReadFromAvro``).

    Records are dicts, with the Python values that ``fastavro`` makes of Avro's logical types; values that are not
    records become elements unchanged. Each task reads a part of the files' blocks. Install ``penstock[avro]``.

    Args:
        file_pattern: The path, with wildcards as in ``ReadFromText``.
        min_bundle_size: Ignored; Spark decides.
        validate: Whether a pattern that matches nothing is an error.
        use_fastavro: Ignored, as in Beam.
        as_rows: Whether records are ``Row`` values, not dicts, at any depth. Another value becomes the field ``record``
            of a row.
        partition_by: The columns whose values are in the names of folders, as `WriteToAvro` writes them. The path is
            then the folder of the table, perhaps with a pattern of the files' names. These columns come last.
        schema: A ``pyarrow.Schema`` or a type of rows that has the types of the columns of `partition_by`, which are
            strings, integers, booleans or dates; without it, they are strings. The other columns do not need it.
        rejects: Whether there is a second output, tagged ``"rejected"``, with a `penstock.io.rejects.RejectedRecord`
            for each block or file that cannot be read, and each record with a null where the type of
            ``with_output_types`` excludes None; otherwise it is an error.

    Raises:
        OSError: If no file matches.
        ValueError: If `schema` lacks a column of `partition_by`.
        ModuleNotFoundError: When the pipeline starts, if ``fastavro`` is not installed.

    >>> ReadFromAvro("/data/*", validate=False).source.describe()
    'avro /data/*'
    >>> ReadFromAvro("/visits", validate=False, partition_by=("country", "day")).source.describe()
    'avro /visits/country=*/day=*/*'
    """

    source: AvroSource

    def __init__(
        self,
        file_pattern: object = None,
        min_bundle_size: int = 0,
        validate: bool = True,
        use_fastavro: bool = True,
        as_rows: bool = False,
        *,
        partition_by: object = (),
        schema: object = None,
        rejects: bool = False,
    ) -> None:
        source = AvroSource.in_folders(file_pattern, partition_by, schema, validate=validate, as_rows=as_rows)
        super().__init__(source, rejects=rejects)

    def infer_output_type(self, input_type: object) -> object:
        return Row if self.source.as_rows else Any


class ReadAllFromAvro(ReadAllFiles):
    """Reads the Avro files that the elements name (Beam's ``ReadAllFromAvro``).

    Args:
        min_bundle_size: Ignored.
        desired_bundle_size: Ignored.
        use_fastavro: Ignored, as in Beam.
        with_filename: Whether the elements are (file name, record).
        label: The name of the step that reads.
    """

    DEFAULT_DESIRED_BUNDLE_SIZE = 64 * 1024 * 1024

    def __init__(
        self,
        min_bundle_size: int = 0,
        desired_bundle_size: int = DEFAULT_DESIRED_BUNDLE_SIZE,
        use_fastavro: bool = True,
        with_filename: bool = False,
        label: str = "ReadAllFiles",
    ) -> None:
        super().__init__(label, ReadFiles(AvroSource, with_filename))


class ReadAllFromAvroContinuously(ReadAllFromAvro):
    """Reads the records of Avro files that appear over time (Beam's ``ReadAllFromAvroContinuously``).

    Args:
        file_pattern: The pattern that is matched again and again.
        label: The name of the step that reads.
        kwargs: The arguments of `ReadAllFromAvro` and of `penstock.io.fileio.MatchContinuously`.
    """

    def __init__(self, file_pattern: str, label: str = "ReadAllFilesContinuously", **kwargs: object) -> None:
        matching, reading = divide_arguments(kwargs)
        super().__init__(label=label, **reading)
        self._match = MatchContinuously(file_pattern, **matching)

    def expand(self, pbegin: PBegin) -> PCollection[Any]:
        return pbegin | self._match | self._read


class WriteToAvro(RecordFileSinkTransform):
    """Writes records to Avro files, and returns the files' names (Beam's ``WriteToAvro``).

    Elements are dicts, or rows of a known type; with a schema that is not a record, they are values of its type.
    Install ``penstock[avro]``.

    Args:
        file_path_prefix: The beginning of every file's path; a path on a disk that all workers share.
        schema: The Avro schema, as Python values; None takes it from the element type, which must then be a type of
            rows.
        codec: The compression of blocks: ``"null"``, ``"deflate"``, ``"bzip2"`` or ``"xz"``; ``"snappy"``,
            ``"zstandard"`` and ``"lz4"`` need packages that ``fastavro`` names.
        file_name_suffix: The end of every file's path.
        num_shards: The number of files; with 0, Spark decides.
        shard_name_template: The middle of a file's name.
        mime_type: Ignored; no supported file system stores it.
        use_fastavro: Ignored, as in Beam.
        triggering_frequency: The length of the windows by which an unbounded collection is written, in seconds.
        partition_by: The columns whose values divide the files into folders, as in ``WriteToParquet``. The elements
            must be records.

    Raises:
        ValueError: For an unknown codec; and for columns of `partition_by`, as in ``WriteToParquet``.

    >>> WriteToAvro("/out/scores", {"type": "long"}, codec="zip")
    Traceback (most recent call last):
    ...
    ValueError: Avro has no codec 'zip'
      at ...
      hint: did you mean 'bzip2'?
    """

    sink: AvroSink
    _without_schema = "An explicit schema is required to write non-schema'd PCollections."
    _example_of_schema = "schema={'type': 'record', ...}"
    _hint_of_columns = "pass the schema of a record, {'type': 'record', ...}"

    def __init__(
        self,
        file_path_prefix: Path,
        schema: object = None,
        codec: str = "deflate",
        file_name_suffix: Path = "",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        mime_type: str = "application/x-avro",
        use_fastavro: bool = True,
        triggering_frequency: float | None = None,
        *,
        partition_by: object = (),
    ) -> None:
        if codec not in _CODECS:
            what = f"Avro has no codec {codec!r}"
            raise refusal(
                ValueError, what, hint=hint_at_name(str(codec), _CODECS, f"use one of {', '.join(_CODECS)}")
            )
        sink = AvroSink.in_folders(
            Shards(file_path_prefix, file_name_suffix, num_shards, shard_name_template),
            partition_by,
            schema=schema or None,
            codec=codec,
            triggering_frequency=triggering_frequency,
        )
        super().__init__(sink)


hint_at_absent_names(globals())
