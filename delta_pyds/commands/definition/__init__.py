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
- ``unmapping``: column mapping taken away
- ``rewrite``: files written anew for the table as it will be
- ``drop_feature``: a feature taken away, and all that is left of it
- ``dropped_history``: the versions before, protected or truncated
- ``feature_traces``: what a table has of a feature now, and how that goes
- ``widened_files``: files of narrower types than the table's, written anew
- ``change``: one change of a table's definition, checked and committed
"""
