"""Every rule of the protocol, checked on the files of a table.

The package imports nothing of ``table``: code that plans and commits must not judge itself.

- ``verify``: the entry
- ``catalog``: the commits that a catalog ratified, compared with the log
- ``log``: the log in one pass: each commit is applied to a state, and everything else is compared with it
- ``actions``: lines of the log as actions, checked field by field
- ``state``: the state of the table as commits are applied
- ``view``: protocol and metadata of one version, parsed
- ``protocol``: the protocol action
- ``metadata``: one metaData action
- ``evolution``: changes from one version's metadata to the next
- ``commits``: one commit
- ``file_actions``: add, remove and cdc actions
- ``row_tracking``: row ids
- ``checkpoint_content``: the content of a checkpoint, read without the statistics of its files
- ``checkpoints``: checkpoints, compared with the replayed state
- ``hint``: ``_last_checkpoint``
- ``compactions``: log compaction files, compared with their commits
- ``checksums``: version checksum files
- ``files``: the data files of the latest version, and change data files
- ``file_schema``: the schema of a data file, compared with the table's
- ``rows``: rows, checked against NOT NULL, lengths, constraints, generated columns
- ``statistics``: statistics of a file, compared with its rows
- ``values``: values in statistics
- ``report``: findings and their report
"""
