"""Tables by name in Spark's session catalog: a view that Spark can read, over a holder of the table's columns.

Spark hands a Python source no option of a catalog table, so a name is two entries: a table without a place, which holds
the columns, and a view ``SELECT * FROM holder WITH (path = ...)``. Both are plain DDL, in any metastore, on Spark
Connect too.

- ``texts``: the statements that make the two entries, and what the view's text says
- ``lookup``: a name to its table, or what else has the name
- ``naming``: names given, followed, changed and taken away
- ``places``: where a table by name is, or shall be
- ``orphans``: holders that a process left behind when it died
- ``followed_views``: temporary views that show their tables as they are now
- ``managed``: tables by the name of the catalog that manages them
"""
