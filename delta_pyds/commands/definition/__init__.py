"""Changes of a table's definition: creation, replacement, columns, constraints, properties, protocol; without Spark.

- ``create``: tables created and replaced
- ``columns``: columns and nested fields added, renamed, dropped
- ``replace_columns``: the columns replaced by a list (REPLACE COLUMNS)
- ``alter_column``: the type, comment, nullability, default or position of one column changed
- ``sync_identity``: the high-water mark of an identity column, set from existing values
- ``constraints``: CHECK constraints added and dropped
- ``properties``: table properties set and unset, the protocol raised
- ``compatible_files``: whether the existing files meet the rules of Iceberg compatibility
- ``footers``: the footers of a table's files, each read once
- ``row_tracking``: row ids for the existing files of a table
- ``unmapping``: column mapping is removed
- ``drop_feature``: a feature is dropped, with its artifacts
- ``dropped_history``: earlier versions are protected or truncated
- ``feature_artifacts``: artifacts of a feature in the table, and their removal
- ``widened_files``: files of narrower types than the table's, rewritten
- ``change``: one change of a table's definition, checked and committed
"""
