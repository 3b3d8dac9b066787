"""Files of ``_delta_log`` to actions and state, and back.

From a listing to the state of a table:

- ``listing``: the files of ``_delta_log``, sorted by kind and version
- ``last_checkpoint``: the hint that names a recent checkpoint
- ``segment``: the files of the log that make up one version
- ``commit_reader``: commits to actions
- ``checkpoint_part``: one Parquet file of a checkpoint
- ``decoded_size``: batch sizes for decoding it in bounded memory
- ``checkpoint_reader``: checkpoints of every kind: small actions as objects, file actions as Arrow rows
- ``adds``: the adds of checkpoints and commits that a request selects
- ``file_table``: file actions of checkpoints and commits as Arrow rows
- ``replay``: a segment to the state of the table
- ``statistics_cache``: caches of decoded statistics of checkpoints, up to 128 MB, and of selected entries, up to 16 MB
- ``commit_times``: the times of commits
- ``checksum``: the version checksum, compared with a replayed state

From actions to files of the log:

- ``commit_writer``: actions to the lines of a commit
- ``committer``: put-if-absent of a commit, resolution of unknown outcomes, commits of other writers
- ``checksum_change``: the change that a commit makes to a checksum
- ``checksum_writer``: checksums from the previous one and a commit, without replay
- ``checkpoint_statistics``: statistics in a checkpoint: from JSON to a struct, and back
- ``checkpoint_schema``: the columns of a checkpoint
- ``checkpoint_rows``: the state of a table as the rows of a checkpoint
- ``checkpoint_writer``: classic and V2 checkpoints
- ``compaction``: log compactions
- ``cleanup``: deletion of expired files of the log
"""
