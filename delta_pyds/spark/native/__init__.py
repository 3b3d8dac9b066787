"""A scan as a DataFrame over Spark's own Parquet reader, where it is certain to return the same rows.

- ``read``: the choice between Spark's reader and the Python source
- ``eligibility``: what in table, options and session speaks against Spark's reader
- ``files``: the files as Spark's reader is told of them
- ``connectors``: whether Spark's connector for a store reads the same objects
- ``footers``: what in the footers speaks against it
- ``scan``: the DataFrame of a planned scan
- ``parts``: which files are scanned together
- ``server_proof``: whether a server of Spark Connect reads Parquet files as Spark does
- ``side_table``: what the log knows of each file, as a table to join or as constants
- ``deletions``: deletion vectors as words of 64 bits
- ``columns``: columns of files to columns of the table
- ``expressions``: a bound predicate as a column of Spark
"""
