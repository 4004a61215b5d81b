"""Any of Spark's sinks, by the name of its format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from penstock.io.sparkio import SparkSink
from penstock_spark.arrow.records import schema_of, to_batch
from penstock_spark.session.spark_versions import to_arrow_schema
from penstock_spark.sinks.plan import Encoder, SinkPlan, plan_sink


@plan_sink.register
def plan_table(sink: SparkSink, where: str) -> SinkPlan:
    """Rows as a table that Spark writes; the step's output is empty."""
    schema = sink.schema
    if schema is None:
        schema = from_arrow_schema(schema_of(sink.element_type, where))
    elif isinstance(schema, str):
        schema = StructType.fromDDL(schema)

    def commit(rows: DataFrame) -> list[Any]:
        writer = rows.write.format(sink.format).mode(sink.mode).options(**dict(sink.options))
        if sink.partition_by:
            writer = writer.partitionBy(*sink.partition_by)
        if sink.path is None:
            writer.save()
        else:
            writer.save(sink.path)
        return []

    columns = to_arrow_schema(schema)
    make_encoder: Callable[[], Encoder] = lambda: RecordRows(columns, where)  # noqa: E731
    plan = SinkPlan(schema, make_encoder, None, commit)
    return replace(plan, columns=plan)


@dataclass(frozen=True)
class RecordRows(Encoder):
    """Encodes records as rows of a schema.

    Attributes:
        schema: The Arrow schema of the rows.
        where: The step, for errors.
        batched: Whether the elements are ``pyarrow.Table`` values.
    """

    schema: pa.Schema
    where: str
    batched: bool = False

    def start(self) -> pa.RecordBatch | None:
        """Nothing."""
        return None

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """One row a record."""
        if not self.batched:
            return to_batch(values, self.schema, self.where)
        table = pa.concat_tables([value.cast(self.schema) for value in values] or [self.schema.empty_table()])
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], self.schema)

    def finish(self) -> pa.RecordBatch | None:
        """Nothing."""
        return None
