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

_ENVIRONMENT = (
    "its store is named in the environment of the program, which the workers of a server do not have"
)
_CHANGES = "a stream does not notice that a file has changed, or is not what its name says: docs/running.md"
_ZONE = "a session whose time zone is not UTC is refused: docs/running.md"
_PACKAGE = (
    "the workers of the server need the package of the connector, which this program has on its path only"
)
_ORACLE = "it compares Python with Spark alone, whose errors have other classes there"
FAR_AWAY = "in a session of Spark Connect, only Spark reaches such a file system, and penstock refuses it"
"""The reason for cases on a file system that only Java reaches."""

LEFT_OUT: Mapping[str, str] = {
    "test_benchmarks::test_a_tiny_pipeline_is_measured": _JAVA,
    "test_class_archive": _PROGRAMS,
    "test_declarative_pipelines": _PROGRAMS,
    "test_foreign_clients": _PROGRAMS,
    "test_interrupted_runs": _PROGRAMS,
    "test_java": _PROGRAMS,
    "test_kafka_into_postgres": _PROGRAMS,
    "test_killed_daemons": _PROGRAMS,
    "test_killed_lakes": _PROGRAMS,
    "test_killed_streams": _PROGRAMS,
    "test_lost_servers": _PROGRAMS,
    "test_native_streams_are_ended": _PROGRAMS,
    "test_notebook": _PROGRAMS,
    "test_object_stores": _ENVIRONMENT,
    "test_on_connect": _PROGRAMS,
    "test_printing_examples": _PROGRAMS,
    "test_readable_errors::test_a_java_that_is_gone_is_named": _PROGRAMS,
    "test_signalled_sql_jobs": _PROGRAMS,
    "test_sql_text": _ORACLE,
    "test_start": _PROGRAMS,
    "test_workers_python": _PROGRAMS,
    "test_stream_tables::test_a_database_is_added_to_at_least_once": _JAVA,
}

EXPECTED_FAILURES: Mapping[str, str] = {
    "test_database::test_no_password_is_shown_anywhere": _JAVA,
    **dict.fromkeys(
        (
            "test_redis_streams::test_a_stream_sets_keys",
            "test_redis_streams::test_pairs_become_keys_and_other_elements_are_refused",
            "test_small_examples::test_what_the_docstrings_of_an_example_say_is_true[redis_streams]",
        ),
        _PACKAGE,
    ),
    **{
        f"test_files_that_change::{name}": _CHANGES
        for name in (
            "test_a_file_of_parquet_without_a_byte_is_told[streaming]",
            "test_a_file_that_becomes_shorter_before_it_is_read_is_an_error",
            "test_a_file_that_is_not_the_bzip2_that_its_name_tells_is_not_taken_for_an_empty_one[text]",
            "test_a_file_that_spark_would_unpack_in_a_form_of_hadoops_is_refused_before_it_is_read[text]",
            "test_a_micro_batch_that_is_done_again_misses_a_file_that_has_gone_since",
            "test_files_that_grow_or_come_and_those_that_go_when_they_are_read_are_no_error",
        )
    },
    "test_kafka::test_lines_that_a_file_had_lost_for_a_while_are_in_the_topic_in_the_end": _CHANGES,
    "test_listing_of_streams": _JAVA,
    "test_live_views::test_a_batch_tells_how_far_it_has_come": _PROGRESS,
    "test_live_views::test_what_spark_computes_in_columns_is_unknown_and_not_zero": _PROGRESS,
    "test_native_columns::test_a_typed_pipeline_writes_what_a_query_by_hand_writes_and_no_python_runs": _JAVA,
    "test_native_columns::test_sums_have_one_part_where_the_footers_show_that_no_sum_is_too_large": _JAVA,
    "test_native_columns::test_means_of_whole_numbers_are_rounded_once_as_in_python": _JAVA,
    "test_readable_errors::test_a_checkpoint_below_a_file_is_named": _OTHER_ERROR,
    "test_rows::test_a_user_sees_what_the_row_says_when_the_pipeline_runs[a file system that does not exist]": (
        _OTHER_ERROR
    ),
    "test_session::test_a_moved_frame_runs_with_the_settings_of_its_new_session": _JAVA,
    "test_session::test_the_environment_of_the_program_is_not_changed": _JAVA,
    "test_session::test_the_runners_session_sees_the_users_settings_and_views_and_changes_neither": _JAVA,
    "test_sql_jobs::test_settings_of_text_formats_are_known_to_spark": _JAVA,
    "test_settings_of_users::test_times_of_tables_are_instants": _ZONE,
    "test_sql_streams_on_spark::test_results_are_those_of_python": _ZONE,
    "test_sql_whole::test_tables_of_from_are_joined_by_the_equalities_of_where": _JAVA,
    "test_state_table::test_what_is_no_checkpoint_has_no_state": _OTHER_ERROR,
    "test_stream_refusals::test_what_cannot_be_streamed_is_refused_before_the_query_starts"
    "[<lambda>-options3-No FileSystem-packages]": _OTHER_ERROR,
    "test_stream_sinks::test_a_micro_batch_without_rows_is_one_job_and_no_file": _JAVA,
    "test_stream_sinks::test_several_sinks_are_one_job_more_and_the_steps_before_them_run_once": _JAVA,
    "test_stream_sinks::test_the_steps_before_no_sink_or_one_run_once": _JAVA,
    "test_what_is_told::test_a_query_has_the_name_of_its_pipeline_and_its_jobs_say_what_they_do": _JAVA,
    "test_what_is_told::test_spark_says_of_each_job_which_steps_run_in_it": _JAVA,
}


def reason_in(table: Mapping[str, str], module: str, function: str, case: str) -> str | None:
    """Returns the reason that a table has for a test; None without one.

    >>> table = {"test_a": "all", "test_a::test_b": "one"}
    >>> reason_in(table, "test_a", "test_b", "test_b[1]"), reason_in(table, "test_a", "test_c", "test_c")
    ('one', 'all')
    """
    keys = (f"{module}::{case}", f"{module}::{function}", module)
    return next((table[key] for key in keys if key in table), None)
