"""The tests that ``--connect`` leaves out, and those that it expects to fail in a session of Spark Connect.

Each has its reason. A key is a module, a test of it (``module::test``), or one case (``module::test[case]``); the most
precise one counts. A test that is expected to fail and passes is an error, so that its entry goes.
"""

from __future__ import annotations

from collections.abc import Mapping

_PROGRAMS = "it starts programs that have a Spark of their own, for which the switch changes nothing"
_JAVA = "it looks at Spark's plans, jobs or settings through Java, which a client does not have"
_PROGRESS = "a server does not tell the progress of jobs, their stages, or how many rows they read"
_OTHER_ERROR = "another error, also in three parts: tasks and the program reach disks and volumes only"

LEFT_OUT: Mapping[str, str] = {
    "test_class_archive": _PROGRAMS,
    "test_declarative_pipelines": _PROGRAMS,
    "test_foreign_clients": _PROGRAMS,
    "test_interrupted_runs": _PROGRAMS,
    "test_java": _PROGRAMS,
    "test_killed_daemons": _PROGRAMS,
    "test_killed_streams": _PROGRAMS,
    "test_native_streams_are_ended": _PROGRAMS,
    "test_on_connect": _PROGRAMS,
    "test_signalled_sql_jobs": _PROGRAMS,
    "test_start": _PROGRAMS,
    "test_workers_python": _PROGRAMS,
    "test_stream_tables::test_a_database_is_added_to_at_least_once": _JAVA,
}

EXPECTED_FAILURES: Mapping[str, str] = {
    "test_live_views::test_a_batch_tells_how_far_it_has_come": _PROGRESS,
    "test_live_views::test_what_spark_computes_in_columns_is_unknown_and_not_zero": _PROGRESS,
    "test_native_columns::test_a_typed_pipeline_writes_what_a_query_by_hand_writes_and_no_python_runs": _JAVA,
    "test_native_columns::test_sums_have_one_part_where_the_footers_show_that_no_sum_is_too_large": _JAVA,
    "test_native_columns::test_means_of_whole_numbers_are_rounded_once_as_in_python": _JAVA,
    "test_state_table::test_what_is_no_checkpoint_has_no_state": _OTHER_ERROR,
}


def reason_in(table: Mapping[str, str], module: str, function: str, case: str) -> str | None:
    """Returns the reason that a table has for a test; None without one.

    >>> table = {"test_a": "all", "test_a::test_b": "one"}
    >>> reason_in(table, "test_a", "test_b", "test_b[1]"), reason_in(table, "test_a", "test_c", "test_c")
    ('one', 'all')
    """
    keys = (f"{module}::{case}", f"{module}::{function}", module)
    return next((table[key] for key in keys if key in table), None)
