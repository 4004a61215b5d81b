"""Values for connectors: they become columns of Arrow, and a check says what a schema would lose of them."""

from penstock_spark.columns.losses import (
    Loss,
    forbidden_none,
    misfit_of,
    missing_field,
    overflows,
    unknown_fields,
    wrong_zone,
)
from penstock_spark.columns.records import plain, schema_of, to_batch
from penstock_spark.columns.types import (
    is_beyond_spark,
    is_unknown,
    limits_of,
    struct_of,
    value_of,
)
from penstock_spark.session.spark_versions import to_arrow_schema
from penstock_spark.sinks.as_columns import schema_of as spark_schema_of

__all__ = [
    "Loss",
    "forbidden_none",
    "is_beyond_spark",
    "is_unknown",
    "limits_of",
    "misfit_of",
    "missing_field",
    "overflows",
    "plain",
    "schema_of",
    "spark_schema_of",
    "struct_of",
    "to_arrow_schema",
    "to_batch",
    "unknown_fields",
    "value_of",
    "wrong_zone",
]
