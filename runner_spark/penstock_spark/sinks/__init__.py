"""Writing sinks: each description in `penstock.io` becomes an encoder for the tasks and a commit for the
driver.
"""

from __future__ import annotations

from penstock_spark.sinks import columns, driver_list, frames, parquet, tables, text
from penstock_spark.sinks.plan import Encoder, SinkPlan, plan_sink

__all__ = [
    "Encoder",
    "SinkPlan",
    "columns",
    "driver_list",
    "frames",
    "parquet",
    "plan_sink",
    "tables",
    "text",
]
