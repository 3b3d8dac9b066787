"""The data source: the classes that Spark instantiates, each in its own processes.

- ``datasource``: ``spark.read.format("deltapy")`` and its siblings
- ``reader``: the batch reader, and whether pushed filters may prune files
- ``filters``: pushed filters as expressions
- ``stream_reader``: the reader of a stream
- ``stream_admission``: the end of a batch, if Spark tells its limit
- ``stream_position``: the end of a batch, if Spark tells nothing
- ``stream_driver``: from a stream's options to its source
- ``task_scan``: the reading of files in a task, for batches and streams
- ``unknown_expressions``: refusals of expressions that only a session computes, with a call that has one
- ``writer``: the batch writer
- ``foreign_writer``: the batch writer on another engine than Spark
- ``stream_writer``: the sink of a stream
- ``write_result``: the result of a write, sent back to the user
- ``error_transport``: DeltaErrors, restored from the text of Spark's workers
"""
