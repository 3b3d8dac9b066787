"""Planning a read: columns, a predicate, and the files that may have matching rows.

- ``column_selection``: the columns that a scan returns
- ``row_selection``: the wanted rows, and the resulting condition on files
- ``file_statistics``: partition values and statistics of files as Arrow columns
- ``scan``: a scan of a snapshot: its files as Arrow batches, and the state of its tasks
- ``packing``: files packed into partitions of about equal cost
- ``partition_match``: exact predicates over partition columns
- ``live_files``: files of a scan as actions, for a write that removes them
- ``log_answers``: counts of rows and bounds of columns from the log alone
- ``read_report``: the engine that reads a DataFrame, and the reason
"""
