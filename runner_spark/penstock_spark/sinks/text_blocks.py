"""Blocks of text as files of Spark's text writer, on any file system."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.io.compression import CompressionTypes
from penstock_spark.files.compressed import compressed, decompress
from penstock_spark.sinks.files import SparkFiles
from penstock_spark.sinks.plan import Encoder

SPARK_CODECS = {
    CompressionTypes.UNCOMPRESSED: "none",
    CompressionTypes.GZIP: "gzip",
    CompressionTypes.BZIP2: "bzip2",
    CompressionTypes.DEFLATE: "deflate",
}
"""Spark's names of the compressions that it writes."""


def spark_text(
    make_encoder: Callable[[], Encoder],
    frame: bytes,
    compression: str = CompressionTypes.UNCOMPRESSED,
) -> SparkFiles:
    """How Spark writes blocks of text; `frame` is the content of a file without elements."""

    def write(rows: DataFrame, target: str) -> None:
        lines = rows.selectExpr("cast(value as string) as value")
        options = {"compression": SPARK_CODECS[compression], "lineSep": "\n"}
        lines.write.format("text").options(**options).save(target)

    return SparkFiles(
        "value binary",
        make_encoder,
        write,
        lambda content: bool(decompress(content, compression, "a file of Spark's", "")),
        compressed(frame, compression),
    )


def text_rows(*blocks: bytes) -> pa.RecordBatch:
    """Rows for `spark_text`."""
    return pa.RecordBatch.from_arrays([pa.array(blocks, pa.binary())], names=["value"])
