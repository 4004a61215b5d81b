"""The checksums of TFRecord files."""

from __future__ import annotations

from collections.abc import Callable

from penstock_connectors.packages import GOOGLE_CRC32C

Checksum = Callable[[bytes], int]


def load_masked_crc32c(where: str) -> Checksum:
    """Returns the format's checksum function; ModuleNotFoundError if the package is not installed.

    The format turns and shifts each CRC-32C, because the CRC of data that has its own CRC in it says little.
    """
    crc32c = GOOGLE_CRC32C.load(where).value

    def masked(data: bytes) -> int:
        crc: int = crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    return masked
