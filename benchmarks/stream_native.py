"""The streams as queries that are written by hand, with Spark's own windows, sums and state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from stream_delays import Delays
from stream_inputs import DISORDER_SECONDS, REPLAYS, parsed
from stream_progress import measured_batches, measured_state, started
from stream_ticker import TICK_DISORDER_SECONDS, TICK_WINDOW_SECONDS, parsed_tick, tick_source
from workloads import WINDOW_SECONDS

Records = Iterator[pa.RecordBatch]
Parse = Callable[[DataFrame, int], DataFrame]

EVENTS = "key string, score long, second long"


def lines_of(spark: SparkSession, source: str, files_per_batch: int) -> DataFrame:
    """Lines of files that are read one after the other."""
    return spark.readStream.option("maxFilesPerTrigger", files_per_batch).text(source)


def parsed_in_sql(lines: DataFrame, key: int) -> DataFrame:
    """The key, score and second of each line, without Python."""
    fields = F.split("value", ",")
    return lines.select(
        fields[key].alias("key"),
        fields[2].cast("long").alias("score"),
        fields[3].cast("long").alias("second"),
    )


def parsed_in_python(lines: DataFrame, key: int) -> DataFrame:
    """Parses lines with a function in Python."""

    def parse(records: Records) -> Records:
        for record in records:
            events = [parsed(line, key) for line in record.column(0).to_pylist()]
            keys, scores, seconds = zip(*events, strict=True) if events else ((), (), ())
            yield pa.record_batch(
                {
                    "key": pa.array(keys, pa.string()),
                    "score": pa.array(scores, pa.int64()),
                    "second": pa.array(seconds, pa.int64()),
                }
            )

    return lines.mapInArrow(parse, EVENTS)


def with_watermark(events: DataFrame) -> DataFrame:
    """Events with the column ``time``, which the watermark follows."""
    timed = events.withColumn("time", F.timestamp_seconds("second"))
    return timed.withWatermark("time", f"{DISORDER_SECONDS} seconds")


def key_of(workload: str) -> int:
    """The field of a line that a workload groups by."""
    return next(replay.key for replay in REPLAYS if replay.name == workload)


def run_to_the_end(lines: DataFrame, target: str) -> dict[str, Any]:
    """Writes all that is there as text, micro-batch by micro-batch, and says how many there were."""
    writer = lines.writeStream.format("text").option("checkpointLocation", f"{target}-checkpoint")
    query = writer.trigger(availableNow=True).start(target)
    query.awaitTermination()
    return {"micro_batches": query.lastProgress["batchId"] + 1}


def _replay(
    parse: Parse, spark: SparkSession, workload: str, source: str, target: str, files_per_batch: int
) -> dict[str, Any]:
    """Sums by key and window, each when the watermark has passed the window's end."""
    events = with_watermark(parse(lines_of(spark, source, files_per_batch), key_of(workload)))
    window = F.window("time", f"{WINDOW_SECONDS} seconds").alias("window")
    sums = events.groupBy("key", window).agg(F.sum("score").alias("sum"))
    name = F.concat_ws(" ", "key", F.unix_timestamp("window.start"))
    return run_to_the_end(sums.select(F.concat_ws("\t", name, "sum")), target)


def _state(
    parse: Parse, spark: SparkSession, folder: str, source: str, filling: int, batches: int, rows: int
) -> dict[str, Any]:
    """Sums by key that never end."""
    sums = parse(lines_of(spark, source, 1), 0).groupBy("key").agg(F.sum("score").alias("sum"))
    writer = sums.writeStream.outputMode("update").format("noop").option("checkpointLocation", folder)
    with started(writer) as query:
        return measured_state(query, filling, batches, rows)


def empty_batches(
    chain: Callable[[DataFrame, int], DataFrame], spark: SparkSession, folder: str, levels: int, batches: int
) -> dict[str, Any]:
    """Stateful operators in a row, to which nothing comes."""
    heartbeats = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1)
    )
    chained = chain(heartbeats.load().where("value < 0").select(F.col("value").alias("key")), levels)
    writer = chained.writeStream.foreachBatch(lambda frame, _: frame.collect())
    with started(writer.option("checkpointLocation", folder)) as query:
        return measured_batches(query, batches)


def _without_duplicates(frame: DataFrame, levels: int) -> DataFrame:
    for level in range(levels):
        name = f"key{level}"
        frame = frame.withColumn(name, F.col("key") + level).dropDuplicates([name])
    return frame


def _latency(
    ticks: Callable[[DataFrame, int], DataFrame],
    spark: SparkSession,
    folder: str,
    source: str,
    rate: int,
    keys: int,
    warming_seconds: float,
    seconds: float,
) -> dict[str, Any]:
    """Sums by key and window, each as soon as it changes."""
    with tick_source(source, rate) as options:
        loaded = spark.readStream.format(source).options(**options).load()
        rate_line = F.concat_ws(",", "value", F.unix_micros("timestamp")).alias("value")
        lines = loaded if source == "socket" else loaded.select(rate_line)
        timed = ticks(lines, keys).withColumn("time", F.timestamp_micros("born"))
        events = timed.withWatermark("time", f"{TICK_DISORDER_SECONDS} seconds")
        grouped = events.groupBy("key", F.window("time", f"{TICK_WINDOW_SECONDS} seconds"))
        sums = grouped.agg(F.sum("score").alias("sum"), F.max("born").alias("born"))
        delays = Delays(warming_seconds, seconds)

        def note(frame: DataFrame, _: int) -> None:
            delays.add(row.born for row in frame.collect())

        writer = sums.writeStream.outputMode("update").foreachBatch(note).option("checkpointLocation", folder)
        with started(writer) as query:
            delays.wait(query)
        return delays.numbers()


def _ticks_in_sql(lines: DataFrame, keys: int) -> DataFrame:
    """The key, score and birth of each event."""
    fields = F.split("value", ",")
    return lines.select(
        (fields[0].cast("long") % keys).alias("key"),
        F.lit(1).alias("score"),
        fields[1].cast("long").alias("born"),
    )


def _ticks_in_python(lines: DataFrame, keys: int) -> DataFrame:
    """Parses ticks with a function in Python."""

    def parse(records: Records) -> Records:
        for record in records:
            events = [parsed_tick(line, keys) for line in record.column(0).to_pylist()]
            columns = zip(*events, strict=True) if events else ((), (), ())
            arrays = [pa.array(column, pa.int64()) for column in columns]
            yield pa.record_batch(arrays, names=["key", "score", "born"])

    return lines.mapInArrow(parse, "key long, score long, born long")


SQL_JOBS = {
    "replay": partial(_replay, parsed_in_sql),
    "empty_batches": partial(empty_batches, _without_duplicates),
    "latency": partial(_latency, _ticks_in_sql),
}
PYTHON_JOBS = {
    "replay": partial(_replay, parsed_in_python),
    "state": partial(_state, parsed_in_python),
    "latency": partial(_latency, _ticks_in_python),
}
