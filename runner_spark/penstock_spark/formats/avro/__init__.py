"""Avro files by the package ``fastavro``: dicts, rows or plain values."""

from __future__ import annotations

from penstock_spark.formats.avro.scan import open_avro, open_avro_stream
from penstock_spark.formats.avro.writer import avro_files
from penstock_spark.formats.format import Format
from penstock_spark.formats.packages import FASTAVRO

AVRO = Format(open_avro, open_avro_stream, files=avro_files, packages=lambda files: (FASTAVRO,))
