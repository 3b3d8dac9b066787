"""``delta_pyds.apply_changes``: a table is kept equal to a stream of changes.

- ``call``: the function itself, and the function of a stream
- ``rules``: its arguments, checked without any table
- ``target``: the table: opened or created, its columns compared with those of the changes
- ``prepared``: the changes with checked keys and sequences
- ``newest``: SCD 1: the newest change of each key, as a merge
- ``history``: SCD 2: the history of each key, as a merge
- ``refusals``: errors about rows, raised inside a query and named here
"""
