"""The optional package ``google-crc32c``, imported when a TFRecord file is used and not before."""

from __future__ import annotations

from collections.abc import Callable

from penstock.error import refusal

Checksum = Callable[[bytes], int]


def masked_crc32c(where: str) -> Checksum:
    """The function that gives the format's checksum of bytes; ModuleNotFoundError if the package is not installed.

    The format turns and shifts each CRC-32C, because the CRC of data that has its own CRC in it says little.
    """
    try:
        from google_crc32c import value as crc32c
    except ModuleNotFoundError:
        what = "TFRecord files need the package google-crc32c, which is not installed"
        hint = "pip install 'penstock[tfrecord]'"
        raise refusal(ModuleNotFoundError, what, where=where, hint=hint) from None

    def masked(data: bytes) -> int:
        crc: int = crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    return masked
