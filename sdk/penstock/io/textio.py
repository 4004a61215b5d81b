"""Reading and writing text files (Beam's ``apache_beam.io.textio``); CSV and JSON are here by name too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.coders import coders
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.functions.dofn import DoFn
from penstock.io import text_sink, text_source
from penstock.io.compression import CompressionTypes
from penstock.io.csvio import ReadFromCsv, WriteToCsv
from penstock.io.fileio import MatchContinuously
from penstock.io.filesystem import FileMetadata
from penstock.io.jsonio import ReadFromJson, WriteToJson
from penstock.io.paths import files_of, with_folder
from penstock.io.primitive import SinkTransform, SourceTransform
from penstock.io.text_sink import Shards, TextSink
from penstock.io.text_source import TextSource
from penstock.transforms.pardo import ParDo
from penstock.transforms.reshuffling import Reshuffle

__all__ = [
    "ReadAllFromText",
    "ReadAllFromTextContinuously",
    "ReadFromCsv",
    "ReadFromJson",
    "ReadFromText",
    "ReadFromTextWithFilename",
    "WriteToCsv",
    "WriteToJson",
    "WriteToText",
]


class ReadFromText(SourceTransform[str]):
    r"""The lines of text files, as strings (Beam's ``ReadFromText``).

    Lines end with ``\n`` or ``\r\n``. Spark reads and splits the files, and knows more compressions by their
    suffix than Beam; a byte-order mark at the beginning of a file is taken off.

    Args:
        file_pattern: The path; ``*`` matches within a folder, ``**`` across, ``?`` one character, ``[ab]`` a
            set. A path without a scheme is a local one. Files whose name begins with ``_`` or ``.`` are left
            out of what a wildcard matches, as everywhere in Spark.
        min_bundle_size: Taken for Beam's sake; Spark decides.
        compression_type: A name of ``CompressionTypes``; by default the file's name decides.
        strip_trailing_newlines: Whether line ends are taken off. If not, a file is read as a whole by one
            task.
        coder: What decodes the bytes of a line.
        validate: Whether a pattern that matches nothing is an error: for local files here, otherwise when the
            pipeline runs, before anything starts.
        skip_header_lines: How many lines to leave out at the beginning of each file.
        delimiter: Bytes that end a record instead of a line end.
        escapechar: A byte that makes a delimiter part of the record. A file is then read as a whole by one
            task.

    Raises:
        OSError: No file matches.
        TypeError: The pattern or the compression is of another type.
        ValueError: The delimiter, the escape or the number of header lines cannot be.

    >>> ReadFromText("/logs/*.txt", validate=False).to_primitive()
    Read(source=TextSource(file_pattern='/logs/*.txt', ...))
    """

    source: TextSource
    with_filename = False

    def __init__(
        self,
        file_pattern: Any = None,
        min_bundle_size: int = 0,
        compression_type: str = CompressionTypes.AUTO,
        strip_trailing_newlines: bool = True,
        coder: Any = coders.StrUtf8Coder(),
        validate: bool = True,
        skip_header_lines: int = 0,
        delimiter: bytes | None = None,
        escapechar: bytes | None = None,
        **kwargs: Any,
    ) -> None:
        source = TextSource(
            with_folder(file_pattern),
            min_bundle_size,
            compression_type,
            strip_trailing_newlines,
            text_source.plain_coder(coder),
            validate,
            skip_header_lines,
            delimiter,
            escapechar,
            self.with_filename,
        )
        super().__init__(source.check(), **kwargs)

    def infer_output_type(self, input_type: Any) -> Any:
        """Text, or what the coder says it decodes to."""
        return self.source.element_type()


class ReadFromTextWithFilename(ReadFromText):
    """The lines of text files with the file they are from: (file name, line) (Beam's name, and its
    arguments).

    >>> ReadFromTextWithFilename("/logs/*.txt", validate=False).source.with_filename
    True
    """

    with_filename = True

    def expand(self, pbegin: Any) -> PCollection[tuple[str, str]]:  # type: ignore[override]
        """The new PCollection."""
        pairs: PCollection[Any] = super().expand(pbegin)
        return pairs


class _ReadTextFiles(DoFn):
    """Reads each file that an element names."""

    def __init__(self, source: TextSource) -> None:
        self._source = source

    def process(self, element: FileMetadata) -> Iterator[Any]:
        yield from self._source.read_file(element.path)


class _MatchTextFiles(DoFn):
    """The files that a pattern, or a record of a file, stands for."""

    def process(self, element: str | FileMetadata) -> list[FileMetadata]:
        return files_of(element)


class ReadAllFromText(PTransform[Any, Any]):
    """The lines of the files that the elements name: paths or patterns (Beam's ``ReadAllFromText``).

    The files are read in Python, one file by one task, through `penstock.io.filesystems.FileSystems`.

    Args:
        min_bundle_size: Taken for Beam's sake.
        desired_bundle_size: Taken for Beam's sake.
        compression_type: A name of ``CompressionTypes``.
        strip_trailing_newlines: Whether line ends are taken off.
        validate: Taken for Beam's sake: there is nothing to look at before the pipeline runs.
        coder: What decodes the bytes of a line.
        skip_header_lines: How many lines to leave out at the beginning of each file.
        with_filename: Whether the elements are (file name, line).
        delimiter: Bytes that end a record instead of a line end.
        escapechar: A byte that makes a delimiter part of the record.
    """

    DEFAULT_DESIRED_BUNDLE_SIZE = 64 * 1024 * 1024

    def __init__(
        self,
        min_bundle_size: int = 0,
        desired_bundle_size: int = DEFAULT_DESIRED_BUNDLE_SIZE,
        compression_type: str = CompressionTypes.AUTO,
        strip_trailing_newlines: bool = True,
        validate: bool = False,
        coder: Any = coders.StrUtf8Coder(),
        skip_header_lines: int = 0,
        with_filename: bool = False,
        delimiter: bytes | None = None,
        escapechar: bytes | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = TextSource(
            "",
            min_bundle_size,
            compression_type,
            strip_trailing_newlines,
            text_source.plain_coder(coder),
            False,
            skip_header_lines,
            delimiter,
            escapechar,
            with_filename,
        ).check()

    def expand(self, pcoll: Any) -> PCollection[Any]:
        """Match, spread, read."""
        files = pcoll | "Match" >> ParDo(_MatchTextFiles()) | "Spread" >> Reshuffle()
        result: PCollection[Any] = files | "Read" >> ParDo(_ReadTextFiles(self.source)).with_output_types(
            self.source.element_type()
        )
        return result


class ReadAllFromTextContinuously(ReadAllFromText):
    """The lines of files that appear over time (Beam's ``ReadAllFromTextContinuously``).

    Args:
        file_pattern: The pattern that is looked at again and again.
        kwargs: The arguments of `ReadAllFromText` and of `penstock.io.fileio.MatchContinuously`.
    """

    _FOR_MATCH = frozenset(
        [
            "interval",
            "has_deduplication",
            "start_timestamp",
            "stop_timestamp",
            "match_updated_files",
            "apply_windowing",
        ]
    )

    def __init__(self, file_pattern: str, **kwargs: Any) -> None:
        super().__init__(**{name: value for name, value in kwargs.items() if name not in self._FOR_MATCH})
        self._file_pattern = file_pattern
        self._for_match = {name: value for name, value in kwargs.items() if name in self._FOR_MATCH}

    def expand(self, pbegin: Any) -> Any:
        """Match again and again, read."""
        files = pbegin | MatchContinuously(self._file_pattern, **self._for_match)
        return files | "Read" >> ParDo(_ReadTextFiles(self.source)).with_output_types(
            self.source.element_type()
        )


class WriteToText(SinkTransform[str]):
    """Writes each element as a line of text (Beam's ``WriteToText``); gives the names of the files.

    An element that is bytes is written as it is, any other as ``str`` gives it. A file has its final name
    only when it is whole. Files of an earlier run with the same names and the same number of shards are
    replaced.

    Args:
        file_path_prefix: What every file's path begins with; a path without a scheme is a local one.
        file_name_suffix: What it ends with.
        append_trailing_newlines: Whether a line end follows each element, the header and the footer.
        num_shards: How many files; 0 leaves it to Spark: one for each task that has elements.
        shard_name_template: The middle of a file's name, see `penstock.io.text_sink.Shards`.
        coder: What encodes an element.
        compression_type: A name of ``CompressionTypes``; by default the suffix decides.
        header: A text at the beginning of every file.
        footer: A text at the end of every file.
        max_records_per_shard: After how many elements to begin another file.
        max_bytes_per_shard: After how many bytes to begin another file.
        skip_if_empty: Whether an empty collection writes no file.
        triggering_frequency: The length of the windows whose files an unbounded collection gives, in seconds.

    Raises:
        TypeError: A path or the compression is of another type.
        ValueError: The template has no ``S``.
    """

    def __init__(
        self,
        file_path_prefix: Any,
        file_name_suffix: Any = "",
        append_trailing_newlines: bool = True,
        num_shards: int = 0,
        shard_name_template: str | None = None,
        coder: Any = coders.ToBytesCoder(),
        compression_type: str = CompressionTypes.AUTO,
        header: Any = None,
        footer: Any = None,
        *,
        max_records_per_shard: int | None = None,
        max_bytes_per_shard: int | None = None,
        skip_if_empty: bool = False,
        triggering_frequency: float | None = None,
    ) -> None:
        sink = TextSink(
            Shards(file_path_prefix, file_name_suffix, num_shards, shard_name_template),
            append_trailing_newlines,
            text_sink.plain_coder(coder),
            compression_type,
            header,
            footer,
            max_records_per_shard,
            max_bytes_per_shard,
            skip_if_empty,
            triggering_frequency,
        )
        super().__init__(sink.check())

    def infer_output_type(self, input_type: Any) -> Any:
        """The names of the files."""
        return str
