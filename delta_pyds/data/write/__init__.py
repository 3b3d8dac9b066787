"""Incoming rows to rows of the table, checked, and to Parquet files, in bounded memory.

- ``task``: one task of a write: its rows become files, or nothing remains
- ``task_session``: the settings of a task's Spark session
- ``ingest``: the entry for rows: matched, cast, completed, checked
- ``store_assignment``: conversion of incoming rows to the types of the table
- ``text_lengths``: limits of ``char(n)`` and ``varchar(n)`` columns
- ``derived_columns``: defaults, generated columns, identity values
- ``constraints``: CHECK constraints, invariants, generated columns
- ``writer``: rows to the data files of one task
- ``layout``: partitions, their directories, and paths of files
- ``parquet_schema``: the columns of the Parquet files, from the table's columns
- ``output_file``: one Parquet file while it is written
- ``statistics``: the statistics of a data file, gathered while it is written
- ``column_statistics``: the same statistics for columns of an existing file
- ``deletion_vector_writer``: files of deletion vectors
"""
