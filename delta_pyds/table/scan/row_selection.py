"""Selection of columns and rows of a table, and of the files that may hold them.

Protocol: "Per-file Statistics", "Column Mapping".
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.scan_files import PARTITION_PREFIX
from delta_pyds.columnar.skipping import keep
from delta_pyds.errors import UserError
from delta_pyds.expr.nodes import And, Expr, references
from delta_pyds.expr.stats_rewrite import Needs, Skip, needs, skipping
from delta_pyds.log.statistics_cache import Columns, StatisticsFilter
from delta_pyds.protocol.schema import StructType, num_leaves
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.scan.column_selection import match_user_schema, parse_column_list, select_columns
from delta_pyds.table.scan.file_statistics import SkippingColumns, partition_strings
from delta_pyds.tasks.scan_state import (
    FILE_PATH_COLUMN,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    ROW_POSITION_COLUMN,
    RowIdColumns,
    ScanState,
)

# The fields of a file that a task needs, besides partition values.
FILE_FIELDS = ("path", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")


@dataclass(frozen=True)
class Relation:
    """Columns to select from: those of a table or of its change feed.

    ``partition_columns``: logical names of the columns whose values the log has; each is a column of ``schema``.
    ``change_feed``: the last three columns are the change columns.
    """

    table_root: str
    schema: StructType
    partition_columns: tuple[str, ...]
    column_mapping_mode: str
    change_feed: bool = False

    @staticmethod
    def of(configuration: TableConfiguration) -> Relation:
        return Relation(
            configuration.table_root,
            configuration.schema,
            configuration.partition_columns,
            configuration.column_mapping_mode,
        )


@dataclass(frozen=True)
class RowSelection:
    """Selected rows and columns of a relation. ``state`` goes to every task.

    Invariant: ``keep`` drops a file only if partition values or statistics prove that none of its rows satisfies
    ``state.predicate`` (or the pushed filters).
    ``uses_time_zone``: the result of the predicate depends on the time zone.
    """

    relation: Relation
    state: ScanState
    where: str | None
    uses_time_zone: bool
    filters: tuple[Expr, ...] = field(default=())

    @cached_property
    def skips(self) -> tuple[Skip, ...]:
        return tuple(skipping(f, self.relation.partition_columns) for f in self.filters)

    @cached_property
    def skipping_columns(self) -> SkippingColumns:
        """The columns of ``add`` that ``skips`` need."""
        wanted = reduce(operator.or_, (needs(s) for s in self.skips), Needs())
        return SkippingColumns(wanted, self.relation.schema, self.state.time_zone, self.relation.table_root)

    @property
    def file_fields(self) -> tuple[str, ...]:
        """The fields of ``add`` that ``to_scan_batch`` needs."""
        return (*FILE_FIELDS, *(("partitionValues",) if self.state.partition_columns else ()))

    def keep(self, add: pa.StructArray) -> pa.BooleanArray | None:
        """One boolean per add action: whether the file may hold wanted rows; None without filters.

        ``add`` has at least the fields ``skipping_columns.json_fields`` (or ``parsed_fields``).
        """
        return self.file_filter(add) if self.skips else None

    @cached_property
    def file_filter(self) -> StatisticsFilter:
        """``keep`` in the form that the log module needs."""
        return _Skipping(self.skips, self.skipping_columns)

    def to_scan_batch(self, files: pa.RecordBatch) -> pa.RecordBatch:
        """Rows with the fields ``file_fields`` as rows of ``columnar.scan_files``."""
        partitions = self.state.partition_columns
        arrays = [files.column(name) for name in FILE_FIELDS]
        add = files.to_struct_array() if partitions else None
        arrays += [partition_strings(add, p) for p in partitions]
        return pa.RecordBatch.from_arrays(
            arrays, names=[*FILE_FIELDS, *(f"{PARTITION_PREFIX}{i}" for i in range(len(partitions)))]
        )


@dataclass(frozen=True)
class _Skipping(StatisticsFilter):
    skips: tuple[Skip, ...]
    skipping_columns: SkippingColumns

    @property
    def keys(self) -> tuple[Hashable, ...]:
        return self.skipping_columns.keys

    def columns(self, add: pa.StructArray) -> Columns:
        return self.skipping_columns.columns(add)

    def matches(self, columns: Columns, num_files: int) -> pa.BooleanArray:
        bound = self.skipping_columns.bind(columns, num_files)
        return reduce(pc.and_, (keep(skip, bound) for skip in self.skips))


def select_rows(
    relation: Relation,
    *,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    schema: StructType | None = None,
    pushed: Sequence[Expr] = (),
    time_zone: str = "UTC",
    row_position: bool = False,
    row_ids: RowIdColumns | None = None,
    storage_options: Mapping[str, Any] | None = None,
    verify_page_checksums: bool = True,
) -> RowSelection:
    """Choose rows and columns; the arguments are those of ``table.scan.scan.plan_scan``.

    Raises: ExpressionError, ColumnNotFoundError, UserError.
    """
    table = relation.table_root
    output = relation.schema
    if columns is not None:
        listed = ",".join(columns) if not isinstance(columns, str) else columns
        output = select_columns(relation.schema, parse_column_list(listed), table)
    if schema is not None:
        output = match_user_schema(relation.schema, schema, table)
    _check_names(output, row_position, row_ids is not None, table)
    predicate: Expr | None = None
    uses_time_zone = False
    if where is not None and where.strip():
        # imported here: most scans have no predicate
        from delta_pyds.expr.parse import parse_predicate

        parsed = parse_predicate(where, relation.schema, time_zone=time_zone)
        predicate, uses_time_zone = parsed.expr, parsed.uses_time_zone
    filters = tuple(([predicate] if predicate is not None else []) + list(pushed))
    paths = sorted({path for f in filters for path in references(f)})
    inputs = select_columns(relation.schema, paths, table)
    used = {f.physical_name for f in (*output, *inputs)}
    skip = None
    if filters:
        whole = filters[0] if len(filters) == 1 else And(filters)
        skip = skipping(whole, relation.partition_columns)
    state = ScanState(
        table_root=table,
        storage_options=dict(storage_options or {}),
        output=output,
        inputs=inputs,
        partition_columns=tuple(
            f.physical_name for f in relation.schema if f.name in relation.partition_columns and f.physical_name in used
        ),
        column_mapping_mode=relation.column_mapping_mode,
        predicate=predicate,
        skip=skip,
        row_position=row_position,
        row_ids=row_ids,
        time_zone=time_zone,
        verify_page_checksums=verify_page_checksums,
        file_leaves=0 if output == relation.schema and not filters else num_leaves(relation.schema),
    )
    return RowSelection(relation, state, where, uses_time_zone, filters)


def _check_names(output: StructType, row_position: bool, row_ids: bool, table: str) -> None:
    extra = [FILE_PATH_COLUMN, ROW_POSITION_COLUMN] if row_position else []
    extra += [ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN] if row_ids else []
    clash = [n for n in extra if n in {name.lower() for name in output.names}]
    if clash:
        raise UserError(
            f"the table {table} has a column named {clash[0]}, which the option "
            f"{'rowPosition' if clash[0] in (FILE_PATH_COLUMN, ROW_POSITION_COLUMN) else 'rowIds'} would add. "
            "Exclude it with the option columns, or read without that option.",
            code="DELTA_COLUMN_NAME_CONFLICT",
            table=table,
            column=clash[0],
        )
