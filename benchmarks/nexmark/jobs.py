"""The jobs of the contenders: answer a query from files to files, in a batch or on a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark.queries import QUERIES, as_line
from targets import checkpoint_of

UPDATED = "q12"
"""A query that Spark answers on a stream with rows that replace earlier ones: by the clock, no window is the last."""

UNANSWERED = ("q6",)
"""Queries without a version by hand on a stream: Spark cannot aggregate over a number of rows there, and in append
mode every aggregate must end with a window."""


def penstock_batch(spark: SparkSession, query: str, source: str, target: str) -> dict[str, Any]:
    """A pipeline over lines."""
    import penstock as beam
    from nexmark.pipelines import PIPELINES, read_batch

    with beam.Pipeline(spark=spark) as pipeline:
        events = read_batch(pipeline, source, QUERIES[query].has_times)
        _ = PIPELINES[query](events) | "Line" >> beam.Map(as_line) | beam.io.WriteToText(f"{target}/part")
    return {}


def penstock_streaming(spark: SparkSession, query: str, source: str, target: str) -> dict[str, Any]:
    """A pipeline over a stream of lines."""
    import penstock as beam
    from nexmark.pipelines import PIPELINES, read_stream

    pipeline = beam.Pipeline(
        spark=spark, mode="streaming", checkpoint_location=str(checkpoint_of(Path(target)))
    )
    events = read_stream(pipeline, source)
    _ = PIPELINES[query](events) | "Line" >> beam.Map(as_line) | beam.io.WriteToText(f"{target}/part")
    pipeline.run().wait_until_finish()
    return {}


def sql_batch(spark: SparkSession, query: str, source: str, target: str) -> dict[str, Any]:
    """A query in SQL over lines that a pipeline parses."""
    import penstock as beam
    from nexmark.pipelines import read_batch
    from nexmark.sql_jobs import batch_lines

    with beam.Pipeline(spark=spark) as pipeline:
        lines = batch_lines(read_batch(pipeline, source, has_times=False), query)
        _ = lines | beam.io.WriteToText(f"{target}/part")
    return {}


def sql_streaming(spark: SparkSession, query: str, source: str, target: str) -> dict[str, Any]:
    """A query in SQL over a stream of lines that a pipeline parses."""
    import penstock as beam
    from nexmark.pipelines import read_stream
    from nexmark.sql_jobs import stream_lines

    pipeline = beam.Pipeline(
        spark=spark, mode="streaming", checkpoint_location=str(checkpoint_of(Path(target)))
    )
    _ = stream_lines(read_stream(pipeline, source), query) | beam.io.WriteToText(f"{target}/part")
    pipeline.run().wait_until_finish()
    return {}


def sql_parquet_batch(spark: SparkSession, query: str, source: str, target: str) -> dict[str, Any]:
    """A query in SQL over Parquet; the numbers say who computes it."""
    import penstock as beam
    from nexmark.sql_jobs import over_parquet

    with beam.Pipeline(spark=spark) as pipeline:
        transform = over_parquet(pipeline, query, source, target)
    return {"computed_by": transform.explained.rpartition("computed by: ")[2]}


def native_sql_batch(spark: SparkSession, query: str, source: str, target: str) -> dict[str, Any]:
    """A query in Spark's own SQL over Parquet."""
    from nexmark.sql_jobs import by_spark

    by_spark(spark, query, source).write.parquet(target)
    return {}


def native_python_batch(spark: SparkSession, query: str, source: str, target: str) -> dict[str, Any]:
    """A query over lines that Python parses."""
    from nexmark.native import NATIVE
    from nexmark.tables import lines_of, parsed_tables

    _lines(NATIVE[query](parsed_tables(lines_of(spark, source)))).write.text(target)
    spark.catalog.clearCache()
    return {}


def native_parquet_batch(spark: SparkSession, query: str, source: str, target: str) -> dict[str, Any]:
    """A query over Parquet."""
    from nexmark.native import NATIVE
    from nexmark.tables import parquet_tables

    _lines(NATIVE[query](parquet_tables(spark, source))).write.text(target)
    return {}


def native_python_streaming(spark: SparkSession, query: str, source: str, target: str) -> dict[str, Any]:
    """A query over a stream of lines that Python parses."""
    from nexmark.native import NATIVE
    from nexmark.tables import line_stream_of, parsed_tables

    rows = NATIVE[query](parsed_tables(line_stream_of(spark, source)))
    checkpoint = str(checkpoint_of(Path(target)))
    if query == UPDATED:
        _write_last(rows, target, checkpoint)
    else:
        writer = _lines(rows).writeStream.format("text").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(target).awaitTermination()
    return {}


def _lines(rows: DataFrame) -> DataFrame:
    return rows.select(F.concat_ws("\t", *rows.columns).alias("line"))


def _write_last(rows: DataFrame, target: str, checkpoint: str) -> None:
    """Writes, of the rows for each bidder and window, the last one."""
    counts: dict[tuple[Any, ...], int] = {}

    def note(frame: DataFrame, _: int) -> None:
        counts.update(((row.bidder, row.window), row["count"]) for row in frame.collect())

    windowed = rows.select("bidder", "window", "count")
    writer = windowed.writeStream.outputMode("update").foreachBatch(note)
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    folder = Path(target)
    folder.mkdir()
    lines = [as_line((bidder, count)) for (bidder, _), count in counts.items()]
    (folder / "part-0").write_text("".join(f"{line}\n" for line in lines))


JOBS = {
    "penstock": {"batch": penstock_batch, "streaming": penstock_streaming},
    "native_python": {"batch": native_python_batch, "streaming": native_python_streaming},
    "native_parquet": {"batch": native_parquet_batch},
    "penstock_sql": {"batch": sql_batch, "streaming": sql_streaming},
    "native_sql": {"batch": native_sql_batch},
    "penstock_sql_parquet": {"batch": sql_parquet_batch},
}
"""The contenders, and what they do in each mode."""
