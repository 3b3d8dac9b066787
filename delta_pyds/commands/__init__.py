"""Commands, one verb each: they change a table or return its rows, without Spark.

- ``write``: append, overwrite, ``replaceWhere``, and batches of a stream
- ``row_changes``: delete, update and merge
- ``layout``: optimize: fewer files, rows sorted along a curve, files without deleted rows; clustering columns
- ``definition``: tables created and replaced; columns, constraints, properties and features changed
- ``task_runner``: where the tasks of a command run
- ``table_reads``: which rows of its own table a command reads beside those that it changes
- ``commit``: the end of every verb: the files of its tasks become one version of the table
- ``maintenance``: vacuum, restore, clone, convert, manifests
- ``maintain``: checkpoints and log compaction on request
- ``describe``: history and detail as Arrow tables
- ``arrow_stream``: rows as a stream that every library can read
- ``scan``: the rows as an Arrow stream
- ``scan_changes``: the changes of a range of versions as an Arrow stream
- ``report``: one HTML page about a table, and what maintenance would gain
"""
