"""The parts of connectors for tables: how a stream commits to a table, its columns, and changes by key."""

from penstock_spark.files.file_store import local_copies
from penstock_spark.sinks.stream_commits import (
    BEFORE_ALL,
    TryAgain,
    commit_files,
    digest,
    has_begun,
    holds,
    is_written,
    not_committed,
    persist,
)
from penstock_spark.sinks.table_changes import DELETED, LastChanges, change_schema, check_keys
from penstock_spark.sinks.table_columns import columns_of, no_type

__all__ = [
    "BEFORE_ALL",
    "DELETED",
    "LastChanges",
    "TryAgain",
    "change_schema",
    "check_keys",
    "columns_of",
    "commit_files",
    "digest",
    "has_begun",
    "holds",
    "is_written",
    "local_copies",
    "no_type",
    "not_committed",
    "persist",
]
