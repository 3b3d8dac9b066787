"""A scan as a DataFrame over Spark's own Parquet reader, where that returns exactly the same rows.

- ``read``: the choice between Spark's reader and the Python source
- ``eligibility``: reasons against Spark's reader in table, options and session
- ``files``: the files as Spark's reader takes them
- ``uris``: Spark's spelling of them
- ``file_index``: the files to read as an index of Spark, without any listing
- ``filled_index``: many files put into that index in the JVM of a classic session
- ``server_index``: that index in the driver of a Spark Connect server
- ``relations``: Spark's relations of indexed files, shared by the reads of a session
- ``connectors``: whether Spark's connector for a store reads the same objects
- ``footers``: reasons against it in the footers, on request
- ``scan``: the DataFrame of a planned scan
- ``parts``: groups of files that are scanned together
- ``server_proof``: whether a server of Spark Connect reads Parquet files as Spark does
- ``side_table``: partition values and deletion vectors of files, as a table to join or as constants
- ``vectors``: deletion vectors as words of 64 bits, of a group of files in one array
- ``word_join``: deletion vectors as a table to join, for accelerators
- ``comet``: the accelerator Comet, and what it takes of a read
- ``columns``: columns of files, converted to columns of the table
- ``expressions``: a bound predicate as a column of Spark
"""
