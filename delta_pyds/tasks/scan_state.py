"""The state of a scan for its tasks: small, picklable, without classes of the log.

One ``ScanState`` is sent for each query, one ``ScanFile`` for each part of a
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

# The additional columns of the change data feed. Protocol: "Reader Requirements for AddCDCFile".
CHANGE_TYPE_COLUMN = "_change_type"
COMMIT_VERSION_COLUMN = "_commit_version"
COMMIT_TIMESTAMP_COLUMN = "_commit_timestamp"
CHANGE_COLUMNS = (CHANGE_TYPE_COLUMN, COMMIT_VERSION_COLUMN, COMMIT_TIMESTAMP_COLUMN)


@dataclass(frozen=True)
class RowIdColumns:
    """Physical names of the materialised row tracking columns; None if the table has none.

    Protocol: "Row Tracking", "Reader Requirements for Row Tracking".
    """

    row_id: str | None
    row_commit_version: str | None


@dataclass(frozen=True)
class ComparedFile:
    """A changed file whose rows are compared with those of other files of the same commit.

    ``group``: the number of the files that are compared with each other. ``removed``: its rows left the table; if not,
    they came. ``row_ids``: rows are the same if these are equal; if it is None, if all their values are.
    """

    group: int
    removed: bool
    row_ids: RowIdColumns | None


@dataclass(frozen=True, repr=False)
class ScanState(Concealing):
    """The state of one scan, for all its tasks.

    ``output``: the columns to return, in order, with pruned nested fields; the
    metadata of each has its physical name and id. The extra columns of
    ``row_position`` and ``row_ids`` come after it, in that order, and are not
    part of it. ``inputs``: the table's columns that ``predicate`` or ``skip``
    use; a column that is also in ``output`` has the fields here that the
    predicate needs. ``predicate``: a bound boolean expression; only rows for
    which it is true are returned. ``skip``: the rewrite of the predicate, and of
    filters that Spark evaluates itself, by ``expr.stats_rewrite``; it rules out
    row groups by their footers. ``partition_columns``: physical names, in the
    order of ``ScanFile.partition_values``; a user's schema may write the logical
    names in another case. ``time_zone``: IANA name, for partition timestamps
    without a zone. ``verify_page_checksums``: verify the checksum of each decoded page that has one.
    ``file_leaves``: the expected number of leaf columns in a file; 0 if all are read.
    ``compared_columns``: of a change feed, the columns by which it compares rows: those of the table that are in files.
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
    compared_columns: StructType | None = None


@dataclass(frozen=True)
class ScanFile:
    """One data file, or its row groups whose midpoint is in ``[start, start + length)`` (bytes).

    ``path``: resolved and decoded, for the storage. ``partition_values``: the
    log's strings, in the order of ``ScanState.partition_columns``. Row positions
    always count from the start of the whole file. ``selected``: only rows in it
    and not in ``deletion_vector`` are returned: the rows that one deletion vector
    adds to another. ``change_data``: a change data file, which contains
    ``_change_type`` itself; a partition value of that name is ignored. ``compared``: of a change feed that is computed.
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
    compared: ComparedFile | None = None
