"""Delete, update and merge of a Spark session: by our own evaluator, or by a query of Spark.

Where a command runs:

- ``delete``: the rows for which a condition is true leave
- ``update``: the rows for which a condition is true get other values
- ``merge``: rows of a source meet rows of the table, and clauses say how both change
- ``resolution``: a command resolved against the table, with texts for our evaluator
- ``place``: where a command runs: in this process, in tasks that Spark hands files to, or as a query
- ``handle``: a table as one command of a user sees it

How Spark finds and computes the rows:

- ``merge_query``: a merge as a query of Spark, planned before the source is computed
- ``merge_columns``: the clauses of a merge as Columns, for all columns of the table
- ``binding``: expressions of a user, resolved once in the frame whose names they may use
- ``merge_source``: the source of a merge, materialized once
- ``merge_pruning``: which files the keys of the source leave to read
- ``merge_frame``: the rows that a merge changes, as a query of Spark
- ``matching``: the rows that have the keys of other rows
- ``found_rows``: the rows for which a condition is true, with their positions
- ``target_frame``: the rows of a table, each with its file and position
- ``same_columns``: a frame in which Columns that the user made of ``toDF`` resolve
- ``frame_identity``: a frame with the identity of another: its names and Columns resolve

How rows are completed and written:

- ``assignment``: values become values of the table's columns
- ``computed``: what a session computes of rows that are written: defaults, generated columns, rules
- ``computed_rows``: rows of a frame as rows of the table, over which its expressions are computed
- ``stored_values``: values of a frame as the table will hold them
- ``apply``: the rows that change, through tasks that write files and mark the rows that they replace

How texts of expressions are read:

- ``expressions``: session-independent texts of conditions and values
- ``column_text``: a Column as SQL text, where it is certain to mean the same
- ``column_default``: the default of a column in the place of the word DEFAULT
- ``table_expression``: an expression of a table, tried in a session before any row is read
"""
