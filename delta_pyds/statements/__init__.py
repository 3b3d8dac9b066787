"""A statement of SQL to what it asks for: a value for each kind, with exact pieces of the user's text.

Every expression stays the text that the user wrote, for Spark to read. Other statements pass on to Spark, with the
tables by path that they name.

- ``arguments``: a statement with the values of its arguments in it, as SQL
- ``scopes``: brackets, WITH lists, FROM lists, and the role of each name
- ``reader``: the tokens of a statement one after another: names, literals, errors with their position
- ``pieces``: where an expression, a type or a query ends, and its exact text
- ``kinds``: a value for each kind of statement
- ``questions``: the kinds of DESCRIBE and SHOW
- ``completeness``: arguments without a value and variables of the session, which a command cannot take
- ``tables``: tables as they are named, and the tables of a statement or of a piece of it
- ``file_metadata``: the column ``_metadata`` of a query
- ``spark_statements``: Spark's own statements: the tables that they read, and the tables by name that they change
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
- ``leading_words``: the words before the verb of a command: WITH, FROM, EXPLAIN
- ``parse``: a text to its statement
"""
