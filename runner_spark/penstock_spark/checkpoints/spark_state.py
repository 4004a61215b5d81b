"""The state that Spark keeps for the operators of a query: whether it is there, and its pages as a frame."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from penstock.error import refusal
from penstock_spark.checkpoints.spark_logs import last_micro_batch, make_damaged_log_error
from penstock_spark.files.place import Place
from penstock_spark.session.backends import backend_of


def pages_of_operator(spark: SparkSession, location: str, operator: int) -> DataFrame:
    """Returns the pages after the last finished micro-batch: shard's key, grouping's label, page number, content.

    Spark counts operators from the end of the query: operator 0 is the deepest level.
    """
    pages = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", "pages")
    columns = ("key.shard as shard", "user_map_key.grouping as grouping", "user_map_key.page as page")
    return pages.load(location).selectExpr(*columns, "user_map_value.page as content")


def check_state(spark_place: Place, operators: int, shards: int) -> None:
    """Raises ValueError if a shard lacks the state after the last finished micro-batch, which Spark continues.

    Spark itself looks for it in the first micro-batch, which a stream without news may begin hours later. Each shard
    stores a file for each micro-batch, ``state/0/2/8.changelog`` or ``state/0/2/8.zip`` after the micro-batch 7. This
    looks for that one file, and not for the earlier ones to which a changelog adds.
    """
    version = last_micro_batch(spark_place.inside("commits")) + 1
    if version == 0:
        return
    wanted = [f"{operator}/{shard}" for operator in range(operators) for shard in range(shards)]
    # Hadoop looks for a whole name, and lists no folder. In its second format, Spark adds a name of its own.
    for name in (f"{version}.changelog", f"{version}.zip", f"{version}_*"):
        found = {path.rpartition("/")[0] for path in spark_place.inside("state").paths(f"*/*/{name}")}
        wanted = [folder for folder in wanted if folder not in found]
        if not wanted:
            return
    raise make_damaged_log_error(spark_place, f"state/{wanted[0]}/{version}.changelog", "it is missing")


def check_readable(spark: SparkSession, location: str) -> None:
    """Refuses paths that Spark's queries find and its state reader does not: the reader escapes names twice."""
    if not backend_of(spark).reads_state_at(location):
        what = "Spark cannot read state from a folder with spaces or other special characters in its path"
        hint = "keep the checkpoint in a folder whose path has none of these characters"
        raise refusal(ValueError, what, where=f"in {location}", hint=hint)
