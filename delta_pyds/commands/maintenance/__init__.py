"""Commands that keep a table in order, and change none of its rows.

- ``listing``: what lies below a table's root: a walk that no link leads out of
- ``needed_files``: the files that retained versions of a table need
- ``removed_files``: the files that a log says were removed, for a vacuum that lists nothing
- ``other_tables``: tables that lie below the root of this one
- ``locations``: absolute paths as other engines and the log spell them
- ``file_difference``: what one list of files has and another has not
- ``present_files``: which files that a log names are there
- ``store_clock``: whether a store's clock is far from this machine's
- ``vacuum``: deletes files that no retained version needs
- ``restore``: a table as it was at an earlier version
- ``clone_properties``: which properties a clone may have beside those of its source
- ``clone``: a table that names the files of another
- ``generate``: manifests of a table's files for engines that know no log
- ``removal``: a table deleted, with all that lies below its root
- ``convert``: a table out of a directory of Parquet files
"""
