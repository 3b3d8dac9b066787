"""Files of ``_delta_log`` to actions and state, and back.

From a listing to the state of a table:

- ``listing``: one look at ``_delta_log``, sorted by what the names say
- ``last_checkpoint``: the hint where the newest checkpoint is
- ``segment``: which files of the log make up one version
- ``commit_reader``: commits to actions
- ``checkpoint_part``: one Parquet file of a checkpoint
- ``decoded_size``: how many rows of it are decoded at a time, within bounded memory
- ``rows_ahead``: its row groups in a store, asked for before their turn
- ``sidecars``: the sidecar files that a V2 checkpoint names
- ``checkpoint_reader``: checkpoints of every kind: small actions as objects, file actions as Arrow rows
- ``adds``: their files and those of commits, as far as a request wants them
- ``file_table``: the Arrow rows in which file actions of checkpoints and commits meet
- ``replay``: a segment to the state of the table
- ``tombstones``: removed files that vacuum still has to know of
- ``statistics_cache``: decoded statistics of checkpoints, kept for the next query, within 128 MB
- ``commit_times``: when commits were made
- ``checksum``: the version checksum, compared with a replayed state

From actions to files of the log:

- ``commit_writer``: actions to the lines of a commit
- ``committer``: put-if-absent of a commit, unknown outcomes settled, the commits of others
- ``checksum_change``: a commit as the change that it makes to a checksum
- ``checksum_writer``: checksums from the one before and a commit, without replay
- ``checkpoint_statistics``: statistics in a checkpoint: from JSON to a struct, and back
- ``checkpoint_schema``: the columns of a checkpoint
- ``checkpoint_rows``: the state of a table as the rows of a checkpoint
- ``checkpoint_writer``: classic and V2 checkpoints
- ``compaction``: one file in place of several commits
- ``cleanup``: deletes files of the log that have expired
"""
