"""Planning a read: columns, a predicate, and the files that may have matching rows.

- ``column_selection``: which columns a scan returns
- ``row_selection``: which rows are wanted, and the condition on files that follows
- ``file_statistics``: partition values and statistics of files as Arrow columns
- ``scan``: a scan of a snapshot: its files, as batches of Arrow rows, and the state of its tasks
- ``packing``: files into partitions of about equal cost
- ``partition_match``: predicates over partition columns, evaluated exactly
- ``live_files``: files of a scan as actions, for a write that removes them
- ``log_answers``: the number of rows of a table, and bounds of its columns, out of its log alone
- ``read_report``: which engine reads a DataFrame, and why
"""
