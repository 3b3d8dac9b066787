"""Every rule of the protocol, derived anew from the files of a table.

It imports nothing of ``table``: what plans and commits must not be what finds its faults.

- ``verify``: the entry
- ``catalog``: what a catalog says of the table's commits against the log as it lies there
- ``log``: the log in one pass: every commit applied to a state, with which all the rest is compared
- ``actions``: lines of the log as actions, checked field by field
- ``state``: the state of the table as commits are applied
- ``view``: what protocol and metadata of one version mean
- ``protocol``: the protocol action
- ``metadata``: one metaData action
- ``evolution``: from one version's metadata to the next
- ``commits``: one commit
- ``file_actions``: add, remove and cdc actions
- ``row_tracking``: row ids
- ``checkpoint_content``: the content of a checkpoint, without trust in the statistics of its files
- ``checkpoints``: checkpoints against replay
- ``hint``: ``_last_checkpoint``
- ``compactions``: log compaction files against their commits
- ``checksums``: version checksum files
- ``files``: the data files of the latest version
- ``change_data``: change data files: readable, each row with a type of change
- ``file_schema``: the schema of a data file against the table's
- ``rows``: rows against NOT NULL, lengths, constraints, generated columns
- ``statistics``: statistics of a file against its rows
- ``values``: values in statistics
- ``unknown_zone``: conditions that depend on a time zone that no table records
- ``unique``: numbers that must all differ, across files
- ``arrow``: parts of nested Arrow arrays
- ``report``: findings, and the report that holds them
"""
