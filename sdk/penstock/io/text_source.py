"""Text files as a source: what ``ReadFromText`` passes to the runner, and how Python reads one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.error import refusal
from penstock.io.compression import CompressionTypes, check_compression
from penstock.io.filesystems import FileSystems
from penstock.io.naming_errors import naming
from penstock.io.paths import Path, check_path
from penstock.io.records import check_delimiters, records
from penstock.io.streams import Streamable
from penstock.typehints import typehints

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class TextSource(Streamable):
    """Lines of text files; see `penstock.io.textio.ReadFromText`.

    >>> TextSource("/logs/*.txt").describe()
    'text /logs/*.txt'
    """

    file_pattern: Path
    compression_type: str = CompressionTypes.AUTO
    strip_trailing_newlines: bool = True
    coder: Any = None
    validate: bool = True
    skip_header_lines: int = 0
    delimiter: bytes | None = None
    escapechar: bytes | None = None
    with_filename: bool = False

    def describe(self) -> str:
        return f"text {self.file_pattern}"

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
        """The elements of one file, on any of the `FileSystems`, read in Python and not by Spark."""
        decode = decode_text if self.coder is None else self.coder.decode
        with naming(path), FileSystems.open(path, compression_type=self.compression_type) as file:
            for record in records(
                iter(lambda: file.read(_CHUNK_BYTES), b""),
                delimiter=self.delimiter,
                escapechar=self.escapechar,
                strip=self.strip_trailing_newlines,
                skip=self.skip_header_lines,
            ):
                yield (path, decode(record)) if self.with_filename else decode(record)


def decode_text(record: bytes) -> str:
    r"""The record as UTF-8 text, or a UnicodeDecodeError (Beam's ``StrUtf8Coder`` does the same)."""
    return record.decode("utf-8")


def plain_coder(coder: Any) -> Any:
    """None for Beam's default coder, so that the runner may decode whole batches; any other coder unchanged."""
    return None if coder is None or type(coder).__name__ == "StrUtf8Coder" else coder


def check_coder(coder: Any, method: str) -> None:
    """Refuses what is given as a coder and is none."""
    if coder is not None and (isinstance(coder, type) or not callable(getattr(coder, method, None))):
        what = f"coder must be a coder, but is {coder!r}"
        raise refusal(TypeError, what, hint="pass coder=BytesCoder(), or a coder of your own")


def type_hint_of(coder: Any) -> Any:
    """The type that a coder decodes to; ``Any`` if the coder does not say it."""
    try:
        return coder.to_type_hint()
    except NotImplementedError:
        return Any
