"""The commands on a table: the layer below ``DeltaTable``, SQL and ``install``, which only translate.

- ``argument_checks``: the arguments that a user may give, and the errors for others
- ``column_definitions``: a column as a user defines or changes it
- ``identifiers``: where a table is: paths, names that hold a path, Hadoop's settings
- ``opening``: a table at a path, opened for a command
- ``settings``: the session's settings for commands
- ``rows``: DELETE, UPDATE, MERGE, TRUNCATE
- ``layout``: OPTIMIZE, REORG, CLUSTER BY
- ``alter``: ALTER TABLE in its forms
- ``expression_checks``: the expressions that a user gives to a table, tried
- ``maintenance``: VACUUM, RESTORE, CLONE, CONVERT, GENERATE
- ``describe``: DESCRIBE HISTORY and DETAIL, the HTML of a table
- ``results``: the result of a command as a DataFrame
"""
