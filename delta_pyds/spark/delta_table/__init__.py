"""``DeltaTable``: the class of ``delta.tables``, which translates to ``table_commands``.

- ``table``: ``DeltaTable``
- ``called_by_name``: conditions that call columns by the table's name
- ``merge_builder``: the clauses of a merge, one after another
- ``optimize_builder``: how rows lie in files: compaction, purge, Z-order, clustering
- ``alter``: columns, constraints and properties changed
- ``table_builder``: tables created and replaced
- ``column_builder``: one column, described step by step
- ``maintenance``: vacuum, restore, clone, convert, manifests
- ``private_hooks``: attributes of the reference's objects in the JVM, refused
"""
