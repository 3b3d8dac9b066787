"""Delete, update and merge of a Spark session: by our own evaluator, or by a query of Spark.

Where a command runs:

- ``delete``: deletes the rows for which a condition is true
- ``update``: sets other values in the rows for which a condition is true
- ``merge``: matches rows of a source with rows of the table, and applies clauses to both
- ``resolution``: a command resolved against the table, with texts for our evaluator
- ``place``: where a command runs: in this process, in Spark tasks that get files, or as a query
- ``handle``: a table, as one command of the user sees it

How Spark finds and computes the rows:

- ``merge_query``: a merge as a query of Spark, planned before the source is computed
- ``merge_columns``: the clauses of a merge as Columns, for all columns of the table
- ``binding``: the user's expressions, resolved once in the frame whose names they may use
- ``merge_source``: the source of a merge, materialized once
- ``merge_pruning``: skips files that cannot have the keys of the source
- ``merge_frame``: the rows that a merge changes, as a query of Spark
- ``matching``: the rows that have the keys of other rows
- ``found_rows``: the rows for which a condition is true, with their positions
- ``target_frame``: the rows of a table, each with its file and position
- ``file_rows``: given rows of files, for a command that decides again after a lost race
- ``frame_identity``: a frame with the identity of another: the other's names and Columns resolve in it

How rows are completed and written:

- ``assignment``: converts values to the types of the table's columns
- ``computed``: the values that a session computes for written rows: defaults, generated columns, rules
- ``computed_rows``: the rows of a frame with the table's columns, over which the table's expressions are computed
- ``stored_values``: values of a frame as the table will hold them
- ``apply``: applies changed rows in tasks, which write files and mark the replaced rows

How the texts of expressions are read:

- ``expressions``: session-independent texts of conditions and values
- ``column_text``: a Column as SQL text, if that certainly means the same
- ``repeatable``: whether expressions have the same values if a query runs again
- ``session_settings``: the settings of a session under which a command began
- ``column_default``: the default of a column in place of the word DEFAULT
- ``table_expression``: a table's expression, tried in a session before any row is read
"""
