"""Delete, update and merge where Spark finds the rows and computes their values.

- ``handle``: a table as one command of a user sees it
- ``merge_clauses``: the clauses of a merge, and what may follow what
- ``target_frame``: the rows of a table, each with its file and position
- ``same_columns``: a frame in which Columns that the user made of ``toDF`` resolve
- ``apply``: the rows that change, through tasks that write files and say which rows leave
"""
