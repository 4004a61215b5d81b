"""Values for connectors: they become columns of Arrow, and a check says what a schema would lose of them."""

from penstock_spark.columns.losses import (
    Loss,
    find_unknown_fields,
    find_wrong_zone,
    make_missing_field_loss,
    make_none_loss,
    make_type_loss,
    overflows,
)
from penstock_spark.columns.records import schema_of, to_batch, to_plain
from penstock_spark.columns.types import (
    has_unknown_type,
    is_unsupported_by_spark,
    limits_of,
    struct_of,
    value_of,
)
from penstock_spark.session.spark_versions import to_arrow_schema
from penstock_spark.sinks.column_sinks import parse_spark_schema as spark_schema_of

__all__ = [
    "Loss",
    "make_none_loss",
    "is_unsupported_by_spark",
    "has_unknown_type",
    "limits_of",
    "make_type_loss",
    "make_missing_field_loss",
    "overflows",
    "to_plain",
    "schema_of",
    "spark_schema_of",
    "struct_of",
    "to_arrow_schema",
    "to_batch",
    "find_unknown_fields",
    "value_of",
    "find_wrong_zone",
]
