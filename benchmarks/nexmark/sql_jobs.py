"""The queries in SQL at work: penstock's `SqlTransform` over parsed lines or Parquet, and Spark's own SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import penstock as beam
from nexmark.model import KINDS
from nexmark.pipelines import Events, only
from nexmark.queries import as_line
from nexmark.sql import BATCH, SPARK, STREAM, TEXTS, Words, views
from penstock.io.sparkio import WriteToSpark
from penstock.transforms.sql import Catalog, SqlTransform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def batch_lines(events: Events, query: str) -> Any:
    """The lines of a query's answer."""
    return _tables(events) | query_of(query) | "Line" >> beam.Map(_line)


def stream_lines(events: Events, query: str) -> Any:
    """The lines of the changes of a query's answer; a line that takes an equal one back ends with ``undo``."""
    return (
        _tables(events)
        | _transform(f"SELECT STREAM *, Sys.Undo FROM ({TEXTS[query](STREAM)})", STREAM)
        | ("Change" >> beam.Map(_change))
    )


def over_parquet(pipeline: beam.Pipeline, query: str, source: str, target: str) -> SqlTransform:
    """Runs a query from Parquet to Parquet; the transform says which engine computes it."""
    tables = {
        name: pipeline
        | f"Read {name}"
        >> beam.io.ReadFromParquet(f"{source}/{name}/*.parquet", as_rows=True).with_output_types(kind)
        for name, kind in KINDS.items()
    }
    transform = query_of(query)
    _ = tables | transform | WriteToSpark("parquet", target)
    return transform


def by_spark(spark: SparkSession, query: str, source: str) -> DataFrame:
    """The rows of a query's answer by Spark's own SQL, over Parquet."""
    for name in KINDS:
        spark.read.parquet(f"{source}/{name}").createOrReplaceTempView(name)
    for name, text in views(SPARK).items():
        spark.sql(text).createOrReplaceTempView(name)
    return spark.sql(TEXTS[query](SPARK))


def query_of(query: str) -> SqlTransform:
    """A query as a table."""
    return _transform(TEXTS[query](BATCH), BATCH)


def _transform(text: str, words: Words) -> SqlTransform:
    catalog = Catalog()
    for name, view in views(words).items():
        catalog.create_view(name, view)
    return SqlTransform(text, catalog)


def _tables(events: Events) -> dict[str, Any]:
    return {name: events | only(kind) for name, kind in KINDS.items()}


def _line(row: Any) -> str:
    return as_line(row)


def _change(row: Any) -> str:
    *cells, undo = row
    return as_line([*cells, undo] if undo else cells)
