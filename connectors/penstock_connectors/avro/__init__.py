"""Avro files by the package ``fastavro``: dicts, rows or plain values."""

from __future__ import annotations

from penstock_connectors.avro.scan import open_avro, open_avro_stream, open_avro_with_rejects, records_of_file
from penstock_connectors.avro.writer import avro_files
from penstock_connectors.packages import FASTAVRO
from penstock_spark.connecting.formats import Format

AVRO = Format(
    open_avro,
    open_avro_stream,
    files=avro_files,
    read_file=records_of_file,
    open_with_rejects=open_avro_with_rejects,
    packages=lambda files: (FASTAVRO,),
)
