"""TFRecord files: records of bytes with checksums by the package ``google-crc32c``."""

from __future__ import annotations

from penstock_connectors.packages import GOOGLE_CRC32C
from penstock_connectors.tfrecord.scan import (
    open_tfrecord,
    open_tfrecord_stream,
    open_tfrecord_with_rejects,
    records_of_file,
)
from penstock_connectors.tfrecord.writer import tfrecord_files
from penstock_spark.connecting.formats import Format

TFRECORD = Format(
    open_tfrecord,
    open_tfrecord_stream,
    files=tfrecord_files,
    read_file=records_of_file,
    open_with_rejects=open_tfrecord_with_rejects,
    packages=lambda files: (GOOGLE_CRC32C,),
)
