"""The join of two streams by Spark itself."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from keyed_inputs import JOIN_SECONDS, SIDES
from stream_native import Parse, lines_of, parsed_in_python, parsed_in_sql, run_to_the_end, with_watermark


def _join(
    parse: Parse, spark: SparkSession, source: str, target: str, files_per_batch: int = 1
) -> dict[str, Any]:
    """Pairs of orders and payments of an id and window; the watermark on the window tells what may be forgotten."""
    window = F.window("time", f"{JOIN_SECONDS} seconds").alias("window")
    orders, payments = (
        with_watermark(parse(lines_of(spark, f"{source}/{name}", files_per_batch), 0)).select(
            "key", window, F.col("score").alias(amount)
        )
        for name, amount in zip(SIDES, ("price", "paid"), strict=True)
    )
    pairs = orders.join(payments, ["key", "window"])
    name = F.concat_ws(" ", "key", F.unix_timestamp("window.start"))
    return run_to_the_end(pairs.select(F.concat_ws("\t", name, F.col("price") - F.col("paid"))), target)


def _jobs(parse: Parse) -> dict[str, Any]:
    joined = partial(_join, parse)
    return {"join": joined, "join_fill": joined}


SQL_JOBS, PYTHON_JOBS = _jobs(parsed_in_sql), _jobs(parsed_in_python)
