"""One verb each: what changes a table or returns its rows, above transactions and data files, without Spark.

- ``write``: append, overwrite, ``replaceWhere``, and batches of a stream
- ``row_changes``: delete, update and merge
- ``layout``: optimize: fewer files, rows sorted along a curve, files without deleted rows; clustering columns
- ``definition``: tables created and replaced; columns, constraints, properties and features changed
- ``task_runner``: where the tasks of a command run
- ``commit``: the end of every verb: the files of its tasks become one version of the table
- ``maintenance``: vacuum, restore, clone, convert, manifests
- ``maintain``: a checkpoint now, one file in place of several commits
- ``describe``: history and detail as Arrow tables
- ``scan``: the rows as an Arrow stream
- ``report``: one HTML page about a table, and what maintenance would gain
"""
