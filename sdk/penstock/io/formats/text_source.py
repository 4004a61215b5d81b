"""Text files as a source: what ``ReadFromText`` passes to the runner, and how Python reads one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.coders.base import Coder
from penstock.io.argument_checks import check_coder
from penstock.io.files.compression import CompressionTypes, check_compression
from penstock.io.files.naming_errors import add_file_name
from penstock.io.files.paths import check_path
from penstock.io.filesystems import FileSystems
from penstock.io.formats.file_formats import FileSource
from penstock.io.formats.record_splitter import check_delimiters, split_records
from penstock.typehints import typehints

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class TextSource(FileSource):
    """Lines of text files; see `penstock.io.textio.ReadFromText`.

    >>> TextSource("/logs/*.txt").describe()
    'text /logs/*.txt'
    """

    format: ClassVar[str] = "text"

    compression_type: str = CompressionTypes.AUTO
    strip_trailing_newlines: bool = True
    coder: Coder | None = None
    skip_header_lines: int = 0
    delimiter: bytes | None = None
    escapechar: bytes | None = None
    with_filename: bool = False

    def check(self) -> TextSource:
        """Returns itself if Beam would take the arguments."""
        check_path(self.file_pattern, "file_pattern")
        check_compression(self.compression_type)
        check_delimiters(self.delimiter, self.escapechar, self.skip_header_lines)
        check_coder(self.coder, "decode")
        return self

    def known_fields(self) -> tuple[str, ...] | None:
        return () if self.coder is None else None

    def element_type(self) -> Any:
        """The type hint of the elements: the coder's, in a pair with the file name if `with_filename` is set."""
        line = str if self.coder is None else type_hint_of(self.coder)
        return typehints.KV[str, line] if self.with_filename else line

    def read_file(self, path: str) -> Iterator[Any]:
        """Yields the elements of one file, on any of the `FileSystems`, read in Python and not by Spark."""
        decode = decode_text if self.coder is None else self.coder.decode
        with add_file_name(path), FileSystems.open(path, compression_type=self.compression_type) as file:
            for record in split_records(
                iter(lambda: file.read(_CHUNK_BYTES), b""),
                delimiter=self.delimiter,
                escapechar=self.escapechar,
                strip=self.strip_trailing_newlines,
                skip=self.skip_header_lines,
            ):
                yield (path, decode(record)) if self.with_filename else decode(record)


def decode_text(record: bytes) -> str:
    r"""Returns the record as UTF-8 text, or a UnicodeDecodeError (Beam's ``StrUtf8Coder`` does the same)."""
    return record.decode("utf-8")


def type_hint_of(coder: Coder) -> Any:
    """Returns the type that a coder decodes to; ``Any`` if the coder does not say it."""
    try:
        return coder.to_type_hint()
    except NotImplementedError:
        return Any
