"""Commands that change the layout of a table: the same rows, in fewer files or in an order that skips more.

Invariant: the removed and the added files have the same rows, with their row ids, and the commit says so
(``dataChange=false``): streams and change feeds do not see it.

- ``optimize``: the verbs: compaction, purge, Z-order, clustering
- ``auto_compact``: compaction after a write, where the table wants it
- ``apart``: the same in a process of its own
- ``cluster_by``: a table's clustering columns, changed
- ``file_statistics``: statistics of columns that the log tells nothing of
- ``run``: the end of each of them: tasks, counts, one commit
- ``operation``: what history and the caller are told
- ``plan``: what is to be done, decided before a row is read
- ``cubes``: which files of a clustered table are clustered again
- ``bins``: which files become one
"""
