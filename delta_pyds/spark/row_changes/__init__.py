"""Delete, update and merge where Spark finds the rows and computes their values.

- ``handle``: a table as one command of a user sees it
- ``delete``: the rows for which a condition is true leave
- ``update``: the rows for which a condition is true get other values
- ``set_columns``: columns and nested fields that an update sets, by the user's names
- ``found_rows``: the rows for which a condition is true, with their places
- ``place``: where a command runs: in this process, in tasks that Spark hands files to, or as a query
- ``merge``: rows of a source meet rows of the table, and clauses say what becomes of them
- ``merge_texts``: a merge as SQL texts for our own evaluator, where they are certain
- ``merge_plan``: what a merge will do to a table, decided before the source is computed
- ``merge_clauses``: the clauses of a merge, and what may follow what
- ``merge_resolution``: the clauses, resolved: what each does with a row, column by column
- ``binding``: expressions of a user, resolved once in the frame whose names they may use
- ``merge_source``: the source of a merge, seen once
- ``merge_pruning``: which files the keys of the source leave to read
- ``matching``: the rows that have the keys of other rows
- ``merge_frame``: the rows that a merge changes, as a query of Spark
- ``stand_in``: a frame in the place of another, under its names and columns
- ``expressions``: what our own evaluator and skipping may know of a condition or value
- ``column_text``: a Column as SQL text, where it is certain to mean the same
- ``target_frame``: the rows of a table, each with its file and position
- ``same_columns``: a frame in which Columns that the user made of ``toDF`` resolve
- ``table_expression``: an expression of a table, tried in a session before any row is read
- ``stored_values``: values of a frame as the table will hold them
- ``computed_rows``: rows of a frame as rows of the table, over which its expressions are computed
- ``computed``: what a session computes of rows that are written: defaults, generated columns, rules
- ``assignment``: values become values of the table's columns
- ``apply``: the rows that change, through tasks that write files and say which rows leave
"""
