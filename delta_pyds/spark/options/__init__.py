"""The options of reads, streams and writes, read once into typed values. Each refusal names the option.

- ``names``: names of options, and misspelled ones
- ``values``: values of options, typed
- ``read``: options of ``spark.read`` and ``spark.readStream``
- ``stream``: options of ``spark.readStream`` alone
- ``changes``: options of Spark's own reads of changes
- ``auto_compact``: the session's settings of compaction after a commit
- ``write``: options of ``df.write`` and ``df.writeStream``
"""
