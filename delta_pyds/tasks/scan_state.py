"""The state that planning sends to the tasks of a scan: small, picklable, free of the log's classes.

One ``ScanState`` travels once per query, a ``ScanFile`` once per piece of a
file. Executors import this module, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import StructType

if TYPE_CHECKING:
    from delta_pyds.expr.nodes import Expr
    from delta_pyds.expr.stats_rewrite import Skip
from delta_pyds.redaction import Concealing

FILE_PATH_COLUMN = "_file_path"
ROW_POSITION_COLUMN = "_row_position"
ROW_ID_COLUMN = "_row_id"
ROW_COMMIT_VERSION_COLUMN = "_row_commit_version"

# The columns of the change feed that are not the table's. Protocol: "Reader Requirements for AddCDCFile".
CHANGE_TYPE_COLUMN = "_change_type"
COMMIT_VERSION_COLUMN = "_commit_version"
COMMIT_TIMESTAMP_COLUMN = "_commit_timestamp"
CHANGE_COLUMNS = (CHANGE_TYPE_COLUMN, COMMIT_VERSION_COLUMN, COMMIT_TIMESTAMP_COLUMN)


@dataclass(frozen=True)
class RowIdColumns:
    """Physical names of the materialised row tracking columns; None when the table names none.

    Protocol: "Row Tracking", "Reader Requirements for Row Tracking".
    """

    row_id: str | None
    row_commit_version: str | None


@dataclass(frozen=True, repr=False)
class ScanState(Concealing):
    """All that every task of one scan needs to know.

    Invariants: ``output`` holds the columns to return, in order, nested fields
    pruned, each with the metadata that carries its physical name and id; the
    extra columns of ``row_position`` and ``row_ids`` come after it, in that
    order, and are not part of it. ``inputs`` holds the table's columns that
    ``predicate`` or ``skip`` refer to and ``output`` may lack; a column in
    both has there the fields that the predicate needs.
    ``predicate``: a bound boolean expression: only rows for which it is true
    are returned. ``skip``: what ``expr.stats_rewrite``
    made of it (and of filters that Spark evaluates itself): it may rule out row
    groups by their footers.
    ``partition_columns``: physical names, in the order of
    ``ScanFile.partition_values``; a user's schema may spell the logical ones its own way.
    ``time_zone``: IANA name, for partition timestamps written without a zone.
    ``verify_page_checksums``: of the pages that are decoded, those that have one.
    ``file_leaves``: how many leaf columns a file of the table should have; 0 where all of them are read.
    """

    table_root: str
    storage_options: Mapping[str, Any]
    output: StructType
    inputs: StructType
    partition_columns: tuple[str, ...]
    column_mapping_mode: str  # "none", "name" or "id"
    predicate: Expr | None = None
    skip: Skip | None = None
    row_position: bool = False
    row_ids: RowIdColumns | None = None
    batch_rows: int = 65_536
    time_zone: str = "UTC"
    verify_page_checksums: bool = True
    file_leaves: int = 0


@dataclass(frozen=True)
class ScanFile:
    """One data file, or the row groups of it whose midpoint lies in ``[start, start + length)``.

    ``path``: resolved and decoded, ready for the storage. ``partition_values``:
    as the log has them, in the order of ``ScanState.partition_columns``.
    Row positions always count from the start of the whole file. ``selected``:
    where given, only rows that it names are returned, less those of
    ``deletion_vector``: what one deletion vector adds to another.
    ``change_data``: a change data file, which holds ``_change_type`` itself,
    so that the partition value of that name does not count.
    """

    path: str
    size_bytes: int
    partition_values: tuple[str | None, ...] = ()
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    start: int = 0
    length: int | None = None
    selected: DeletionVectorDescriptor | None = None
    change_data: bool = False
