"""A table as the source of a stream: which files lie between two offsets.

- ``options``: what a user can ask of a stream
- ``start``: where a stream without a checkpoint begins
- ``source``: the entry: offsets, and the files between two of them
- ``initial_files``: the files of the first snapshot, in order
- ``commit_poller``: the commits after a position, for a process that polls
- ``commit``: what a commit gives to a stream of rows
- ``changes``: what a commit gives to a stream of changes
- ``files``: the files of one commit or snapshot, as a stream numbers them
- ``admission``: how much one micro-batch may take
- ``metadata``: the table's schema as the stream meets it
- ``schema``: whether a running stream may go on past a change of the schema
- ``schema_log``: the schemas that a stream went through, ``schemaTrackingLocation``
"""
