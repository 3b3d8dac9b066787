"""A table as the source of a stream: the files between two offsets.

- ``source``: options, offsets, and the files between two offsets
- ``budget``: the limits of a batch
- ``initial_files``: the files of the first snapshot, in order
- ``commit_poller``: the commits after a version, for a process that polls
- ``commit``: the files that a commit adds to a stream of rows
- ``changes``: the files that a commit adds to a stream of changes
- ``files``: the numbered files of one commit or snapshot
- ``metadata``: changes of the table's schema during the stream
- ``schema``: whether a running stream may continue after a change of the schema
- ``schema_log``: the schemas of a stream, ``schemaTrackingLocation``
"""
