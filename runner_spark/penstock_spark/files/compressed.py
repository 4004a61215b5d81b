"""Whole files that are compressed: their content, and files on a local disk that compress what is written to them."""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import pyarrow as pa

from penstock.error import refusal
from penstock.io.compression import CompressionTypes, compress, inflate, open_compressed

_ARROW_CODECS = {CompressionTypes.ZSTD: "zstd"}
_ENDINGS_OF_HADOOP = (".lz4", ".snappy")


def has_ending_of_hadoop(path: str) -> bool:
    """Whether Spark's readers of text would unpack a file in a form that only Hadoop writes.

    They take other files with these endings for empty ones, or for ones of many gigabytes, which ends Java.

    >>> has_ending_of_hadoop("/logs/a.txt.LZ4"), has_ending_of_hadoop("/logs/a.txt.gz")
    (True, False)
    """
    return path.lower().endswith(_ENDINGS_OF_HADOOP)


def ending_of_hadoop(path: str, where: str) -> ValueError:
    """The error for a file of which `has_ending_of_hadoop` is true."""
    what = f"Spark would unpack {path} as LZ4 or Snappy in a form that only Hadoop writes"
    hint = "unpack the file and give it another ending; read what Spark itself has written with ReadFromSpark"
    return refusal(ValueError, what, where=where, hint=hint)


def decompress(content: bytes, compression: str, name: str, where: str) -> bytes:
    """The bytes of a whole file without its compression; several compressed pieces in a row are one content.

    >>> decompress(zlib.compress(b"a"), "deflate", "a.deflate", "at step 'Read'")
    b'a'
    """
    with unpacking(compression, name, where):
        match compression:
            case CompressionTypes.BZIP2:
                return bz2.decompress(content)
            case CompressionTypes.LZMA:
                return lzma.decompress(content)
            case CompressionTypes.DEFLATE:
                return inflate(content)
            case CompressionTypes.GZIP | CompressionTypes.ZSTD:
                with pa.input_stream(pa.py_buffer(content), compression=compression) as stream:
                    return bytes(stream.read())
    return content


@contextmanager
def unpacking(compression: str, name: str, where: str) -> Iterator[None]:
    """Raises one ValueError for what each compression raises about content that is damaged or of another kind.

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
    """The content of an open file without its compression, which must not be AUTO."""
    if compression in _ARROW_CODECS:
        stream = pa.input_stream(stored, compression=_ARROW_CODECS[compression])
        return cast(BinaryIO, io.BufferedReader(stream))
    return open_compressed("", "rb", compression, stored)


def open_for_writing(path: str, compression: str) -> BinaryIO:
    if compression in _ARROW_CODECS:
        stream: BinaryIO = pa.output_stream(path, compression=_ARROW_CODECS[compression])
        return stream
    return open_compressed(path, "wb", compression)
