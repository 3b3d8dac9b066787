"""Tasks of commands that change rows. Each gets files of the table, or changed rows, and returns one output.

Invariant: the files that an output names are complete. After an error the task's files are deleted as far as possible,
and the error is raised. Remaining files are in no commit, and vacuum removes them.

- ``find``: the positions of the rows for which a predicate is true
- ``update``: new values for rows of the table's files
- ``merge_files``: the tasks of a merge that joins in this process
- ``join``: the rows of a merge's source, and their matches in the table
- ``changed_rows``: changed rows become bitmaps of positions, new files and change files
- ``new_rows``: new values, as rows of the table
- ``found_rows``: positions of rows, by file
- ``change_files``: files of the change data feed
- ``files``: batches written as complete files, or not at all
"""
