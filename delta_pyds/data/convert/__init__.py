"""Tasks that read the footers of Parquet files for CONVERT TO DELTA.

Invariant: only the footer of a file is read, and no file is changed.

- ``parquet_summary``: the columns of a Parquet file, and their statistics
- ``footers``: the files' columns and statistics for the log
"""
