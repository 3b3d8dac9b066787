"""``delta_pyds.install``: PySpark's own methods, extended by what Spark does not pass to a Python source.

Invariants: methods are replaced on PySpark's classes, and ``uninstall`` restores them. A call that is not about our
tables goes to Spark, with its results and its errors.

- ``startup``: ``DELTA_PYDS_INSTALL``: the installation in a program that does not call it
- ``installation``: ``delta_pyds.install`` and ``uninstall``
- ``names``: names of Spark's catalog
- ``batch_reads``: ``spark.read`` and ``spark.table``
- ``catalog``: ``spark.catalog``
- ``batch_writes``: ``df.write``
- ``table_writes``: ``df.writeTo``
- ``dataframes``: ``df.select("_metadata.row_id")``, ``df.createOrReplaceTempView``, ``df.collect`` and the like
- ``merges``: ``df.mergeInto``
- ``statements``: ``spark.sql``
- ``streams``: ``spark.readStream`` and ``df.writeStream``
- ``delta_modules``: ``import delta.tables``
- ``runtime_settings``: ``spark.conf``
- ``write_settings``: the session's settings for a write
- ``formats``: the names of our format in a session
- ``recorded_options``: the calls that a reader or writer has received
- ``pipelines``: methods inside Spark Declarative Pipelines
- ``patches``: methods of classes, replaced and restored
"""
