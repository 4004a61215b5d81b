"""The state that Spark keeps for an operator of a query, read as a frame of pages."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.error import refusal


def pages_of_operator(spark: SparkSession, location: str, operator: int) -> DataFrame:
    """The pages after the last finished micro-batch: the shard's key, the grouping's label, page number, and content.

    Spark counts operators from the end of the query: operator 0 is the deepest level.
    """
    pages = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", "pages")
    columns = ("key.shard as shard", "user_map_key.grouping as grouping", "user_map_key.page as page")
    return pages.load(location).selectExpr(*columns, "user_map_value.page as content")


def check_readable(spark: SparkSession, location: str) -> None:
    """Refuses paths that Spark's queries find and its state reader does not: the reader escapes names twice."""
    jvm: Any = spark._jvm
    uri = jvm.org.apache.hadoop.fs.Path(location).toUri()
    if uri.getRawPath() != uri.getPath():
        what = "Spark cannot read state from a folder with spaces or other special characters in its path"
        hint = "keep the checkpoint in a folder whose path has none of these characters"
        raise refusal(ValueError, what, where=f"in {location}", hint=hint)
