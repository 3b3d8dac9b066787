"""The definition of a table, and its allowed changes: protocol, schema, properties, and rules for tasks.

- ``create``: a new table: its metadata, protocol and domains
- ``schema_rules``: rules for schemas
- ``column_mapping``: ids and physical names of columns
- ``property_rules``: the properties that users may set, and their values
- ``protocol_upgrade``: the protocol that the metadata needs
- ``clustering``: clustering columns
- ``replacement``: a table that replaces another one
- ``iceberg_rules``: rules for a table with Iceberg compatibility
- ``schema_enforcement``: whether incoming rows fit the table
- ``schema_evolution``: the metadata of a table whose schema changes
- ``schema_paths``: columns and nested fields by their paths
- ``dependents``: expressions of a table that use a column
- ``merge_evolution``: the schema of the target of a merge that brings new columns
- ``session_expressions``: the table's expressions, bound with and without ANSI mode
- ``allowed_functions``: the functions that an expression of a table may call
- ``spark_expressions``: the table's expressions that a Spark session may compute
- ``ingest_plan``: conversion of incoming rows to rows of the table
- ``identity``: high-water marks of identity columns
- ``statistics_columns``: the columns with statistics
- ``write_state``: a table's properties that the tasks of a write need
"""
