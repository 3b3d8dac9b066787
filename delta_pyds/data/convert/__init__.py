"""Tasks that read footers of Parquet files which a table takes over.

Invariant: nothing of a file is read but its footer, and no file is changed.

- ``parquet_summary``: the columns of a Parquet file, and their statistics
- ``footers``: files to what the log says of them
"""
