"""The thin layer over the core: the only package that imports pyspark.

- ``install``: ``delta_pyds.install``: PySpark's own methods for this format
- ``notebook``: ``%%deltapy``
- ``table_functions``: ``delta_history`` and ``delta_detail`` in SQL
- ``sql``: ``delta_pyds.sql``: statements over ``DeltaTable`` and over Spark
- ``delta_table``: ``DeltaTable``, with delete, update and merge
- ``session``: what a user calls with a session in hand: ``register``, ``read``, ``write``
- ``named_tables``: tables by name in Spark's session catalog
- ``arguments``: what a user gives to ``read`` and ``write``, as texts of options
- ``incoming``: rows that a user has, as a DataFrame
- ``optimized_write``: rows put together before they are written, so that there are fewer files
- ``worker_python``: the Python that Spark runs its workers with
- ``active_session``: the session of a thread, in which Spark looks a source up
- ``reference``: whether the reference's JAR is in a session
- ``query_context``: what an error of Spark quotes of a text
- ``query_log``: what PySpark logs of errors while a call of this package runs
- ``plain_calls``: calls of PySpark's methods that mean Spark's own
- ``job_description``: what Spark's UI calls the jobs of a command
- ``session_write``: ``delta_pyds.write`` by tasks of the session, where the format cannot do it
- ``row_changes``: delete, update and merge where Spark finds the rows
- ``task_runner``: tasks of a command in the executors of a session
- ``same_files``: whether the server of Spark Connect sees the same files as this process
- ``source``: the data source: the classes that Spark instantiates
- ``native``: a scan as a DataFrame over Spark's own Parquet reader
- ``planning``: options to a snapshot, a scan and its partitions
- ``options``: the options of reads and writes, typed
- ``settings``: the keys of Spark's settings
- ``discovery``: the top-level module ``pyspark_deltapy``, by which Spark finds the source
"""
