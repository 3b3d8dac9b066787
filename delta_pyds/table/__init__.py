"""A table: its versions, scans of them, and transactions.

- ``configuration``: what protocol and metadata allow and require; the only module with feature checks
- ``time_travel``: a user's timestamp as milliseconds
- ``history``: the commit time and the operation of each version
- ``snapshot``: a table at one version: protocol, metadata and access to its files, never a list of them
- ``definition``: what a table is and may become
- ``detail``: a one-line summary of a table
- ``scan``: planning a read
- ``change_feed``: the changes of a range of versions
- ``stream``: a table as the source of a stream
- ``transaction``: one change of a table: the version that it reads, and the new version
"""
