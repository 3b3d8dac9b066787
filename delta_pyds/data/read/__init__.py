"""Data files to batches of live rows, in the logical columns of the table.

- ``concurrent``: several files at once, in the order of the files
- ``reader``: the entry: a file of a scan to batches
- ``data_file``: one open file: its footer, its columns, and what may be wrong with it
- ``dictionaries``: text that the file keeps in dictionaries
- ``footer_statistics``: what the footer proves about row groups
- ``row_groups``: which row groups a split reads, and the positions of their rows
- ``shared_plans``: one plan for files that are alike
- ``file_plan``: how this file gives the columns of the scan
- ``transform``: from the columns of the file to the columns of the table
- ``calendar``: dates and timestamps that old versions of Spark wrote in the Julian calendar
- ``variant``: variant columns, shredded ones put together again
- ``variant_encoding``: the binary form of variant values
- ``change_type``: the column ``_change_type`` of a change data file
- ``batch_size``: how many rows a batch may have
- ``deletion_vector``: deletion vectors: loaded, checked, and turned into masks
- ``filtering``: rows dropped from arrays
- ``output``: the batches that a scan returns: their schema, and the columns that are in no file
"""
