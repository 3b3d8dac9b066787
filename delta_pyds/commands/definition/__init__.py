"""What a table is, changed: created and replaced, columns, constraints, properties, protocol; without Spark.

- ``create``: a new table, or another one in its place
- ``columns``: columns and nested fields added, renamed, dropped
- ``replace_columns``: the columns as a list says them
- ``alter_column``: one column with another type, comment, nullability, default or place
- ``sync_identity``: the high-water mark of an identity column set by the values that there are
- ``constraints``: CHECK constraints added and dropped
- ``properties``: table properties set and unset, the protocol raised
- ``compatible_files``: whether the files are as Iceberg compatibility wants them
- ``footers``: the footers of a table's files, each looked at
- ``row_tracking``: row ids for the files that a table has already
- ``unmapping``: column mapping is removed
- ``rewrite``: files rewritten for the table as it will be
- ``drop_feature``: a feature is dropped, with all that is left of it
- ``dropped_history``: earlier versions are protected or truncated
- ``feature_traces``: artifacts of a feature in the table, and their removal
- ``widened_files``: files of narrower types than the table's, rewritten
- ``change``: one change of a table's definition, checked and committed
"""
