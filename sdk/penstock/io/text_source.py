"""Text files as a source: what ``ReadFromText`` hands to the runner, and how one file is read in Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.io.compression import CompressionTypes, check_compression
from penstock.io.filesystems import FileSystems
from penstock.io.paths import Path, check_path
from penstock.io.records import check_delimiters, records
from penstock.io.streams import Streamable
from penstock.typehints import typehints

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class TextSource(Streamable):
    """Lines of text files; the arguments of Beam's ``ReadFromText``.

    Attributes:
        file_pattern: The path, with wildcards.
        min_bundle_size: A wish that Spark's own splitting does not need; kept for `explain`.
        compression_type: A name of `CompressionTypes`.
        strip_trailing_newlines: Whether the end of a line is taken off.
        coder: What decodes a line's bytes; None means UTF-8 text.
        validate: Whether a pattern that matches nothing is an error.
        skip_header_lines: How many lines to leave out at the beginning of each file.
        delimiter: What ends a record instead of a line end, in bytes.
        escapechar: A byte that makes a delimiter part of a record.
        with_filename: Whether the elements are (file name, line).

    >>> TextSource("/logs/*.txt").describe()
    'text /logs/*.txt'
    """

    file_pattern: Path
    min_bundle_size: int = 0
    compression_type: str = CompressionTypes.AUTO
    strip_trailing_newlines: bool = True
    coder: Any = None
    validate: bool = True
    skip_header_lines: int = 0
    delimiter: bytes | None = None
    escapechar: bytes | None = None
    with_filename: bool = False

    def describe(self) -> str:
        """One line for `explain`."""
        return f"text {self.file_pattern}"

    def check(self) -> TextSource:
        """Itself, if Beam would take the arguments.

        Raises:
            TypeError: The pattern or the compression is of another type.
            ValueError: The delimiter, the escape or the number of header lines cannot be.
        """
        check_path(self.file_pattern, "file_pattern")
        check_compression(self.compression_type)
        check_delimiters(self.delimiter, self.escapechar, self.skip_header_lines)
        return self

    def known_fields(self) -> tuple[str, ...] | None:
        """None, if elements are text."""
        return () if self.coder is None else None

    def element_type(self) -> Any:
        """The type hint of the elements: the coder's, in a pair with the file name if that is wanted."""
        line = str if self.coder is None else _type_hint(self.coder)
        return typehints.KV[str, line] if self.with_filename else line

    def read_file(self, path: str) -> Iterator[Any]:
        """The elements of one file, read in Python rather than by Spark.

        Args:
            path: A path without wildcards, on a file system that `FileSystems` knows.

        Yields:
            The decoded records, or (path, record).
        """
        decode = decode_text if self.coder is None else self.coder.decode
        with FileSystems.open(path, compression_type=self.compression_type) as file:
            for record in records(
                iter(lambda: file.read(_CHUNK_BYTES), b""),
                delimiter=self.delimiter,
                escapechar=self.escapechar,
                strip=self.strip_trailing_newlines,
                skip=self.skip_header_lines,
            ):
                yield (path, decode(record)) if self.with_filename else decode(record)


def decode_text(record: bytes) -> str:
    r"""The record as UTF-8 text; UnicodeDecodeError if it is none (Beam's ``StrUtf8Coder`` does the same).

    >>> decode_text(b"caf\xc3\xa9")
    'café'
    """
    return record.decode("utf-8")


def plain_coder(coder: Any) -> Any:
    """None for Beam's default coder, so that the runner knows it may decode whole batches; any other coder as
    it is.
    """
    return None if coder is None or type(coder).__name__ == "StrUtf8Coder" else coder


def _type_hint(coder: Any) -> Any:
    try:
        return coder.to_type_hint()
    except NotImplementedError:
        return Any
