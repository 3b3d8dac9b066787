"""What a table is and may become: protocol, schema, properties, and what tasks must respect.

- ``create``: a new table: its metadata, protocol and domains
- ``schema_rules``: what a schema may be
- ``column_mapping``: ids and physical names of columns
- ``property_rules``: which properties users may set, and to what
- ``protocol_upgrade``: which protocol the metadata needs
- ``clustering``: clustering columns
- ``replacement``: a table in the place of another one
- ``iceberg_rules``: what a table must be while it promises to be readable as Iceberg
- ``schema_enforcement``: whether incoming rows fit the table
- ``declared_types``: the declared types of columns with ``char(n)`` and ``varchar(n)`` while they change
- ``schema_evolution``: the metadata of a table whose schema changes
- ``schema_paths``: columns and nested fields by their paths
- ``dependents``: what of a table depends on a column
- ``merge_evolution``: the schema of a table into which rows are merged that bring new columns
- ``session_expressions``: the table's expressions in both meanings that a session can give them
- ``allowed_functions``: the functions that an expression of a table may call
- ``spark_expressions``: the table's expressions that a Spark session computes, and those that none is asked for
- ``ingest_plan``: how incoming rows become rows of the table
- ``identity``: high-water marks of identity columns
- ``statistics_columns``: which columns statistics are collected of
- ``write_state``: what the tasks of a write need to know of a table
"""
