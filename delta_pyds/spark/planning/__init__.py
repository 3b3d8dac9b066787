"""Options to a snapshot, a scan and its partitions: what planner processes load, and no task.

- ``pinned``: what a load is pinned to
- ``time_zone``: the time zone of Spark's JVM, for a session whose own is not known
- ``driver``: the snapshot of a read, its scan, and its partitions
- ``types``: schemas between Spark and the protocol
- ``extra_columns``: the columns that ``rowPosition`` and ``rowIds`` add
"""
