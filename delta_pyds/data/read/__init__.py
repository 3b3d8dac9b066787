"""Data files to batches of live rows, in the logical columns of the table.

- ``concurrent``: several files at once, in the order of the files
- ``computed_changes``: the changed rows of a commit that did not record them
- ``paired_changes``: updates: deletes and inserts of one version with equal keys
- ``related_files``: files that are compared, in groups that share no rows
- ``compared_rows``: rows that were compared in memory, as rows of the scan
- ``held_rows``: rows of two sides, in buckets that fit into memory
- ``reader``: the entry: a file of a scan to batches
- ``data_file``: one open file: its footer, its columns, and its errors
- ``dictionaries``: text that the file stores in dictionaries
- ``footer_statistics``: row group statistics in the footer
- ``row_groups``: the row groups that a split reads, and the positions of their rows
- ``shared_plans``: one plan for similar files
- ``file_plan``: the plan for reading one file
- ``transform``: binding of file columns to table columns
- ``calendar``: dates and timestamps that old versions of Spark wrote in the Julian calendar
- ``int96``: timestamps of type INT96 in files that Arrow wrote before its release 23
- ``variant``: variant columns, with shredded ones reassembled
- ``variant_encoding``: the binary form of variant values
- ``change_type``: the column ``_change_type`` of a change data file
- ``batch_size``: the number of rows in a batch
- ``deletion_vector``: deletion vectors: loaded, checked, and turned into masks
- ``output``: the batches that a scan returns: their schema, and the columns that are not in files
"""
