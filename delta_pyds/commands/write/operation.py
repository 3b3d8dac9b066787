"""The operation of a write in the table's history."""

from __future__ import annotations

from delta_pyds.commands.commit import FileChanges
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.target import Target
from delta_pyds.table.transaction.commit_info import Operation, condition_for_the_log
from delta_pyds.table.transaction.mend import Mends

_REPLACES = {"replace": "REPLACE TABLE AS SELECT", "createOrReplace": "CREATE OR REPLACE TABLE AS SELECT"}


def write_operation(
    request: WriteRequest, target: Target, changes: FileChanges, mends: Mends, *, replaces: bool
) -> Operation:
    """The operation of a write that is about to be committed. ``replaces``: there was a table before."""
    metrics = {
        "numFiles": len(changes.written),
        "numOutputRows": sum(file.num_records for file in changes.written),
        "numOutputBytes": sum(file.size_bytes for file in changes.written),
    }
    if request.mode == "overwrite" and replaces:
        metrics["numRemovedFiles"] = len(changes.removes)
        metrics["numRemovedBytes"] = sum(file.size or 0 for file in changes.removes)
    metrics |= mends.metrics
    if request.replaces_table:
        metadata = target.configuration.metadata
        definition = {
            "isManaged": "false",
            "description": metadata.description,
            "partitionBy": list(metadata.partition_columns or ()),
            "clusterBy": [".".join(path) for path in request.cluster_by or ()],
            "properties": dict(metadata.configuration or {}),
        }
        return Operation(_REPLACES[request.create_mode], definition, metrics)
    parameters: dict[str, object] = {
        "mode": "Overwrite" if request.mode == "overwrite" else "Append",
        # the columns of the request; the table's own columns are in its metadata
        "partitionBy": [".".join(path) for path in request.partition_by or ()],
    }
    if request.replace_where is not None:
        parameters["predicate"] = condition_for_the_log(request.replace_where)
    if request.replace_using:
        parameters["replaceUsingCols"] = f"({', '.join(request.replace_using)})"
    if request.replaces_some:
        metrics["numAddedChangeFiles"] = len(changes.change_files)
        if not (changes.written or changes.rewritten or changes.marked):
            # the reference counts no rows for a write without files
            del metrics["numOutputRows"]
        elif changes.deleted_rows is not None:
            metrics |= {"numDeletedRows": changes.deleted_rows, "numCopiedRows": changes.copied_rows}
    if request.dynamic:
        parameters["isDynamicPartitionOverwrite"] = True
    if request.overwrite_schema:
        parameters["canOverwriteSchema"] = True
    if request.merge_schema:
        parameters["canMergeSchema"] = True
    return Operation("WRITE", parameters, metrics)
