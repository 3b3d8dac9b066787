"""SQL text parsed into a value for each kind of statement, with exact pieces of the user's text.

Every expression stays the text that the user wrote, for Spark to parse. Other statements are passed on to Spark, with
the tables that they name by path.

- ``arguments``: the text of a statement with literals in place of its arguments
- ``scopes``: brackets, WITH lists, FROM lists, and the role of each name
- ``reader``: the tokens of a statement one after another: names, literals, errors with their position
- ``pieces``: the ends of expressions, types and queries, and their exact text
- ``kinds``: a value for each kind of statement
- ``completeness``: arguments without a value and variables of the session, which commands do not support
- ``row_conditions``: the conditions of WHERE and ON that rows of one table must satisfy
- ``tables``: table names, and the tables of a statement or of a piece of it
- ``file_metadata``: the column ``_metadata`` of a query
- ``spark_statements``: Spark's own statements: the tables that they read, and the tables by name that they change
- ``qualified_names``: columns that are qualified by the whole name of their table
- ``row_changes``: MERGE, UPDATE, DELETE, TRUNCATE
- ``insert``: INSERT in its forms
- ``default_values``: DEFAULT among the values of an INSERT
- ``columns``: column definitions of CREATE and ALTER, and properties
- ``create``: CREATE and REPLACE TABLE, clones, temporary views
- ``alter``: ALTER TABLE in its forms, DROP TABLE
- ``maintenance``: OPTIMIZE, VACUUM, REORG, RESTORE, CONVERT, GENERATE; ANALYZE and MSCK
- ``describe``: DESCRIBE and SHOW
- ``caching``: CACHE TABLE, UNCACHE TABLE, REFRESH TABLE
- ``scripts``: the statements of BEGIN ... END and of EXECUTE IMMEDIATE
- ``leading_words``: the words before the verb of a command: WITH, FROM, EXPLAIN
- ``parse``: the parser of a statement
"""
