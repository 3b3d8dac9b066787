"""The entry of a command in the table's history: its parameters and metrics, under the reference's names.

Numbers are counted as the reference counts them, oddities included. With deletion vectors, a delete and an update
report 0 removed bytes. Files that only got another vector count as removed only in an update. An update of whole
partitions removes no vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delta_pyds.commands.commit import FileChanges
from delta_pyds.commands.row_changes.plan import RowChangePlan, marks_deletions
from delta_pyds.commands.row_changes.result import Timing
from delta_pyds.protocol.actions import RemoveFile
from delta_pyds.table.scan.partition_match import is_partition_predicate
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.mend import Mends
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.write_state import WrittenFile


@dataclass(frozen=True)
class Counted:
    """Numbers of rows by action. ``deleted``: None if files were removed whose rows were not counted."""

    actions: Mapping[int, int]
    deleted: int | None
    source_rows: int | None = None

    def __getitem__(self, action: Action) -> int:
        return self.actions.get(int(action), 0)

    @property
    def updated(self) -> int:
        return self[Action.UPDATE] + self[Action.UPDATE_NOT_MATCHED_BY_SOURCE]

    @property
    def inserted(self) -> int:
        return self[Action.INSERT]


def operation_of(plan: RowChangePlan, changes: FileChanges, rows: Counted, timing: Timing, mends: Mends) -> Operation:
    """The operation of a command for its commit; the durations end with this call."""
    return Operation(plan.kind, plan.parameters, _METRICS[plan.kind](plan, changes, rows, timing) | mends.metrics)


def _delete(plan: RowChangePlan, changes: FileChanges, rows: Counted, timing: Timing) -> dict[str, int]:
    whole = _whole(changes)
    counts_bytes = plan.whole_files or not marks_deletions(plan.target.snapshot.configuration)
    metrics = {
        "numAddedFiles": len(_new(changes)),
        "numRemovedFiles": len(whole),
        "numRemovedBytes": sum(file.size or 0 for file in whole) if counts_bytes else 0,
        "numDeletionVectorsRemoved": sum(r.deletion_vector is not None for r in changes.removes),
        "numDeletedRows": rows.deleted or 0,
        **_common(changes, timing),
    }
    if rows.deleted is None:
        for unknown in ("numDeletedRows", "numCopiedRows", "numAddedFiles"):
            del metrics[unknown]
    return metrics


def _update(plan: RowChangePlan, changes: FileChanges, rows: Counted, timing: Timing) -> dict[str, int]:
    configuration = plan.target.snapshot.configuration
    marks = marks_deletions(configuration)
    found_by_rows = not is_partition_predicate(plan.read, configuration.partition_columns)
    return {
        "numAddedFiles": len(_new(changes)),
        "numRemovedFiles": len(changes.removes),
        "numRemovedBytes": 0 if marks else sum(file.size or 0 for file in changes.removes),
        "numDeletionVectorsRemoved": sum(r.deletion_vector is not None for r in changes.removes if found_by_rows),
        "numUpdatedRows": rows.updated,
        **_common(changes, timing),
    }


def _merge(_: RowChangePlan, changes: FileChanges, rows: Counted, timing: Timing) -> dict[str, int]:
    whole, new = _whole(changes), _new(changes)
    updated, deleted = rows.updated, rows.deleted or 0
    by_source = rows[Action.DELETE_NOT_MATCHED_BY_SOURCE]
    return {
        "numSourceRows": rows.source_rows or 0,
        "numTargetRowsInserted": rows.inserted,
        "numTargetRowsUpdated": updated,
        "numTargetRowsMatchedUpdated": rows[Action.UPDATE],
        "numTargetRowsNotMatchedBySourceUpdated": rows[Action.UPDATE_NOT_MATCHED_BY_SOURCE],
        "numTargetRowsDeleted": deleted,
        "numTargetRowsMatchedDeleted": deleted - by_source,
        "numTargetRowsNotMatchedBySourceDeleted": by_source,
        "numTargetRowsCopied": changes.copied_rows,
        "numTargetBytesAdded": sum(file.size_bytes for file in new),
        "numTargetBytesRemoved": sum(file.size or 0 for file in whole),
        "numTargetFilesAdded": len(new),
        "numTargetFilesRemoved": len(whole),
        "numTargetChangeFilesAdded": len(changes.change_files),
        "numTargetDeletionVectorsAdded": len(changes.marked),
        "numTargetDeletionVectorsRemoved": sum(r.deletion_vector is not None for r in changes.removes),
        "numTargetDeletionVectorsUpdated": _vectors_updated(changes),
        "numOutputRows": rows.inserted + updated + changes.copied_rows,
        "executionTimeMs": timing.execution_ms,
        "materializeSourceTimeMs": timing.materialize_source_ms,
        "scanTimeMs": timing.scan_ms,
        "rewriteTimeMs": timing.rewrite_ms,
    }


def _truncate(_: RowChangePlan, changes: FileChanges, __: Counted, timing: Timing) -> dict[str, int]:
    return {"numRemovedFiles": len(changes.removes), "executionTimeMs": timing.execution_ms}


_METRICS = {"DELETE": _delete, "UPDATE": _update, "MERGE": _merge, "TRUNCATE": _truncate}


def _common(changes: FileChanges, timing: Timing) -> dict[str, int]:
    return {
        "numAddedBytes": sum(file.size_bytes for file in _new(changes)),
        "numAddedChangeFiles": len(changes.change_files),
        "numCopiedRows": changes.copied_rows,
        "numDeletionVectorsAdded": len(changes.marked),
        "numDeletionVectorsUpdated": _vectors_updated(changes),
        "executionTimeMs": timing.execution_ms,
        "scanTimeMs": timing.scan_ms,
        "rewriteTimeMs": timing.rewrite_ms,
    }


def _new(changes: FileChanges) -> list[WrittenFile]:
    return [*changes.written, *changes.rewritten]


def _whole(changes: FileChanges) -> list[RemoveFile]:
    """The files to remove, without those that only get another deletion vector."""
    marked = {file.path for file in changes.marked}
    return [file for file in changes.removes if file.path not in marked]


def _vectors_updated(changes: FileChanges) -> int:
    marked = {file.path for file in changes.marked}
    return sum(r.deletion_vector is not None and r.path in marked for r in changes.removes)
