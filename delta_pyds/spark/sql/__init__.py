"""``delta_pyds.sql``: statements of Delta by ``table_commands``, all others by Spark, on classic sessions and Connect.

- ``run``: a statement by its kind
- ``scripts``: BEGIN ... END and EXECUTE IMMEDIATE
- ``context``: one statement in its session: its tables, its queries, its expressions
- ``cached_rows``: rows of whole tables that CACHE TABLE caches
- ``file_metadata``: tables with the column ``_metadata``
- ``file_pruning``: the conjuncts of a statement that rule files of one table out
- ``frames``: the tables that a query names, as DataFrames
- ``aggregates``: aggregates over a whole table, answered from its log
- ``statement_errors``: errors of Spark about expressions, relative paths and views, in the words of the statement
- ``called_tables``: the tables of MERGE, UPDATE and DELETE, and their names in expressions
- ``row_changes``: MERGE, UPDATE, DELETE
- ``target_reads``: whether the query of a statement reads the table that the statement writes
- ``insert``: INSERT in its forms
- ``default_values``: the word DEFAULT as the value of a column
- ``create``: CREATE and REPLACE TABLE, clones, temporary views
- ``alter``: ALTER TABLE in its forms, DROP TABLE
- ``maintenance``: OPTIMIZE, VACUUM, RESTORE, CONVERT
- ``describe``: DESCRIBE and SHOW of one table
- ``caching``: CACHE TABLE, UNCACHE TABLE, REFRESH TABLE
"""
