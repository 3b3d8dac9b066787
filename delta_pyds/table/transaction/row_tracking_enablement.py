"""Checks whether row tracking can be enabled. Protocol: "Row Tracking"."""

from __future__ import annotations

from collections.abc import Set

import pyarrow.compute as pc

from delta_pyds.columnar.path_keys import path_keys
from delta_pyds.errors import DeltaError
from delta_pyds.log.adds import AddRequest
from delta_pyds.protocol.features import Feature
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.snapshot import Snapshot


def check_row_tracking_enabled(
    snapshot: Snapshot | None, after: TableConfiguration, *, replaced: Set[str], read_whole_table: bool
) -> None:
    """Refuse to enable row tracking while a file of the table has no row ids.

    ``replaced``: files that the transaction removes or adds again, by ``path_key``. Reads the
    list of files, but only for the commit that enables it. Files that other
    commits add meanwhile have ids only if the feature was supported before.
    """
    if not after.has_row_tracking:
        return
    columns = after.row_id_columns()
    if columns.row_id is None or columns.row_commit_version is None:
        raise _refusal(after, "the properties lack the names of its materialized columns")
    if snapshot is None or snapshot.configuration.has_row_tracking:
        return
    unnumbered = 0
    for batch in snapshot.adds(AddRequest(columns=("path", "baseRowId"))):
        missing = batch.files.filter(pc.is_null(batch.files.column("baseRowId")))
        unnumbered += sum(key not in replaced for key in path_keys(missing.column("path")).to_pylist())
    if unnumbered:
        raise _refusal(after, f"{unnumbered} of its files have no row ids yet")
    if not snapshot.configuration.supports(Feature.ROW_TRACKING) and not read_whole_table:
        raise _refusal(after, "other writers do not assign row ids to new files yet")


def _refusal(after: TableConfiguration, why: str) -> DeltaError:
    return DeltaError(
        f"row tracking cannot be enabled on table {after.table_root!r}: {why}. Add the table feature rowTracking "
        "first, assign row ids to all files, and then set delta.enableRowTracking=true.",
        code="DELTA_ROW_TRACKING_NOT_READY",
        table=after.table_root,
    )
