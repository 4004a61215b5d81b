"""Reading and writing TFRecord files (Beam's ``apache_beam.io.tfrecordio``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.coders import coders
from penstock.coders.base import Coder
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.io.argument_checks import plain_coder
from penstock.io.files.compression import CompressionTypes, check_compression
from penstock.io.files.file_readers import FindFiles, ReadFiles
from penstock.io.files.paths import Path, check_path
from penstock.io.files.shards import Shards
from penstock.io.formats.file_formats import FileSource, ShardedSink
from penstock.io.formats.text_source import type_hint_of
from penstock.io.sink_transforms import FileSinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.transforms.elements.pardo import ParDo
from penstock.transforms.grouping.reshuffling import Reshuffle
from penstock.typehints import typehints

__all__ = ["ReadAllFromTFRecord", "ReadFromTFRecord", "WriteToTFRecord"]


@dataclass(frozen=True)
class TFRecordSource(FileSource):
    """Records of TFRecord files; see `ReadFromTFRecord`.

    >>> TFRecordSource("/data/*.tfrecord").describe()
    'tfrecord /data/*.tfrecord'
    """

    format: ClassVar[str] = "tfrecord"

    coder: Coder | None = None  # None leaves the bytes unchanged.
    compression_type: str = CompressionTypes.AUTO


@dataclass(frozen=True)
class TFRecordSink(ShardedSink):
    """Records in TFRecord files; see `WriteToTFRecord`."""

    format: ClassVar[str] = "tfrecord"

    coder: Coder | None = None  # None takes only bytes, unchanged.
    compression_type: str = CompressionTypes.AUTO


def _type_of(coder: Coder | None) -> object:
    return bytes if coder is None else type_hint_of(coder)


class ReadFromTFRecord(SourceTransform[Any]):
    """Reads the records of TFRecord files, as bytes (Beam's ``ReadFromTFRecord``).

    A task reads whole files, because only the previous record says where a record begins. Checksums are verified.
    Install ``penstock[tfrecord]``.

    Args:
        file_pattern: The path, with wildcards as in ``ReadFromText``.
        coder: Decodes the bytes of a record.
        compression_type: A name of ``CompressionTypes``; by default the file's name decides.
        validate: Whether a pattern that matches nothing is an error.
        rejects: Whether there is a second output, tagged ``"rejected"``, with a `penstock.io.rejects.RejectedRecord`
            for each file that cannot be read; otherwise it is an error.

    Raises:
        OSError: If no file matches.
        ModuleNotFoundError: When the pipeline starts, if ``google-crc32c`` is not installed.
        ValueError: When the pipeline runs, if a file is damaged; the error names the file, and the byte where the
            damaged record begins.

    >>> ReadFromTFRecord("/data/*", validate=False).source.describe()
    'tfrecord /data/*'
    """

    source: TFRecordSource

    def __init__(
        self,
        file_pattern: Path,
        coder: Coder = coders.BytesCoder(),
        compression_type: str = CompressionTypes.AUTO,
        validate: bool = True,
        *,
        rejects: bool = False,
    ) -> None:
        check_path(file_pattern, "file_pattern")
        check_compression(compression_type)
        plain = plain_coder(coder, coders.BytesCoder)
        source = TFRecordSource(file_pattern, plain, compression_type, validate=validate)
        super().__init__(source, rejects=rejects)

    def infer_output_type(self, input_type: object) -> object:
        return _type_of(self.source.coder)


class ReadAllFromTFRecord(PTransform[Any, Any]):
    """Reads the TFRecord files that the elements name: paths or patterns (Beam's ``ReadAllFromTFRecord``).

    A pattern may match nothing. Install ``penstock[tfrecord]``.

    Args:
        coder: Decodes the bytes of a record.
        compression_type: A name of ``CompressionTypes``; by default a file's name decides.
        with_filename: Whether the elements are (file name, record).
    """

    def __init__(
        self,
        coder: Coder = coders.BytesCoder(),
        compression_type: str = CompressionTypes.AUTO,
        with_filename: bool = False,
    ) -> None:
        super().__init__()
        plain = plain_coder(coder, coders.BytesCoder)
        record = _type_of(plain)
        self._element_type = typehints.KV[str, record] if with_filename else record
        self._read = ReadFiles(
            TFRecordSource,
            with_filename,
            compression_type=check_compression(compression_type),
            coder=plain,
        )

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        files = pcoll | "Match" >> ParDo(FindFiles()) | "Spread" >> Reshuffle()
        return files | "ReadAllFiles" >> ParDo(self._read).with_output_types(self._element_type)


class WriteToTFRecord(FileSinkTransform):
    """Writes elements to TFRecord files, and returns the files' names (Beam's ``WriteToTFRecord``).

    An element must be bytes, unless `coder` encodes it. Install ``penstock[tfrecord]``.

    Args:
        file_path_prefix: The beginning of every file's path; a path on a disk that all workers share.
        coder: Encodes an element.
        file_name_suffix: The end of every file's path.
        num_shards: The number of files; with 0, Spark decides.
        shard_name_template: The middle of a file's name, see `penstock.io.files.shards.Shards`.
        compression_type: A name of ``CompressionTypes``; by default the end of the path decides.
        triggering_frequency: The length of the windows by which an unbounded collection is written, in seconds.

    >>> WriteToTFRecord("/out/scores", file_name_suffix=".gz").sink.describe()
    'tfrecord /out/scores-SSSSS-of-NNNNN.gz'
    """

    sink: TFRecordSink

    def __init__(
        self,
        file_path_prefix: Path,
        coder: Coder = coders.BytesCoder(),
        file_name_suffix: Path = "",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        compression_type: str = CompressionTypes.AUTO,
        triggering_frequency: float | None = None,
    ) -> None:
        shards = Shards(file_path_prefix, file_name_suffix, num_shards, shard_name_template).check()
        check_compression(compression_type)
        plain = plain_coder(coder, coders.BytesCoder)
        super().__init__(
            TFRecordSink(shards, plain, compression_type, triggering_frequency=triggering_frequency)
        )
