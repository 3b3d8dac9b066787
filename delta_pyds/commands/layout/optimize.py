"""Plans of the layout commands: compaction, purge of deletion vectors, Z-order, clustering.

    plan = plan_optimize(snapshot, ["day >= '2026-01-01'"], options)
    result = run_layout(plan, Place("process", "..."))

Protocol: "Deletion Vectors", "Clustered Table".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from delta_pyds.commands.layout.bins import (
    Bin,
    Sizes,
    compaction_bins,
    cubes,
    may_need_compaction,
    needs_compaction,
    rewriting_bins,
    whole_partitions,
)
from delta_pyds.commands.layout.cubes import PROVIDER, files_to_cluster, new_cube_tags
from delta_pyds.commands.layout.plan import (
    LayoutKind,
    LayoutPlan,
    bind_partition_filters,
    candidates,
    check_may_lay_out,
)
from delta_pyds.commands.row_changes.plan import CommandOptions, files_state, target_files
from delta_pyds.errors import OptionError, UnsupportedOperationError, UserError
from delta_pyds.expr.nodes import TRUE, Expr
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import has_minimum
from delta_pyds.table.definition.clustering import logical_clustering_columns
from delta_pyds.table.definition.statistics_columns import Path, find_path, parse_columns, show_path
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import condition_for_the_log

DEFAULT_SIZES = Sizes()


def plan_optimize(
    snapshot: Snapshot,
    filters: Sequence[str],
    options: CommandOptions,
    *,
    sizes: Sizes = DEFAULT_SIZES,
    full: bool = False,
) -> LayoutPlan:
    """Plan ``optimize`` without a Z-order: cluster a clustered table, compact small files of other tables.

    ``full``: files that were clustered by other columns are clustered again.

    Raises: UnsupportedOperationError (DELTA_CLUSTERING_WITH_PARTITION_PREDICATE, DELTA_OPTIMIZE_FULL_NOT_SUPPORTED);
        UserError (DELTA_NON_PARTITION_COLUMN_REFERENCE); ExpressionError for a filter that our evaluator does not
        support.
    """
    by = _clustering(snapshot)
    if by:
        if filters:
            raise UnsupportedOperationError(
                f"the table {snapshot.table_root} is clustered, so it has no partitions to filter: optimize it without "
                "a filter.",
                code="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
                table=snapshot.table_root,
            )
        return _plan_clustering(snapshot, by, options, sizes, full=full)
    if full:
        raise UnsupportedOperationError(
            f"the table {snapshot.table_root} is not clustered, and a full optimize is only for clustered tables: "
            "optimize it without full.",
            code="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
            table=snapshot.table_root,
        )
    return plan_compaction(snapshot, filters, options, sizes=sizes)


def plan_compaction(
    snapshot: Snapshot, filters: Sequence[str], options: CommandOptions, *, sizes: Sizes = DEFAULT_SIZES
) -> LayoutPlan:
    """Plan to compact small files, and files with many deleted rows."""
    considered, files = _counted(snapshot, bind_partition_filters(snapshot, filters, options), options, sizes)
    small = [file for file in files if needs_compaction(file, sizes)]
    bins = compaction_bins(small, sizes)
    return _plan(snapshot, options, sizes, "OPTIMIZE", bins, _parameters(filters), considered)


def plan_auto_compaction(
    snapshot: Snapshot,
    predicate: Expr,
    options: CommandOptions,
    sizes: Sizes,
    worth: Callable[[list[AddFile]], list[AddFile]],
) -> LayoutPlan:
    """Plan a compaction after a write. ``predicate``: selects partitions. ``worth``: chooses among all small files."""
    considered, files = _counted(snapshot, predicate, options, sizes)
    bins = compaction_bins(worth([file for file in files if needs_compaction(file, sizes)]), sizes)
    return _plan(snapshot, options, sizes, "OPTIMIZE", bins, {**_parameters(()), "auto": True}, considered)


def plan_purge(
    snapshot: Snapshot, filters: Sequence[str], options: CommandOptions, *, sizes: Sizes = DEFAULT_SIZES
) -> LayoutPlan:
    """Plan to rewrite files without their deleted rows. Raises: as ``plan_optimize``."""
    return plan_reorg(snapshot, filters, options, _marked, sizes=sizes)


def plan_reorg(
    snapshot: Snapshot,
    filters: Sequence[str],
    options: CommandOptions,
    chosen: Callable[[Iterable[AddFile]], Iterable[AddFile]],
    *,
    sizes: Sizes = DEFAULT_SIZES,
) -> LayoutPlan:
    """Plan to rewrite some files, also a single one of a partition. Raises: as ``plan_optimize``."""
    considered, files = _counted(snapshot, bind_partition_filters(snapshot, filters, options), options)
    # in the reference's history every REORG is a purge
    parameters = {"predicate": [condition_for_the_log(text) for text in filters], "applyPurge": True}
    bins = rewriting_bins(chosen(files), sizes)
    return _plan(snapshot, options, sizes, "REORG", bins, parameters, considered)


def _marked(files: Iterable[AddFile]) -> Iterator[AddFile]:
    return (file for file in files if file.deletion_vector is not None)


def plan_zorder(
    snapshot: Snapshot,
    columns: Sequence[str],
    filters: Sequence[str],
    options: CommandOptions,
    *,
    sizes: Sizes = DEFAULT_SIZES,
) -> LayoutPlan:
    """Plan to rewrite all files of the partitions along a curve through the columns; without columns, a compaction.

    Raises: OptionError (DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST, DELTA_ZORDERING_ON_PARTITION_COLUMN,
        DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS); UserError (DELTA_CLUSTERING_WITH_ZORDER_BY); as ``plan_optimize``.
    """
    if _clustering(snapshot):
        raise UserError(
            f"the table {snapshot.table_root} has clustering columns: optimize it without a Z-order by "
            f"({', '.join(columns)}).",
            code="DELTA_CLUSTERING_WITH_ZORDER_BY",
            table=snapshot.table_root,
        )
    if not columns:
        return plan_compaction(snapshot, filters, options, sizes=sizes)
    by = _zorder_columns(snapshot, columns, options)
    considered, files = _counted(snapshot, bind_partition_filters(snapshot, filters, options), options)
    parameters = {**_parameters(filters), "zOrderBy": [show_path(path) for path in by]}
    return _plan(snapshot, options, sizes, "OPTIMIZE", whole_partitions(files), parameters, considered, by=by)


def _plan_clustering(
    snapshot: Snapshot, by: tuple[Path, ...], options: CommandOptions, sizes: Sizes, *, full: bool
) -> LayoutPlan:
    columns = tuple(show_path(path) for path in by)
    considered, found = _counted(snapshot, TRUE, options)
    files = list(found)
    chosen = files_to_cluster(files, columns, sizes, full=full)
    bins = [Bin(some.files, new_cube_tags(columns)) for some in cubes(chosen, sizes)]
    parameters = {**_parameters(()), "clusterBy": list(columns), "isFull": full}
    return _plan(
        snapshot, options, sizes, "OPTIMIZE", bins, parameters, considered,
        by=by, curve="hilbert", provider=PROVIDER, columns=columns, input_files=files,
    )  # fmt: skip


def _plan(
    snapshot: Snapshot,
    options: CommandOptions,
    sizes: Sizes,
    kind: LayoutKind,
    bins: Sequence[Bin],
    parameters: dict[str, Any],
    considered: list[int],
    **more: Any,
) -> LayoutPlan:
    started_ms = int(time.time() * 1000)
    target = target_files(snapshot, [file for some in bins for file in some.files], options)
    return LayoutPlan(kind, target, bins, considered[0], options, sizes, started_ms, parameters, **more)


def _parameters(filters: Sequence[str]) -> dict[str, Any]:
    shown = [condition_for_the_log(text) for text in filters]
    return {"predicate": shown, "zOrderBy": [], "clusterBy": [], "auto": False}


def _counted(
    snapshot: Snapshot, predicate: Expr, options: CommandOptions, sizes: Sizes | None = None
) -> tuple[list[int], Iterator[AddFile]]:
    """The number of files in the partitions, complete after the iteration, and the files.

    ``sizes``: leaves out files of sufficient size without a deletion vector: they certainly need no compaction.
    """
    check_may_lay_out(snapshot)
    count = [0]

    if sizes is not None and predicate == TRUE:

        def keep(files: pa.RecordBatch) -> pa.Array:
            count[0] += files.num_rows
            return may_need_compaction(files, sizes)

        # large files do not become objects, even if a table has a million of them
        return count, candidates(snapshot, predicate, options, keep)

    def counting() -> Iterator[AddFile]:
        for file in candidates(snapshot, predicate, options):
            count[0] += 1
            yield file

    return count, counting()


def _clustering(snapshot: Snapshot) -> tuple[Path, ...]:
    """The clustering columns; none without the table feature."""
    if not snapshot.configuration.supports(Feature.CLUSTERING):
        return ()
    paths = logical_clustering_columns(snapshot.schema, snapshot.domain_metadata)
    gone = [path for path in paths if find_path(snapshot.schema, path) is None]
    if gone:
        raise UserError(
            f"the table {snapshot.table_root} is clustered by {show_path(gone[0])!r}, which is not a column any "
            "more: cluster it by other columns (clusterBy) first.",
            code="DELTA_CLUSTERING_COLUMNS_MISMATCH",
            table=snapshot.table_root,
        )
    return paths


def _zorder_columns(snapshot: Snapshot, columns: Sequence[str], options: CommandOptions) -> tuple[Path, ...]:
    """The columns in the schema's spelling."""
    root, partitions = snapshot.table_root, snapshot.configuration.partition_columns
    with_statistics = files_state(snapshot, options).stats_columns
    by: list[Path] = []
    for text in columns:
        paths = parse_columns(text)
        found = find_path(snapshot.schema, paths[0]) if len(paths) == 1 else None
        if found is None:
            raise OptionError(
                f"the table {root} has no column {text!r} to Z-order by. It has: {', '.join(snapshot.schema.names)}.",
                code="DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
                table=root,
                column=text,
            )
        path, data_type = found
        if path[0] in partitions:
            raise OptionError(
                f"{text} is a partition column. Z-Ordering can only be performed on data columns: in a file "
                f"of the table {root} all rows have the same value of it.",
                code="DELTA_ZORDERING_ON_PARTITION_COLUMN",
                table=root,
                column=text,
            )
        if path not in with_statistics or not has_minimum(data_type):
            raise OptionError(
                f"a Z-order of the table {root} by {text} would skip no file: no smallest and greatest values of the "
                "column are collected. Name it in delta.dataSkippingStatsColumns, or raise "
                "delta.dataSkippingNumIndexedCols.",
                code="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
                table=root,
                column=text,
            )
        by.append(path)
    return tuple(dict.fromkeys(by))
