"""The files that a commit adds to a stream of a table's rows. Protocol: "Add File and Remove File"."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from delta_pyds.errors import UserError
from delta_pyds.log.committer import LoggedCommit
from delta_pyds.log.file_table import files_to_batch
from delta_pyds.protocol.actions import RemoveFile, file_key
from delta_pyds.table.scan.row_selection import FILE_FIELDS

STREAM_FIELDS = (*FILE_FIELDS, "partitionValues", "stats", "modificationTime")


@dataclass(frozen=True)
class StreamRules:
    """The behavior of a stream when rows that it may have read are deleted or changed; options of the same names.

    By default the stream stops.

    Attributes:
        ignore_deletes: commits that only delete add nothing.
        ignore_changes: as ``ignore_deletes``; also, commits that rewrite files are read: all rows of their new files,
            including rows that were read before.
        skip_change_commits: commits that delete or rewrite add nothing.
    """

    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False


def data_files(commit: LoggedCommit, rules: StreamRules, table_root: str) -> pa.RecordBatch:
    """The files that a commit adds with new data, with the columns ``STREAM_FIELDS``.

    Row i has index i in the stream's offsets: files are in the order of the commit, and only ``dataChange`` decides
    which count. A new deletion vector is a change, too: its file is removed and added. A file that is added twice is
    read once, as in the later line.

    Raises:
        UserError: the rules do not allow the commit: it removes data (DELTA_SOURCE_IGNORE_DELETE), or removes and adds
            data (DELTA_SOURCE_TABLE_IGNORE_CHANGES).
    """
    adds = [action.add for action in commit.actions if action.add is not None and action.add.data_change]
    removed = next((a.remove for a in commit.actions if a.remove is not None and a.remove.data_change), None)
    if removed is not None:
        if rules.skip_change_commits:
            adds = []
        elif not (rules.ignore_changes or (rules.ignore_deletes and not adds)):
            raise _refused(commit, removed, bool(adds), table_root)
    return files_to_batch(list({file_key(add): add for add in adds}.values()), STREAM_FIELDS)


def _refused(commit: LoggedCommit, removed: RemoveFile, adds: bool, table_root: str) -> UserError:
    infos = (action.commit_info for action in commit.actions)
    operation = next((info.operation for info in infos if info is not None and info.operation), "unknown")
    done = "changed rows that a stream may have read already" if adds else "deleted rows"
    also = "" if adds else "ignoreDeletes=true to skip commits that only delete, as this one does; "
    not_enough = " (ignoreDeletes=true, which skips commits that only delete, is not enough here)" if adds else ""
    return UserError(
        f"Version {commit.version} of table {table_root!r} {done}: its operation {operation} removed the file "
        f"{removed.path!r}, for example. A stream of the table's rows cannot express that, so it stops here. To "
        f"continue, set one of these options: {also}skipChangeCommits=true to skip commits that delete or change rows, "
        "including the new rows in them; ignoreChanges=true to read the files that such a commit adds, with unchanged "
        f"rows read again{not_enough}. If the stream's target must be correct after the change, do a full refresh "
        "instead: start the query with a new checkpoint location and an empty target.",
        code="DELTA_SOURCE_TABLE_IGNORE_CHANGES" if adds else "DELTA_SOURCE_IGNORE_DELETE",
        table=table_root,
        version=commit.version,
        operation=operation,
    )
