"""Commands that maintain a table.

- ``listing``: the files below a table's root, without following links
- ``needed_files``: the files that retained versions of a table need
- ``removed_files``: the files that the log has removed, for a vacuum without a listing
- ``file_difference``: the difference of two lists of files; which of the files exist
- ``vacuum``: deletes files that no retained version needs
- ``restore``: brings a table back to an earlier version
- ``clone``: a table that refers to the files of another
- ``generate``: manifests of a table's files for engines that do not read the log
- ``removal``: deletes a table, with everything below its root
- ``convert``: a table from a directory of Parquet files
"""
