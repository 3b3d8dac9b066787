"""``DeltaTable``: the class of ``delta.tables`` over commands of ours, on classic sessions and on Spark Connect.

- ``table``: ``DeltaTable``
- ``called_by_name``: conditions that call columns by the table's name
- ``merge_builder``: the clauses of a merge, one after another
- ``optimize_builder``: how rows lie in files: compaction, purge, Z-order, clustering
- ``layout_frame``: what a command of layout did, as a DataFrame
- ``alter``: columns, constraints and properties changed
- ``column_changes``: what a user says of a column that is there
- ``table_builder``: tables created and replaced
- ``column_definitions``: a column as a user defines it
- ``expression_checks``: expressions that a user gives to a table, tried
- ``maintenance``: vacuum, restore, clone, convert, manifests
- ``identifiers``: where a table is: names, paths, Hadoop's settings
- ``settings``: what the session says now
- ``descriptions``: history and detail as DataFrames
- ``private_hooks``: attributes of the reference's objects in the JVM, refused
- ``results``: what a command did, as a DataFrame
"""
