"""Reads and writes text files (Beam's ``apache_beam.io.textio``); also exports CSV and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

from penstock.absent import hint_at_absent_names
from penstock.coders import coders
from penstock.coders.base import Coder
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.functions.dofn import DoFn
from penstock.io.argument_checks import plain_coder
from penstock.io.csvio import ReadFromCsv, WriteToCsv
from penstock.io.files.compression import CompressionTypes
from penstock.io.files.file_readers import FindFiles
from penstock.io.files.match_files import MatchContinuously, divide_arguments
from penstock.io.files.paths import Path, add_current_folder
from penstock.io.files.shards import Shards
from penstock.io.filesystem import FileMetadata
from penstock.io.formats.text_sink import TextFileSink
from penstock.io.formats.text_source import TextSource
from penstock.io.jsonio import ReadFromJson, WriteToJson
from penstock.io.sink_transforms import FileSinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.transforms.elements.pardo import ParDo
from penstock.transforms.grouping.reshuffling import Reshuffle

if TYPE_CHECKING:
    from typing import Self

    from penstock.construction.pvalue import MainAndTagged
    from penstock.io.rejects import RejectedRecord

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


class _ReadLines(SourceTransform[str]):
    """Its `__init__` is the one of `ReadFromText`, whose `__new__` type checkers see."""

    source: TextSource
    with_filename = False

    def __init__(
        self,
        file_pattern: object = None,
        min_bundle_size: int = 0,
        compression_type: str = CompressionTypes.AUTO,
        strip_trailing_newlines: bool = True,
        coder: Coder = coders.StrUtf8Coder(),
        validate: bool = True,
        skip_header_lines: int = 0,
        delimiter: bytes | None = None,
        escapechar: bytes | None = None,
        rejects: bool = False,
        **kwargs: Any,
    ) -> None:
        source = TextSource(
            add_current_folder(file_pattern),
            compression_type,
            strip_trailing_newlines,
            plain_coder(coder, coders.StrUtf8Coder),
            skip_header_lines,
            delimiter,
            escapechar,
            self.with_filename,
            validate=validate,
        )
        super().__init__(source.check(), rejects=rejects, **kwargs)

    def infer_output_type(self, input_type: object) -> object:
        return self.source.element_type()


class ReadFromText(_ReadLines):
    r"""Reads the lines of text files, as strings (Beam's ``ReadFromText``).

    Lines end with ``\n`` or ``\r\n``. Spark reads and splits the files, and supports more compressions than Beam, by
    the suffix of the file. A byte-order mark at the beginning of a file is removed; Beam keeps it. In compressed files,
    a ``\r`` at the very end of a file is removed as well, though no ``\n`` follows it.

    Args:
        file_pattern: The path; ``*`` matches within a folder, ``**`` across, ``?`` one character, ``[ab]`` a set. A
            path without a scheme is local. As everywhere in Spark, wildcards do not match files whose name begins with
            ``_`` or ``.``.
        min_bundle_size: Ignored; Spark decides.
        compression_type: A name of ``CompressionTypes``; by default the file's name decides.
        strip_trailing_newlines: Whether line ends are removed. If not, one task reads each file as a whole.
        coder: Decodes the bytes of a line.
        validate: Whether a pattern that matches nothing is an error: for local files when the transform is applied,
            otherwise when the pipeline runs, before anything starts.
        skip_header_lines: How many lines to skip at the beginning of each file.
        delimiter: Bytes that end a record instead of a line end.
        escapechar: A byte that makes a delimiter part of the record. One task then reads each file as a whole.
        rejects: Whether there is a second output, tagged ``"rejected"``, with a `penstock.io.rejects.RejectedRecord`
            for each record that cannot be read; otherwise it is an error.
            That is a line that is not UTF-8, or that the coder does not decode.

    Raises:
        OSError: If no file matches.

    >>> ReadFromText("/logs/*.txt", validate=False).to_primitive()
    Read(source=TextSource(file_pattern='/logs/*.txt', ...))
    """

    if TYPE_CHECKING:

        @overload
        def __new__(
            cls, file_pattern: object = None, *, rejects: Literal[True], **kwargs: object
        ) -> _ReadTextWithRejects: ...

        @overload
        def __new__(
            cls,
            file_pattern: object = None,
            min_bundle_size: int = 0,
            compression_type: str = CompressionTypes.AUTO,
            strip_trailing_newlines: bool = True,
            coder: Coder = coders.StrUtf8Coder(),
            validate: bool = True,
            skip_header_lines: int = 0,
            delimiter: bytes | None = None,
            escapechar: bytes | None = None,
            rejects: bool = False,
            **kwargs: object,
        ) -> Self: ...

        def __new__(cls, *args: object, **kwargs: object) -> ReadFromText:
            """Shows checkers the outputs, by the argument `rejects`."""
            raise NotImplementedError


if TYPE_CHECKING:

    class _ReadTextWithRejects(ReadFromText):
        """Shows the two outputs of ``rejects=True`` to type checkers."""

        def expand(  # type: ignore[override]
            self, pbegin: PBegin
        ) -> MainAndTagged[str, PCollection[RejectedRecord]]: ...


class ReadFromTextWithFilename(ReadFromText):
    """Reads text files as pairs of the file name and a line (Beam's name and arguments).

    >>> ReadFromTextWithFilename("/logs/*.txt", validate=False).source.with_filename
    True
    """

    with_filename = True

    def expand(self, pbegin: PBegin) -> PCollection[tuple[str, str]]:  # type: ignore[override]
        pairs: PCollection[Any] = super().expand(pbegin)
        return pairs


class _ReadTextFiles(DoFn):
    def __init__(self, source: TextSource) -> None:
        self._source = source

    def process(self, element: FileMetadata) -> Iterator[Any]:
        yield from self._source.read_file(element.path)


class ReadAllFromText(PTransform[Any, Any]):
    """Reads the lines of the files that the elements name: paths or patterns (Beam's ``ReadAllFromText``).

    One task reads each file in Python, through `penstock.io.filesystems.FileSystems`. `ReadFromText` explains the
    arguments; the sizes of bundles and `validate` are ignored. With `with_filename`, elements are (file name, line).
    """

    DEFAULT_DESIRED_BUNDLE_SIZE = 64 * 1024 * 1024

    def __init__(
        self,
        min_bundle_size: int = 0,
        desired_bundle_size: int = DEFAULT_DESIRED_BUNDLE_SIZE,
        compression_type: str = CompressionTypes.AUTO,
        strip_trailing_newlines: bool = True,
        validate: bool = False,
        coder: Coder | None = coders.StrUtf8Coder(),
        skip_header_lines: int = 0,
        with_filename: bool = False,
        delimiter: bytes | None = None,
        escapechar: bytes | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = TextSource(
            "*",  # The elements name the files.
            compression_type,
            strip_trailing_newlines,
            plain_coder(coder, coders.StrUtf8Coder),
            skip_header_lines,
            delimiter,
            escapechar,
            with_filename,
        ).check()

    def expand(self, pcoll: Any) -> PCollection[Any]:
        files = pcoll | "Match" >> ParDo(FindFiles()) | "Spread" >> Reshuffle()
        result: PCollection[Any] = files | "Read" >> ParDo(_ReadTextFiles(self.source)).with_output_types(
            self.source.element_type()
        )
        return result


class ReadAllFromTextContinuously(ReadAllFromText):
    """Reads the lines of files that appear over time (Beam's ``ReadAllFromTextContinuously``).

    Args:
        file_pattern: The pattern that is matched again and again.
        kwargs: The arguments of `ReadAllFromText` and of `penstock.io.fileio.MatchContinuously`.
    """

    def __init__(self, file_pattern: str, **kwargs: object) -> None:
        matching, reading = divide_arguments(kwargs)
        super().__init__(**reading)
        self._match = MatchContinuously(file_pattern, **matching)

    def expand(self, pbegin: PBegin) -> PCollection[Any]:
        return (
            pbegin
            | self._match
            | "Read" >> ParDo(_ReadTextFiles(self.source)).with_output_types(self.source.element_type())
        )


class WriteToText(FileSinkTransform):
    """Writes each element as a line of text, and returns the names of the files (Beam's ``WriteToText``).

    Bytes are written unchanged, any other element as its ``str``. A file gets its final name only when it is complete.
    Files of an earlier run with the same names and the same number of shards are replaced.

    Args:
        file_path_prefix: The beginning of every file's path; a path without a scheme is local.
        file_name_suffix: The end of every file's path.
        append_trailing_newlines: Whether a line end follows each element, the header and the footer.
        num_shards: The number of files; with 0, Spark decides: one for each task with elements.
        shard_name_template: The middle of a file's name, see `penstock.io.files.shards.Shards`.
        coder: Encodes an element.
        compression_type: A name of ``CompressionTypes``; by default the suffix decides.
        header: A string at the beginning of every file.
        footer: A string at the end of every file.
        max_records_per_shard: The number of elements after which a new file begins.
        max_bytes_per_shard: The number of bytes, before compression, after which a new file begins.
        skip_if_empty: Whether an empty collection writes no file; otherwise it writes an empty one.
        triggering_frequency: The length of the windows by which an unbounded collection is written, in seconds.

    Example: ``lines | WriteToText("/out/lines", file_name_suffix=".txt")``.
    """

    def __init__(
        self,
        file_path_prefix: Path,
        file_name_suffix: Path = "",
        append_trailing_newlines: bool = True,
        num_shards: int = 0,
        shard_name_template: str | None = None,
        coder: Coder = coders.ToBytesCoder(),
        compression_type: str = CompressionTypes.AUTO,
        header: object = None,
        footer: object = None,
        *,
        max_records_per_shard: int | None = None,
        max_bytes_per_shard: int | None = None,
        skip_if_empty: bool = False,
        triggering_frequency: float | None = None,
    ) -> None:
        sink = TextFileSink(
            Shards(file_path_prefix, file_name_suffix, num_shards, shard_name_template),
            append_trailing_newlines,
            plain_coder(coder, coders.ToBytesCoder),
            compression_type,
            header,
            footer,
            max_records_per_shard,
            max_bytes_per_shard,
            skip_if_empty,
            triggering_frequency=triggering_frequency,
        )
        super().__init__(sink.check())


hint_at_absent_names(globals())
