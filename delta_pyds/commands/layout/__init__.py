"""Commands that change the layout of a table: the same rows, in fewer files or in an order that skips more.

Invariant: the removed and the added files have the same rows, with their row ids, and the commit says so
(``dataChange=false``): streams and change feeds do not see it.

- ``optimize``: the verbs: compaction, purge, Z-order, clustering
- ``auto_compact``: compaction after a write, if the table or the session enables it; also in a separate process
- ``cluster_by``: changes of a table's clustering columns
- ``file_statistics``: statistics of columns that the log lacks
- ``run``: the end of each command: tasks, counts, one commit
- ``mend``: rows that others deleted during a layout, deleted in the new files too
- ``operation``: the operation in the history, and the metrics for the caller
- ``plan``: the plan of a command, made before a row is read
- ``cubes``: the choice of files of a clustered table to cluster again
- ``bins``: the choice of files that become one
"""
