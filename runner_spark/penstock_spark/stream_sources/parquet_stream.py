"""Parquet files as a stream."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.io.parquetio import ParquetSource
from penstock.io.streams import StreamSource
from penstock_spark.sources.parquet import DECODERS, pruned
from penstock_spark.stream_sources.decoding import ByFile
from penstock_spark.stream_sources.files import no_schema, place_columns, stream_files
from penstock_spark.stream_sources.refusals import refusals
from penstock_spark.stream_sources.scan import StreamScan, open_stream_of


@open_stream_of.register
def open_parquet_stream(
    source: ParquetSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    """Dicts, Rows or tables, with the columns of the files that are there now; a file may lack some of them."""
    files = stream_files(stream, source.file_pattern, where)
    present = files.present(spark)
    if not present.paths:
        hint = (
            "put a file there before the pipeline starts, or use ReadFromSpark('parquet', path, schema=...)"
        )
        raise no_schema("columns", files, hint)
    with refusals(source.describe(), where):
        schema = present.load(spark.read.option("mergeSchema", True), "parquet").schema
    if source.columns is not None:
        schema = pruned(schema, source.columns, where)
    frame = files.load(spark.readStream.schema(schema), "parquet")
    columns = [F.col(f"`{name}`") for name in schema.names]
    decode, naming = DECODERS[source.elements], files.naming()
    return StreamScan(
        frame.select(*columns, *place_columns(stream)),
        lambda: ByFile(lambda batch, file: decode(batch), naming),
    )
