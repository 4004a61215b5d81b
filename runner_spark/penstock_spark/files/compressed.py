"""Reads and writes whole compressed files, and finds those that Spark cannot decompress."""

from __future__ import annotations

import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import pyarrow as pa

from penstock.error import refusal
from penstock.io.files.compression import CompressionTypes, compress, inflate, open_compressed

_ARROW_CODECS = {CompressionTypes.ZSTD: "zstd"}
_ENDINGS_OF_HADOOP = (".lz4", ".snappy")
_LEFT_PACKED = (".xz", ".lzma", ".zip")
_PACK_HINT = (
    "decompress it, or compress it with gzip, bzip2 or zstd; ReadFromText reads files of the pattern *.xz"
)
_BEGINNING_OF_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
"""Hadoop looks for the first mark of a block, and treats a file without one as empty."""


def has_ending_of_hadoop(path: str) -> bool:
    """True if Spark's text readers would decompress a file in a format that only Hadoop writes.

    They treat other files with these endings as empty, or as files of many gigabytes, which ends Java.

    >>> has_ending_of_hadoop("/logs/a.txt.LZ4"), has_ending_of_hadoop("/logs/a.txt.gz")
    (True, False)
    """
    return path.lower().endswith(_ENDINGS_OF_HADOOP)


def find_compression_error(
    path: str, where: str, open_stored: Callable[[str], BinaryIO]
) -> ValueError | None:
    """Returns the error for a file that Spark's text readers cannot decompress correctly; None for others."""
    name = path.lower()
    if has_ending_of_hadoop(name):
        what = f"Spark would decompress {path} as LZ4 or Snappy in a format that only Hadoop writes"
        hint = "decompress the file and give it another extension; read what Spark itself wrote with ReadFromSpark"
        return refusal(ValueError, what, where=where, hint=hint)
    if name.endswith(_LEFT_PACKED):
        what = f"Spark's readers do not decompress {path}"
        return refusal(ValueError, what, where=where, hint=_PACK_HINT)
    if CompressionTypes.detect_compression_type(path) == CompressionTypes.BZIP2:
        try:
            with open_stored(path) as file:
                begun = file.read(10)
        except OSError:
            return None  # The reader of the file raises this error.
        if begun and not _BEGINNING_OF_BZIP2.fullmatch(begun):
            hint = "write the file again, or give it another extension if it is not compressed"
            return refusal(ValueError, f"{path} is not a complete bzip2 file", where=where, hint=hint)
    return None


def decompress(content: bytes, compression: str, name: str, where: str) -> bytes:
    """Decompresses the bytes of a whole file; several compressed pieces in a row are one content.

    >>> decompress(zlib.compress(b"a"), "deflate", "a.deflate", "at step 'Read'")
    b'a'
    """
    with translate_decompression_errors(compression, name, where):
        match compression:
            case CompressionTypes.BZIP2 | CompressionTypes.LZMA:
                return open_compressed("", "rb", compression, io.BytesIO(content)).read()
            case CompressionTypes.DEFLATE:
                return inflate(content)
            case CompressionTypes.GZIP | CompressionTypes.ZSTD:
                with pa.input_stream(pa.py_buffer(content), compression=compression) as stream:
                    return bytes(stream.read())
    return content


@contextmanager
def translate_decompression_errors(compression: str, name: str, where: str) -> Iterator[None]:
    """Raises a ValueError instead of any error that a library raises about content that it cannot decompress.

    >>> with translate_decompression_errors("gzip", "a.gz", ""):
    ...     open_for_reading(io.BytesIO(b"no gzip"), "gzip").read()
    Traceback (most recent call last):
    ...
    ValueError: a.gz is not a complete gzip file
      hint: check the file, or compression_type
    """
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            # The disk or the store has failed; the content may be right.
            raise
        raise refusal(
            ValueError,
            f"{name} is not a complete {compression} file",
            where=where,
            hint="check the file, or compression_type",
        ) from error


def compress_content(content: bytes, compression: str) -> bytes:
    """Returns the bytes, compressed; unchanged if the compression is none."""
    data = compress(content, compression)
    return content if data is None else data


def open_for_reading(stored: BinaryIO, compression: str) -> BinaryIO:
    """Opens the decompressed content of an open file; the compression must not be AUTO."""
    if compression in _ARROW_CODECS:
        stream = pa.input_stream(stored, compression=_ARROW_CODECS[compression])
        return cast(BinaryIO, io.BufferedReader(stream))
    return open_compressed("", "rb", compression, stored)


def open_for_writing(path: str, compression: str) -> BinaryIO:
    """Opens a file on a local disk that compresses everything that is written."""
    if compression in _ARROW_CODECS:
        stream: BinaryIO = pa.output_stream(path, compression=_ARROW_CODECS[compression])
        return stream
    return open_compressed(path, "wb", compression)
