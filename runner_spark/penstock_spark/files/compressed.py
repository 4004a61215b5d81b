"""Whole compressed files: their content, and files on a local disk that compress everything that is written."""

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
_PACK_HINT = "unpack it, or pack it with gzip, bzip2 or zstd; ReadFromText reads files of the pattern *.xz"
_BEGINNING_OF_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
"""Hadoop looks for the first such mark of a block, and takes a file that has none for an empty one."""


def has_ending_of_hadoop(path: str) -> bool:
    """True if Spark's text readers would unpack a file in a form that only Hadoop writes.

    They take other files with these endings for empty ones, or for ones of many gigabytes, which ends Java.

    >>> has_ending_of_hadoop("/logs/a.txt.LZ4"), has_ending_of_hadoop("/logs/a.txt.gz")
    (True, False)
    """
    return path.lower().endswith(_ENDINGS_OF_HADOOP)


def not_unpacked(path: str, where: str, open_stored: Callable[[str], BinaryIO]) -> ValueError | None:
    """Returns the error for a file that Spark's text readers would leave packed, or unpack wrongly; None for others."""
    name = path.lower()
    if has_ending_of_hadoop(name):
        what = f"Spark would unpack {path} as LZ4 or Snappy in a form that only Hadoop writes"
        hint = "unpack the file and give it another ending; read what Spark itself has written with ReadFromSpark"
        return refusal(ValueError, what, where=where, hint=hint)
    if name.endswith(_LEFT_PACKED):
        what = f"Spark's readers do not unpack {path}"
        return refusal(ValueError, what, where=where, hint=_PACK_HINT)
    if CompressionTypes.detect_compression_type(path) == CompressionTypes.BZIP2:
        try:
            with open_stored(path) as file:
                begun = file.read(10)
        except OSError:
            return None  # Whoever reads the file will say so.
        if begun and not _BEGINNING_OF_BZIP2.fullmatch(begun):
            hint = "write the file again, or give it another ending if it is not compressed"
            return refusal(ValueError, f"{path} is not a whole bzip2 file", where=where, hint=hint)
    return None


def decompress(content: bytes, compression: str, name: str, where: str) -> bytes:
    """Returns the bytes of a whole file without its compression; several compressed pieces in a row are one content.

    >>> decompress(zlib.compress(b"a"), "deflate", "a.deflate", "at step 'Read'")
    b'a'
    """
    with unpacking(compression, name, where):
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
def unpacking(compression: str, name: str, where: str) -> Iterator[None]:
    """Raises a ValueError for any error that a compression raises about damaged or foreign content.

    >>> with unpacking("gzip", "a.gz", ""):
    ...     open_for_reading(io.BytesIO(b"no gzip"), "gzip").read()
    Traceback (most recent call last):
    ...
    ValueError: a.gz is not a whole gzip file
      hint: check the file, or compression_type
    """
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            # The disk or the store has failed, and not the content.
            raise
        raise refusal(
            ValueError,
            f"{name} is not a whole {compression} file",
            where=where,
            hint="check the file, or compression_type",
        ) from error


def compressed(content: bytes, compression: str) -> bytes:
    data = compress(content, compression)
    return content if data is None else data


def open_for_reading(stored: BinaryIO, compression: str) -> BinaryIO:
    """Returns the content of an open file without its compression, which must not be AUTO."""
    if compression in _ARROW_CODECS:
        stream = pa.input_stream(stored, compression=_ARROW_CODECS[compression])
        return cast(BinaryIO, io.BufferedReader(stream))
    return open_compressed("", "rb", compression, stored)


def open_for_writing(path: str, compression: str) -> BinaryIO:
    if compression in _ARROW_CODECS:
        stream: BinaryIO = pa.output_stream(path, compression=_ARROW_CODECS[compression])
        return stream
    return open_compressed(path, "wb", compression)
