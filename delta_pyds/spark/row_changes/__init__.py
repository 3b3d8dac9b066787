"""Delete, update and merge where Spark finds the rows and computes their values.

- ``handle``: a table as one command of a user sees it
- ``merge_clauses``: the clauses of a merge, and what may follow what
"""
