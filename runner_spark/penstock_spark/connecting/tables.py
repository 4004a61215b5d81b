"""The parts of connectors for tables: how a stream commits to a table, its columns, and changes by key."""

from penstock_spark.files.file_store import copy_to_disk
from penstock_spark.sinks.stream_commits import (
    BEFORE_ALL,
    RetryCommit,
    commit_files,
    digest_stream,
    has_begun,
    is_committed,
    is_written,
    make_commit_error,
    retry_commits,
)
from penstock_spark.sinks.table_changes import DELETED, LatestUpserts, check_keys, make_upsert_schema
from penstock_spark.sinks.table_columns import choose_columns, make_type_error

__all__ = [
    "BEFORE_ALL",
    "DELETED",
    "LatestUpserts",
    "RetryCommit",
    "make_upsert_schema",
    "check_keys",
    "choose_columns",
    "commit_files",
    "digest_stream",
    "has_begun",
    "is_committed",
    "is_written",
    "copy_to_disk",
    "make_type_error",
    "make_commit_error",
    "retry_commits",
]
