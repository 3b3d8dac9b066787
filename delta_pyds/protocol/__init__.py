"""The specification's nouns as plain values: no I/O, no Arrow, no Spark.

From the names of files to what stands in them:

- ``quoting``: names in backticks
- ``paths``: names of files in the log and in the table; the only place that percent-decodes
- ``foreign_json``: JSON that others wrote, as values
- ``integers``: integers of the widths that the protocol gives them
- ``actions``: the actions of the log, field by field
- ``features``: the table features, what enables each, and whether this version supports it
- ``properties``: the table properties, typed
- ``schema``: types of a table and their serialised form, the ``schemaString``
- ``char_types``: the lengths of ``char(n)`` and ``varchar(n)``
- ``type_changes``: which type may become which, and how a change is recorded
- ``temporal``: dates, timestamps and time zones of any year
- ``floating_text``: floating point numbers as Java writes them
- ``partition_values``: the strings of the log as typed values
- ``deletion_vector``: the descriptor of a deletion vector, Z85
- ``stream_offset``: the position of a stream, the JSON in a query's checkpoint
"""
