"""From options to a snapshot, a scan and its partitions. Planner processes load this package, tasks never.

- ``pinned``: the version of a load
- ``time_zone``: the time zone of Spark's JVM, if the session's is unknown
- ``driver``: the snapshot of a read, its scan, and its partitions
- ``pruning``: conditions of a statement that rule files out
- ``types``: schemas between Spark and the protocol
- ``extra_columns``: the columns that ``rowPosition`` and ``rowIds`` add
"""
