"""A statement of SQL to what it asks for: a value for each kind, with exact pieces of the user's text.

Every expression stays the text that the user wrote, for Spark to read. What is no statement of Delta passes on to
Spark, with the tables by path that are named in it.

- ``arguments``: a statement with the values of its arguments in it, as SQL
- ``scopes``: brackets, WITH lists, FROM lists, and the role of each name
- ``reader``: the tokens of a statement one after another: names, literals, errors with their place
- ``pieces``: where an expression, a type or a query ends, and its exact text
- ``kinds``: what a statement asks for, a value for each kind
- ``questions``: the kinds of DESCRIBE and SHOW
- ``completeness``: what a command cannot take: arguments without a value, variables of the session
- ``tables``: tables as they are named, and the tables of a statement or of a piece of it
- ``file_metadata``: the column ``_metadata``, where a query asks for it
- ``spark_statements``: Spark's own statements: tables that they read, and tables by name that they change
- ``qualified_names``: columns that are called by the whole name of their table
- ``row_changes``: MERGE, UPDATE, DELETE, TRUNCATE
- ``insert``: INSERT in its forms
- ``default_values``: DEFAULT among the values of an INSERT
- ``columns``: columns as CREATE and ALTER define them, and properties
- ``create``: CREATE and REPLACE TABLE, clones, temporary views
- ``alter``: ALTER TABLE in its forms, DROP TABLE
- ``maintenance``: OPTIMIZE, VACUUM, REORG, RESTORE, CONVERT, GENERATE
- ``describe``: DESCRIBE and SHOW
- ``caching``: CACHE TABLE, UNCACHE TABLE, REFRESH TABLE
- ``leading_words``: what stands before the verb of a command: WITH, FROM, EXPLAIN
- ``parse``: a text to its statement
"""
