"""Text files as a sink: what ``WriteToText`` passes to the runner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.io.argument_checks import check_coder
from penstock.io.files.compression import CompressionTypes, check_compression
from penstock.io.files.naming_errors import encode_text
from penstock.io.formats.file_formats import ShardedSink


@dataclass(frozen=True)
class TextFileSink(ShardedSink):
    """Lines of text in files; see `penstock.io.textio.WriteToText`.

    >>> from penstock.io.files.shards import Shards
    >>> TextFileSink(Shards("/out/a", ".txt")).describe()
    'text /out/a-SSSSS-of-NNNNN.txt'
    """

    format: ClassVar[str] = "text"

    append_trailing_newlines: bool = True
    coder: Any = None
    compression_type: str = CompressionTypes.AUTO
    header: Any = None
    footer: Any = None
    max_records_per_shard: int | None = None
    max_bytes_per_shard: int | None = None
    skip_if_empty: bool = False

    def check(self) -> TextFileSink:
        """Returns itself if Beam would take the arguments."""
        self.shards.check()
        check_compression(self.compression_type)
        check_coder(self.coder, "encode")
        return self

    def limits(self) -> dict[str, int]:
        """Returns the user's limits of a file, by the names of their arguments."""
        given = {
            "max_records_per_shard": self.max_records_per_shard,
            "max_bytes_per_shard": self.max_bytes_per_shard,
        }
        return {name: limit for name, limit in given.items() if limit}

    def encode(self, element: object) -> bytes:
        """Returns an element's bytes, without the line end."""
        return to_bytes(element) if self.coder is None else self.coder.encode(element)

    def frame_of(self, text: object) -> bytes:
        """Returns the bytes of the header or the footer; no bytes if there is none."""
        if text is None:
            return b""
        return to_bytes(text) + (b"\n" if self.append_trailing_newlines else b"")


def to_bytes(value: object) -> bytes:
    """Returns bytes unchanged; of anything else its ``str`` in UTF-8 (Beam's ``ToBytesCoder``).

    >>> to_bytes(3), to_bytes(b"x")
    (b'3', b'x')
    """
    return value if isinstance(value, bytes) else encode_text(str(value))
