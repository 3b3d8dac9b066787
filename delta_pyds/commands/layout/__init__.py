"""Commands that lay the rows of a table out anew: the same rows, in fewer files or in an order that skips more.

Invariant: what such a commit removes and adds has the same rows, with their row ids, and says so
(``dataChange=false``): streams and change feeds see nothing of it.

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
