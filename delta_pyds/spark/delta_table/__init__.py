"""``DeltaTable``: the class of ``delta.tables``, which translates to ``table_commands``.

- ``table``: ``DeltaTable``
- ``called_by_name``: conditions that qualify columns with the table's name
- ``merge_builder``: the clauses of a merge, one after another
- ``optimize_builder``: the layout of rows in files: compaction, purge, Z-order, clustering
- ``alter``: changes of columns, constraints and properties
- ``table_builder``: creation and replacement of tables
- ``column_builder``: one column, described step by step
- ``maintenance``: vacuum, restore, clone, convert, manifests
- ``private_hooks``: private attributes of the reference's classes, refused
"""
