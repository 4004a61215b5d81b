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

FAR_AWAY = "in a session of Spark Connect, only Spark reaches such a file system, and penstock refuses it"
"""The reason for cases on a file system that only Java reaches."""

_UNTRIED = (
    "test_against_beam",
    "test_avro",
    "test_bad_input_on_spark",
    "test_beam_game_examples",
    "test_benchmarks",
    "test_clocks_that_are_set",
    "test_contenders",
    "test_cookbook",
    "test_csv_on_spark",
    "test_database",
    "test_database_reading",
    "test_dataframes",
    "test_delta",
    "test_delta_versions",
    "test_docs",
    "test_driver_rows",
    "test_elements_in_errors",
    "test_ends_of_streams",
    "test_enrich",
    "test_figures_of_runs",
    "test_files_that_change",
    "test_forged_failures",
    "test_full_disks",
    "test_goals_sql",
    "test_history_sql",
    "test_iceberg",
    "test_idle_streams",
    "test_kafka",
    "test_kafka_into_postgres",
    "test_kafka_troubles",
    "test_kept_checkpoints",
    "test_killed_files",
    "test_killed_lakes",
    "test_leaderboard",
    "test_ledger",
    "test_lineage",
    "test_listing_of_streams",
    "test_mirrors",
    "test_nexmark",
    "test_notebook",
    "test_notebooks",
    "test_object_stores",
    "test_orc_pipelines",
    "test_order_of_files",
    "test_outputs",
    "test_overload",
    "test_partitioned_parquet",
    "test_partitioned_records",
    "test_postgres_changes_on_spark",
    "test_printing_examples",
    "test_queries_on_spark",
    "test_ranges_on_spark",
    "test_readable_errors",
    "test_redis_streams",
    "test_registrations",
    "test_retractions_on_spark",
    "test_rewritten_checkpoints",
    "test_row_joins",
    "test_rows",
    "test_schemas",
    "test_services",
    "test_session",
    "test_settings_of_users",
    "test_shapes_on_spark",
    "test_shipping",
    "test_small_examples",
    "test_splittable",
    "test_sql",
    "test_sql_aggregates",
    "test_sql_as_written",
    "test_sql_equality",
    "test_sql_function_cases",
    "test_sql_generators",
    "test_sql_jobs",
    "test_sql_over",
    "test_sql_records",
    "test_sql_scalars",
    "test_sql_streams_on_spark",
    "test_sql_subqueries",
    "test_sql_tables",
    "test_sql_text",
    "test_sql_whole",
    "test_staged_sources",
    "test_steps_that_leave",
    "test_stream_refusals",
    "test_stream_sinks",
    "test_stream_sources",
    "test_streaming_dataframe",
    "test_streaming_dataframes",
    "test_sums_on_spark",
    "test_tasks_that_read",
    "test_tfrecord",
    "test_tpc",
    "test_transcripts",
    "test_types_of_rows",
    "test_upserts",
    "test_waiting_streams",
    "test_watched_inputs",
    "test_what_is_told",
    "test_window_files",
    "test_worker_socket",
    "test_written_again_on_spark",
)
"""The modules that were not tried on a server yet. Who tries one takes it out, and enters what fails."""

LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(_UNTRIED, "it was not tried on a server yet"),
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
