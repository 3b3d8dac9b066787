"""Tasks of commands that change rows: each takes files of the table, or changed rows, and answers with one output.

Invariant: what a task's output names is complete. When anything goes wrong, the task's files are deleted as far as
they can be, and the error goes up; what is left over is in no commit, and vacuum removes it.

- ``find``: files of the table to the positions of the rows for which a predicate is true
- ``update``: files of the table to new values of their rows
- ``merge_files``: the tasks of a merge that joins in this process
- ``clauses``: the clauses of a merge over rows that matched, or did not
- ``join``: the rows of a merge's source, and which of them match rows of the table
- ``changed_rows``: rows that a command changes become bitmaps of positions, new files and change files
- ``new_rows``: the values that rows get, as rows of the table
- ``found_rows``: positions of rows, by file
- ``rewrite``: files of the table to new files with the rows that stay
- ``change_files``: changed rows to files of the change data feed
- ``files``: batches to complete files, or to none
"""
