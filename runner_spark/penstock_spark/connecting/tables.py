"""The parts of connectors for tables: how a stream commits to a table, its columns, and changes by key."""

from penstock_spark.files.local_copies import local_copies
from penstock_spark.sinks.stream_commits import (
    BEFORE_ALL,
    RetryCommit,
    commit_error,
    commit_with_retries,
    has_begun,
    is_committed,
    is_written,
    stream_digest,
)
from penstock_spark.sinks.table_changes import DELETED, LatestUpserts, check_keys, schema_of_upserts
from penstock_spark.sinks.table_columns import columns_to_write, no_type_error

__all__ = [
    "BEFORE_ALL",
    "DELETED",
    "LatestUpserts",
    "RetryCommit",
    "schema_of_upserts",
    "check_keys",
    "columns_to_write",
    "stream_digest",
    "has_begun",
    "is_committed",
    "is_written",
    "local_copies",
    "no_type_error",
    "commit_error",
    "commit_with_retries",
]
