"""One change of a table: the version that it reads, its changes, one entry of the log.

- ``transaction``: the reads and changes of an operation, committed as one version
- ``commit_draft``: the actions of the commit, and their checks
- ``row_counts``: the number of rows in a file's statistics
- ``row_tracking``: row ids of new files
- ``row_tracking_enablement``: whether row tracking can be enabled
- ``commit_info``: the provenance of a commit
- ``commit_encoding``: a transaction as the bytes of one version
- ``log_continuity``: whether the log is still the one that was read
- ``isolation``: the isolation level of a transaction
- ``conflict``: conflicts of a transaction with a commit that it did not read
- ``adoption``: changes of protocol and metadata by others that a transaction can adopt
- ``mend``: the net changes of winning commits, for commands that are mended after a lost race
- ``rebase``: the table state that a commit is based on, and how other commits advance it
- ``post_commit``: checksum, checkpoint and clean-up after a commit; they never make it fail
- ``maintenance``: checkpoints and clean-up according to the table's properties
"""
