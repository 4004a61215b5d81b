"""Records as rows of columns that Spark writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock_spark.columns.records import to_batch
from penstock_spark.sinks.plan import Encoder


@dataclass(frozen=True)
class RecordRows(Encoder):
    schema: pa.Schema
    where: str
    batched: bool = False  # Whether the elements are ``pyarrow.Table`` values.

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        if not self.batched:
            return to_batch(values, self.schema, self.where)
        table = pa.concat_tables([value.cast(self.schema) for value in values] or [self.schema.empty_table()])
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], self.schema)
