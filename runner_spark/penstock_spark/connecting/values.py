"""How the values of elements become columns of Arrow, and what a schema would lose of them."""

from penstock_spark.arrow.losses import (
    FLOAT_LARGEST,
    Loss,
    forbidden_none,
    misfit_of,
    missing_field,
    overflows,
    unknown_fields,
    wrong_zone,
)
from penstock_spark.arrow.records import plain, schema_of, to_batch
from penstock_spark.arrow.types import is_beyond_spark, is_unknown, limits_of, spelling_of, struct_of
from penstock_spark.session.spark_versions import to_arrow_schema
from penstock_spark.sinks.as_columns import schema_of as spark_schema_of

__all__ = [
    "FLOAT_LARGEST",
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
    "spelling_of",
    "struct_of",
    "to_arrow_schema",
    "to_batch",
    "unknown_fields",
    "wrong_zone",
]
