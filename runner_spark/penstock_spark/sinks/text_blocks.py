"""Blocks of text as files that Spark's text writer makes, on any file system."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, LongType, StructType

from penstock.io.files.compression import CompressionTypes
from penstock.scalars.spark_forms import quote_name
from penstock_spark.files.compressed import compress_content, decompress
from penstock_spark.session.spark_versions import from_arrow_schema
from penstock_spark.sinks.files import SparkFiles
from penstock_spark.sinks.partitions import Partitions
from penstock_spark.sinks.plan import Encoder

_TEXT, _PLACE = "__penstock_text", "__penstock_place"
"""The last columns of the blocks of a table with partitions, whose own columns may have any name."""

SPARK_CODECS = {
    CompressionTypes.UNCOMPRESSED: "none",
    CompressionTypes.GZIP: "gzip",
    CompressionTypes.BZIP2: "bzip2",
    CompressionTypes.DEFLATE: "deflate",
}
"""Spark's names of the compressions that it writes."""


def make_text_files(
    make_encoder: Callable[[], Encoder],
    frame: bytes,
    compression: str = CompressionTypes.UNCOMPRESSED,
    partitions: Partitions | None = None,
) -> SparkFiles:
    """Returns the files that Spark writes of blocks of text; `frame` is the content of a file without elements.

    With partitions, Spark's `partitionBy` separates blocks: only Spark reaches these file systems.
    """
    options = {"compression": SPARK_CODECS[compression], "lineSep": "\n"}

    def write(rows: DataFrame, target: str) -> None:
        lines = rows.selectExpr("cast(value as string) as value")
        lines.write.format("text").options(**options).save(target)

    def write_apart(rows: DataFrame, target: str) -> None:
        assert partitions is not None
        names = [quote_name(name) for name in partitions.columns]
        # A header stays before what follows it, because Spark does not sort again what is sorted by folder.
        in_order = rows.sortWithinPartitions(*names, _PLACE)
        lines = in_order.selectExpr(*names, f"cast({_TEXT} as string) as {_TEXT}")
        lines.write.format("text").options(**options).partitionBy(*partitions.columns).save(target)

    return SparkFiles(
        "value binary" if partitions is None else _schema_of_blocks(partitions),
        make_encoder,
        write if partitions is None else write_apart,
        lambda content: bool(decompress(content, compression, "a Spark file", "")),
        compress_content(frame, compression),
    )


def _schema_of_blocks(partitions: Partitions) -> StructType:
    schema = StructType(list(from_arrow_schema(partitions.keys)))
    return schema.add(_PLACE, LongType()).add(_TEXT, BinaryType())


def make_partitioned_rows(keys: pa.RecordBatch, places: range, blocks: Sequence[bytes]) -> pa.RecordBatch:
    """Makes rows for `make_text_files` with partitions: the folders, the order in a file, and the text."""
    columns = [*keys.columns, pa.array(places, pa.int64()), pa.array(blocks, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=[*keys.schema.names, _PLACE, _TEXT])


def make_text_rows(*blocks: bytes) -> pa.RecordBatch:
    """Returns rows for `make_text_files`."""
    return pa.RecordBatch.from_arrays([pa.array(blocks, pa.binary())], names=["value"])
