"""Names of tables in Spark's session catalog: a view that Spark can read, over a catalog entry of the table's columns.

Spark hands a Python source no option of a catalog table. So a name is two entries: a table without a location, which
holds the columns, and a view ``SELECT * FROM entry WITH (path = ...)``. Both are plain DDL, in any metastore, on Spark
Connect too.

- ``create_and_drop``: ``delta_pyds.create_table`` and ``drop_table``
- ``texts``: the statements that create the two entries, and the location read back from the view's text
- ``lookup``: finds the table, or other entry, that has a name
- ``naming``: gives, updates, changes and removes names
- ``locations``: the location of a table by name, existing or new
- ``opening``: a table by name, opened for a command
- ``creation``: CREATE and REPLACE TABLE, at a path or by a name
- ``converted_names``: CONVERT of a directory, or of a Parquet table by its name
- ``orphans``: catalog entries left by processes that died
- ``managed``: tables by the name of their catalog and their name in it
- ``statement_names``: the names of one SQL statement, and the statements that they make us refuse
- ``listings``: SHOW TABLES and SHOW VIEWS
- ``persistent_views``: CREATE VIEW over tables by path
- ``tracked_views``: temporary views that show their tables as they are now
"""
