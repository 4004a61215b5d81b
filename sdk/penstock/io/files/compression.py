"""The compressions of files, and the suffixes of file names for them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from penstock.error import refusal

_BY_SUFFIX = {
    ".bz2": "bzip2",
    ".deflate": "deflate",
    ".gz": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".xz": "lzma",
    ".lzma": "lzma",
}
_MIME_TYPES = {
    "bzip2": "application/x-bz2",
    "deflate": "application/x-deflate",
    "gzip": "application/x-gzip",
    "zstd": "application/zstd",
    "lzma": "application/lzma",
}


_DECOMPRESSORS: dict[str, Callable[[], Any]] = {"bzip2": bz2.BZ2Decompressor, "lzma": lzma.LZMADecompressor}
_BLOCK_BYTES = 1 << 16


class CompressionTypes:
    """The names of the compressions (Beam's ``CompressionTypes``); `AUTO` follows the file's name.

    >>> CompressionTypes.detect_compression_type("/logs/a.TXT.GZ")
    'gzip'
    """

    AUTO = "auto"
    BZIP2 = "bzip2"
    DEFLATE = "deflate"
    ZSTD = "zstd"
    GZIP = "gzip"
    LZMA = "lzma"
    UNCOMPRESSED = "uncompressed"

    @classmethod
    def is_valid_compression_type(cls, compression_type: object) -> bool:
        """True if this is one of the names above."""
        return compression_type in {cls.AUTO, cls.UNCOMPRESSED, *_MIME_TYPES}

    @classmethod
    def mime_type(cls, compression_type: str, default: str = "application/octet-stream") -> str:
        """Returns the MIME type of a compression, or `default` if it has none."""
        return _MIME_TYPES.get(compression_type, default)

    @classmethod
    def detect_compression_type(cls, file_path: str) -> str:
        """Returns the compression of a file's last suffix; `UNCOMPRESSED` for any other suffix."""
        name = file_path.lower()
        return next((kind for suffix, kind in _BY_SUFFIX.items() if name.endswith(suffix)), cls.UNCOMPRESSED)


def check_compression(compression_type: object) -> str:
    """Returns the compression type, or raises Beam's TypeError if it is not one of `CompressionTypes`."""
    if not CompressionTypes.is_valid_compression_type(compression_type):
        what = f"compression_type must be CompressionType object but was {type(compression_type)}"
        raise refusal(TypeError, what, hint="use one of the names in penstock.io.filesystem.CompressionTypes")
    return cast(str, compression_type)


def resolve_compression(path: str, compression_type: str) -> str:
    """Returns the meaning of `compression_type` for this path: `AUTO` follows the name."""
    check_compression(compression_type)
    if compression_type == CompressionTypes.AUTO:
        return CompressionTypes.detect_compression_type(path)
    return compression_type


def open_compressed(path: str, mode: str, compression_type: str, stored: BinaryIO | None = None) -> BinaryIO:
    """Opens a file as plain bytes through its compression, with the mode ``"rb"`` or ``"wb"``.

    The file is a local one, unless `stored` holds its bytes for reading. The standard library has no Zstandard, which
    raises a NotImplementedError.
    """
    kind = resolve_compression(path, compression_type)
    file: Any = path if stored is None else stored
    if mode == "rb" and kind in _DECOMPRESSORS:
        pieces = _Pieces(io.FileIO(path) if stored is None else stored, _DECOMPRESSORS[kind])
        return cast(BinaryIO, io.BufferedReader(pieces, _BLOCK_BYTES))
    match kind:
        case CompressionTypes.UNCOMPRESSED:
            return cast(BinaryIO, open(path, mode) if stored is None else io.BufferedReader(file))
        case CompressionTypes.GZIP:
            return cast(BinaryIO, gzip.open(file, mode))
        case CompressionTypes.BZIP2:
            return cast(BinaryIO, bz2.open(file, mode))
        case CompressionTypes.LZMA:
            return cast(BinaryIO, lzma.open(file, mode))
        case CompressionTypes.DEFLATE:
            return _open_deflate(path, mode) if stored is None else io.BytesIO(inflate(stored.read()))
    what = f"{kind} files cannot be opened one by one in Python"
    hint = "ReadFromText reads them; elsewhere use gzip, bzip2 or lzma"
    raise refusal(NotImplementedError, what, where=f"at file {path}", hint=hint)


class _Pieces(io.RawIOBase):
    """The content of a file of one or more compressed pieces, which zeros may follow.

    The standard library's own files end, without an error, at the first piece whose beginning is damaged.
    """

    def __init__(self, stored: BinaryIO | io.FileIO, decompressor: Callable[[], Any]) -> None:
        self._stored: BinaryIO = stored
        self._decompressor = decompressor
        self._piece = decompressor()
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._stored.seekable())

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            while self.read(_BLOCK_BYTES):
                pass
        target = offset if whence == io.SEEK_SET else self._place + offset
        if target < self._place:
            self._stored.seek(0)
            self._piece, self._place = self._decompressor(), 0
        while self._place < target and self.read(min(target - self._place, _BLOCK_BYTES)):
            pass
        return self._place

    def readinto(self, buffer: Any) -> int:
        while True:
            data = b""
            if self._piece.eof:
                data = self._behind_piece()
                if not data:
                    return 0
                self._piece = self._decompressor()
            elif self._piece.needs_input:
                data = self._stored.read(_BLOCK_BYTES)
                if not data:
                    raise EOFError("the file ends before its compressed content does")
            content = self._piece.decompress(data, len(buffer))
            if content:
                buffer[: len(content)] = content
                self._place += len(content)
                return len(content)

    def _behind_piece(self) -> bytes:
        rest: bytes = self._piece.unused_data.lstrip(b"\0")
        while not rest and (block := self._stored.read(_BLOCK_BYTES)):
            rest = block.lstrip(b"\0")
        return rest

    def close(self) -> None:
        if not self.closed:
            self._stored.close()
        super().close()


def _open_deflate(path: str, mode: str) -> BinaryIO:
    if mode == "wb":
        return cast(BinaryIO, _DeflateWriter(cast(BinaryIO, open(path, mode))))
    with open(path, mode) as file:
        return io.BytesIO(inflate(file.read()))


def inflate(data: bytes) -> bytes:
    """Returns the content of a deflate file, which may consist of several compressed pieces, as in gzip.

    >>> inflate(zlib.compress(b"a") + zlib.compress(b"b"))
    b'ab'
    """
    pieces: list[bytes] = []
    while data or not pieces:
        piece = zlib.decompressobj()
        pieces.append(piece.decompress(data))
        if not piece.eof:
            raise zlib.error("the data ends before the content does")
        data = piece.unused_data
    return b"".join(pieces)


class _DeflateWriter(io.RawIOBase):
    """Compresses with zlib, for which the standard library has no file object."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._compressor = zlib.compressobj()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._file.write(self._compressor.compress(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.write(self._compressor.flush())
            self._file.close()
        super().close()


def compress(data: bytes, compression_type: str) -> bytes | None:
    """Returns `data` as a whole file with that compression; None for a compression that needs Spark."""
    match compression_type:
        case CompressionTypes.UNCOMPRESSED:
            return data
        case CompressionTypes.GZIP:
            return gzip.compress(data)
        case CompressionTypes.BZIP2:
            return bz2.compress(data)
        case CompressionTypes.LZMA:
            return lzma.compress(data)
        case CompressionTypes.DEFLATE:
            return zlib.compress(data)
    return None
