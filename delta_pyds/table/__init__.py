"""A table: its versions, scans of them, and transactions.

- ``sound_schema``: whether the columns of a schema can be told apart
- ``configuration``: what protocol and metadata allow and demand; the one place that asks
- ``time_travel``: the time that a user names, as milliseconds
- ``history``: when each version was committed, and by what
- ``snapshot``: a table at one version: protocol, metadata and the way to its files, never a list of them
- ``definition``: what a table is and may become
- ``detail``: what a table is, in one line
- ``scan``: planning a read
- ``change_feed``: the changes of a range of versions
- ``stream``: a table as the source of a stream
- ``transaction``: one change of a table, from what was read to a new version
"""
