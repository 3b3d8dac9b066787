"""One change of a table: the version that it reads, its changes, one entry of the log.

- ``transaction``: the entry: from the version that was read to the version that it makes
- ``commit_draft``: the actions of the commit, and their checks
- ``row_counts``: the number of rows that a file's statistics promise
- ``row_tracking``: row ids of new files
- ``row_tracking_enablement``: whether row ids may be promised from a version on
- ``commit_info``: the provenance of a commit
- ``commit_encoding``: a transaction as the bytes of one version
- ``log_continuity``: whether the log is still the one that was read
- ``conflict``: whether a transaction may follow a commit that it did not know of
- ``adoption``: changes of protocol and metadata by others that it can adopt
- ``rebase``: the state that a transaction stands on, and how it moves when other commits come first
- ``post_commit``: checksum, checkpoint and clean-up after a commit; they never fail it
- ``maintenance``: checkpoints and clean-up as the table's properties want them
"""
