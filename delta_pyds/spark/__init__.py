"""The thin layer over the core: the only package that imports pyspark.

- ``install``: ``delta_pyds.install``: PySpark's own methods for this format
- ``notebook``: ``%%deltapy``
- ``table_functions``: ``delta_history`` and ``delta_detail`` in SQL
- ``sql``: ``delta_pyds.sql``
- ``delta_table``: ``DeltaTable``
- ``session``: ``delta_pyds.read`` and ``write``
- ``catalog_names``: names of tables in Spark's session catalog
- ``table_commands``: the commands on a table
- ``loading``: a table at a path as a DataFrame
- ``registration``: the registration of the format in a session
- ``spark_errors``: errors that are also exceptions of PySpark, and their records in its log
- ``arguments``: checks of the arguments of ``read`` and ``write``
- ``incoming``: a user's rows as a DataFrame
- ``optimized_write``: rows put together before they are written, so that there are fewer files
- ``row_sources``: whether the rows of a DataFrame may depend on a table
- ``worker_python``: the check of the Python of Spark's workers
- ``active_session``: the session of a thread, in which Spark looks a source up
- ``reference``: whether the reference's JAR is in a session
- ``plain_calls``: calls of PySpark's own methods after ``install``
- ``empty_frame``: a DataFrame without rows, which starts no job
- ``log_rows``: the mark of rows that come from the log of a table
- ``plan_text``: the text of a plan
- ``plan_times``: whether a plan has values of the time at which Spark optimizes it
- ``other_engines``: engines other than Apache Spark that speak Spark Connect: Sail
- ``job_description``: the descriptions of a command's jobs in Spark's UI
- ``session_write``: writes of ``delta_pyds.write`` that the format cannot do, by tasks of the session
- ``row_changes``: delete, update and merge of rows that Spark finds
- ``task_runner``: tasks of a command in the executors of a session
- ``same_files``: whether the server of Spark Connect sees the same files as this process
- ``source``: the data source: the classes that Spark instantiates
- ``native``: a scan as a DataFrame over Spark's own Parquet reader
- ``planning``: from options to a snapshot, a scan and its partitions
- ``options``: the options of reads and writes, typed
- ``settings``: the keys of Spark's settings
- ``versions``: what the Spark of this process has and lacks
- ``discovery``: top-level files of the wheel: the module by which Spark finds the source, and the ``.pth`` file that
  reads ``DELTA_PYDS_INSTALL``
"""
