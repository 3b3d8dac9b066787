"""Delete, update and merge where Spark finds the rows and computes their values.

- ``merge_clauses``: the clauses of a merge, and what may follow what
"""
