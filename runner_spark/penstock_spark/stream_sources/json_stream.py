"""JSON files as a stream."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.base.row import Row
from penstock.io.columnar import JsonSource
from penstock.io.streams import StreamSource
from penstock_spark.sources.json_files import (
    LINES,
    JsonDecoder,
    fields_of,
    malformed_text,
    text_of,
    what_is_wrong,
)
from penstock_spark.stream_sources.decoding import ByFile, Careful
from penstock_spark.stream_sources.files import no_schema, place_columns, stream_files
from penstock_spark.stream_sources.scan import StreamScan, open_stream_of


@open_stream_of.register
def open_json_stream(source: JsonSource, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Rows that all have every field of the files that are there now; a field that comes later is a further one.

    What is no JSON object may be rejected.
    """
    files = stream_files(stream, source.file_pattern, where)
    fields = fields_of(spark, source, files.present(spark))
    if not fields:
        hint = "put a file there before the pipeline starts, or read lines with ReadFromText and parse them"
        raise no_schema("fields", files, hint)
    format, text = text_of(source)
    frame = files.load(spark.readStream.options(**LINES), format).select(text, *place_columns(stream))
    naming, has_rejects = files.naming(), stream.has_rejects
    decode = _Objects(JsonDecoder(source, fields), where)
    return StreamScan(frame, lambda: ByFile(Careful(decode, "text", has_rejects, where), naming))


@dataclass(frozen=True)
class _Objects:
    """Decodes texts of a file, and says which file is wrong."""

    decode: JsonDecoder
    where: str

    def __call__(self, batch: pa.RecordBatch, file: str) -> list[Row]:
        """The elements."""
        try:
            return self.decode(batch)
        except ValueError as error:
            raise malformed_text(what_is_wrong(error), file, self.where) from error
