"""The core of tests that every Spark runs: a few of each subject, by name.

A subject is a column of README's table of versions. A drawn run takes a part of each subject, and leaves out what takes
minutes: kills, and clients that need an environment of their own.
"""

from __future__ import annotations

from tests.support.sampling import part_of

_SPARK = "tests/spark"
_ROWS = "tests/spark/row_changes"

CORE: dict[str, tuple[str, ...]] = {
    "read, write": (
        f"{_SPARK}/test_read.py::test_a_table_with_partitions_checkpoint_and_deletion_vectors_reads_whole",
        f"{_SPARK}/test_read.py::test_a_table_of_every_type_reads_with_its_values",
        f"{_SPARK}/test_read.py::test_the_source_works_in_sql_views_and_new_sessions",
        f"{_SPARK}/test_read.py::test_explicit_registration_serves_every_session_and_can_be_repeated",
        f"{_SPARK}/test_change_feed.py::test_columns_and_where_apply_to_change_rows",
        f"{_SPARK}/test_write.py::test_every_type_comes_back_as_it_was",
        f"{_SPARK}/test_write.py::test_replace_where_and_dynamic_overwrite",
        f"{_SPARK}/test_write.py::test_a_failing_task_leaves_the_table_as_it_was",
        f"{_SPARK}/test_file_index.py::test_names_of_any_characters_are_spelled_as_spark_spells_them",
        f"{_SPARK}/test_native_vectors.py::test_drawn_vectors_leave_the_rows_of_the_model",
        f"{_SPARK}/test_native_scan.py::test_floating_point_filters_find_what_parquet_statistics_leave_out",
    ),
    "row commands": (
        f"{_ROWS}/test_delete.py::test_our_own_evaluator_does_the_same",
        f"{_ROWS}/test_update.py",
        f"{_ROWS}/test_merge.py::test_clauses_of_all_kinds_in_order",
        f"{_ROWS}/test_merge.py::test_what_spark_alone_evaluates",
        f"{_SPARK}/test_maintenance.py::test_restore_returns_the_references_numbers",
    ),
    "rules and values of columns": (
        f"{_ROWS}/test_table_expression.py::test_what_computes_a_value_has_sparks_type",
        f"{_ROWS}/test_table_expression.py::test_a_function_of_a_user_under_a_builtin_name_is_not_called",
        f"{_ROWS}/test_table_expression.py::test_a_text_that_calls_a_function_of_the_session_is_left_to_spark",
        f"{_ROWS}/test_table_expression.py::test_a_class_of_spark_under_a_name_of_the_session_is_not_sparks_function",
        f"{_ROWS}/test_table_expression.py::test_each_function_of_spark_was_judged",
        f"{_ROWS}/test_computed.py::test_defaults_come_first_then_generated_columns_then_rules",
        f"{_ROWS}/test_computed.py::test_changed_rows_keep_what_only_spark_knows",
        f"{_ROWS}/test_computed.py::test_what_is_refused_is_refused_before_anything_is_written",
    ),
    "SQL, `install`": (
        f"{_SPARK}/test_sql.py::test_rows_are_inserted_changed_and_read_at_every_version",
        f"{_SPARK}/test_sql.py::test_merge_has_every_clause",
        f"{_SPARK}/test_sql.py::test_tables_are_defined_and_altered",
        f"{_SPARK}/test_install.py::test_a_program_for_delta_spark_needs_one_line",
        f"{_SPARK}/test_install.py::test_sql_by_path_is_ours_and_all_other_is_sparks",
        f"{_SPARK}/test_scripts.py::test_a_statement_that_fails_ends_the_script",
        f"{_SPARK}/test_spark_catalog.py::test_questions_have_the_answers_of_sql",
        f"{_SPARK}/test_named_tables.py::test_a_name_is_read_by_plain_sql_at_each_query_and_goes_again",
        f"{_SPARK}/test_startup.py::test_a_program_for_delta_spark_runs_unchanged[spark-submit]",
        "tests/unit/spark/install/test_patches.py",
    ),
    "streams": (
        f"{_SPARK}/test_stream_read.py::test_the_snapshot_comes_first_and_then_every_commit_once",
        f"{_SPARK}/test_stream_read.py::test_limits_hold_across_the_initial_snapshot_and_the_commits_after_it",
        f"{_SPARK}/test_stream_read.py::test_limits_hold_for_a_trigger_that_runs_on",
        f"{_SPARK}/test_stream_write.py::test_a_batch_that_spark_forgot_is_not_written_twice",
        f"{_SPARK}/test_stream_write.py::test_types_and_partitions_are_as_in_batch",
        "tests/concurrency/test_crashes.py::test_each_row_arrives_once_though_spark_is_killed",
    ),
    "Connect": (
        f"{_SPARK}/test_connect.py::test_reading_and_writing_through_spark_connect[whole_client]",
        f"{_SPARK}/test_connect.py::test_reading_and_writing_through_spark_connect[thin_client]",
        f"{_SPARK}/test_connect.py::test_programs_for_delta_spark_run_after_install[whole_client]",
        f"{_SPARK}/test_connect.py::test_programs_for_delta_spark_run_after_install[thin_client]",
    ),
}

_DRAWN_ONE_IN = 6
_MINUTES = ("_is_killed", "[thin_client]")


def drawn() -> tuple[str, ...]:
    """The tests of a drawn run."""
    quick = [[test for test in subject if not test.endswith(_MINUTES)] for subject in CORE.values()]
    return tuple(test for subject in quick for test in part_of(subject, _DRAWN_ONE_IN))


def whole() -> tuple[str, ...]:
    return tuple(test for subject in CORE.values() for test in subject)
