"""The plan of a layout command, made before a row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import pyarrow as pa

from delta_pyds.catalog.managed import check_allowed
from delta_pyds.commands.layout.bins import Bin, Sizes
from delta_pyds.commands.row_changes.condition import bind_condition
from delta_pyds.commands.row_changes.plan import CommandOptions, TargetFiles
from delta_pyds.errors import ColumnNotFoundError, UserError
from delta_pyds.expr.logic import and_
from delta_pyds.expr.nodes import TRUE, Expr, references
from delta_pyds.protocol.actions import AddFile
from delta_pyds.redaction import Concealing
from delta_pyds.table.definition.statistics_columns import show_path
from delta_pyds.table.scan.live_files import REMOVAL_COLUMNS, live_files
from delta_pyds.table.scan.partition_match import files_matching
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.row_counts import row_counts
from delta_pyds.tasks.layout import Curve

LayoutKind = Literal["OPTIMIZE", "REORG"]


@dataclass(frozen=True, repr=False)
class LayoutPlan(Concealing):
    """The plan of one command.

    ``target.files``: the files to rewrite, bin after bin. ``considered``: the number of files that were checked.
    ``by``: logical paths of the columns of the curve; empty for a compaction. ``parameters``:
    ``commitInfo.operationParameters``. ``provider``: the clustering provider of new files. ``input_files``: for a
    curve, all files that were checked, for the returned metrics.
    """

    kind: LayoutKind
    target: TargetFiles
    bins: Sequence[Bin]
    considered: int
    options: CommandOptions
    sizes: Sizes
    started_ms: int
    parameters: dict[str, Any]
    by: tuple[tuple[str, ...], ...] = ()
    curve: Curve = "zorder"
    provider: str | None = None
    columns: tuple[str, ...] = ()
    input_files: Sequence[AddFile] = field(default_factory=tuple)

    @property
    def bytes_to_read(self) -> int:
        """The bytes of all files to rewrite."""
        return sum(file.size for file in self.target.files)


def check_may_lay_out(snapshot: Snapshot) -> None:
    """Refuse early, before a file is read. The layout of append-only tables may change.

    Raises: UnsupportedOperationError if only the table's catalog may do that; UnsupportedFeatureError if delta_pyds
        cannot write the table; StorageError for a store without put-if-absent.
    """
    check_allowed(snapshot.storage, "OPTIMIZE")
    snapshot.configuration.check_writable()
    snapshot.storage.require_put_if_absent(snapshot.table_root)


def bind_partition_filters(snapshot: Snapshot, filters: Sequence[str], options: CommandOptions) -> Expr:
    """All filters of a command as one predicate over partition columns.

    Raises: UserError (DELTA_NON_PARTITION_COLUMN_REFERENCE); ExpressionError for an unsupported expression.
    """
    partition_columns = snapshot.configuration.partition_columns
    bound = []
    for text in filters:
        try:
            predicate = bind_condition(text, snapshot.schema, options)
        except ColumnNotFoundError as error:
            raise _no_partition_filter(snapshot, text, str(error.parameters.get("column", text))) from error
        others = sorted(show_path(path) for path in references(predicate) if path[0] not in partition_columns)
        if others:
            raise _no_partition_filter(snapshot, text, others[0])
        bound.append(predicate)
    return and_(bound) if bound else TRUE


def candidates(
    snapshot: Snapshot,
    predicate: Expr,
    options: CommandOptions,
    keep: Callable[[pa.RecordBatch], pa.Array] | None = None,
) -> Iterator[AddFile]:
    """The live files of the partitions. Of their statistics, only the number of rows is kept.

    ``keep``: see ``live_files``; it gets files of other partitions too.
    """
    scan = plan_scan(
        snapshot,
        pushed=() if predicate == TRUE else (predicate,),
        time_zone=options.time_zone,
        storage_options=options.storage_options,
    )
    files: Iterable[AddFile] = live_files(scan, (*REMOVAL_COLUMNS, "stats", "clusteringProvider"), keep)
    if predicate != TRUE:
        # skipping may keep too many files, so it does not decide which files are rewritten
        files = files_matching(
            files, predicate, snapshot.schema, table=snapshot.table_root, time_zone=options.time_zone
        )
    for file in files:
        num_records = row_counts(file.stats).num_records
        counted = None if num_records is None else f'{{"numRecords":{num_records}}}'
        yield msgspec.structs.replace(file, stats=counted)


def _no_partition_filter(snapshot: Snapshot, text: str, column: str) -> UserError:
    columns = ", ".join(snapshot.configuration.partition_columns)
    return UserError(
        f"Predicate references non-partition column '{column}'. Only the partition columns may be referenced: "
        f"[{columns}]. The filter {text} of optimize chooses whole partitions of the table {snapshot.table_root}.",
        code="DELTA_NON_PARTITION_COLUMN_REFERENCE",
        table=snapshot.table_root,
        filter=text,
    )
