"""TFRecord files: records of bytes with checksums by the package ``google-crc32c``."""

from __future__ import annotations

from penstock_spark.formats.format import Format
from penstock_spark.formats.packages import GOOGLE_CRC32C
from penstock_spark.formats.tfrecord.scan import open_tfrecord, open_tfrecord_stream
from penstock_spark.formats.tfrecord.writer import tfrecord_files

TFRECORD = Format(
    open_tfrecord, open_tfrecord_stream, files=tfrecord_files, packages=lambda files: (GOOGLE_CRC32C,)
)
