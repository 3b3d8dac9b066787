"""The options of reads, streams and writes, read once into typed values. Each refusal names the option.

- ``names``: names that are known, and names that are near to one
- ``values``: values of options, typed
- ``read``: options of ``spark.read`` and ``spark.readStream``
- ``stream``: what only ``spark.readStream`` is asked
- ``auto_compact``: what the session says of compaction after a commit
- ``write``: options of ``df.write`` and ``df.writeStream``
"""
