"""The data source: the classes that Spark instantiates, each in processes of its own.

- ``datasource``: ``spark.read.format("deltapy")`` and its siblings
- ``reader``: the batch reader
- ``pushdown``: whether pushed filters may rule out files
- ``filters``: pushed filters as expressions
- ``stream_reader``: the reader of a stream
- ``stream_driver``: options of a stream to its source
- ``task_scan``: what a task does with its files, in a batch and in a stream alike
- ``unknown_expressions``: expressions that only a session computes are refused, with a way to write
- ``writer``: the batch writer
- ``stream_writer``: the sink of a stream
- ``write_result``: what a write did, on its way back to the user
- ``error_transport``: errors on their way out of Spark's workers
"""
