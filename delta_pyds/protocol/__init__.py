"""The specification's terms as plain values: no I/O, no Arrow, no Spark.

From the names of files to their contents:

- ``quoting``: names in backticks
- ``paths``: names of files in the log and in the table; the only module that percent-decodes
- ``foreign_json``: decoding of JSON that other writers produced
- ``actions``: the actions of the log, field by field
- ``features``: the table features, what enables each, and whether this release supports it
- ``properties``: the table properties, typed
- ``schema``: logical types and their serialised form, the ``schemaString``
- ``char_types``: the lengths of ``char(n)`` and ``varchar(n)``
- ``type_changes``: type widening: the allowed changes, and how the schema records them
- ``temporal``: dates, timestamps and time zones of any year
- ``floating_text``: floating point numbers as Java writes them
- ``partition_values``: partition strings of the log as typed values
- ``deletion_vector``: deletion vector descriptors and Z85
- ``stream_offset``: the offset of a stream, as JSON in a query's checkpoint
"""
