"""The settings of SQL on which the meaning of a program depends."""

from __future__ import annotations

SQL_MEANING = {
    # Native sums rely on it: without it, a sum beyond 64 bits wraps around.
    "spark.sql.ansi.enabled": "true",
    # A timestamp is an instant, and not the local time that a clock shows.
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""They are the same in each run and override the user's."""
