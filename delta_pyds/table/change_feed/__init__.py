"""The changes of a range of versions, as rows.

- ``arguments``: the arguments of a read of changes, checked
- ``read_compatibility``: whether rows of one schema can be read with another
- ``changes``: the row changes of one commit, as files to read
- ``computed``: which files are compared, where the changes were not recorded
- ``net``: the files that differ between the ends of a range
- ``report``: what a read of changes reads, and how it finds the changes
- ``change_scan``: a scan of the changes of a range of versions
"""
