"""OPTIMIZE, REORG and CLUSTER BY: how the rows of a table lie in files.

A layout does not write rows of an application, so the session's transaction settings do not apply to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from delta_pyds.commands.layout import cluster_by as clustering
from delta_pyds.commands.layout.operation import LayoutResult
from delta_pyds.commands.layout.optimize import plan_optimize, plan_purge, plan_zorder
from delta_pyds.commands.layout.plan import LayoutPlan
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.commit_rows import run_again
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.place import command_options, place_of_supported
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.spark.table_commands.settings import layout_sizes, without_transaction
from delta_pyds.storage.resolve import hadoop_path
from delta_pyds.table.scan.read_report import remember

_Plan = Callable[..., LayoutPlan]


def compact(handle: TableHandle, filters: Sequence[str], *, full: bool = False) -> DataFrame:
    """Rewrite small files as few. ``full``: in a clustered table, also files that other columns cluster."""
    return _run(handle, partial(plan_optimize, filters=filters, full=full))


def z_order(handle: TableHandle, columns: Sequence[str], filters: Sequence[str]) -> DataFrame:
    """Rewrite all files, so that rows that are near in these columns are in few files."""
    return _run(handle, partial(plan_zorder, columns=columns, filters=filters))


def purge(handle: TableHandle, filters: Sequence[str]) -> DataFrame:
    """Rewrite the files that have rows marked by deletion vectors, without those rows."""
    return _run(handle, partial(plan_purge, filters=filters))


def cluster_by(handle: TableHandle, columns: Sequence[str]) -> None:
    """Set the clustering columns; none ends clustering."""
    now = without_transaction(handle)
    run_again(now.max_runs, lambda: clustering.cluster_by(now.open(), columns, command_options(now)))


def _run(handle: TableHandle, plan: _Plan) -> DataFrame:
    """The result as the DataFrame that the reference returns: a path, and a struct of metrics."""
    with errors_as_they_were():
        now = without_transaction(handle)

        def once() -> LayoutResult:
            planned = plan(now.open(), options=command_options(now), sizes=layout_sizes(now.spark))
            return run_layout(planned, *place_of_supported(now, planned.bytes_to_read))

        result = run_again(now.max_runs, once)
        row = {"path": hadoop_path(result.table_root), "metrics": result.metrics}
        frame = now.spark.createDataFrame(pa.Table.from_pylist([row], schema=_SCHEMA))
        remember(frame, result)
        return frame


def _numbers(*names: str, nullable: bool = False) -> list[pa.Field]:
    return [pa.field(name, pa.int64(), nullable) for name in names]


def _counted(number: str) -> pa.DataType:
    return pa.struct(_numbers(number, "size"))


_SIZES = pa.struct(
    [*_numbers("min", "max", nullable=True), pa.field("avg", pa.float64(), False), *_numbers("totalFiles", "totalSize")]
)


_ZORDER = pa.struct(
    [
        pa.field("strategyName", pa.string()),
        pa.field("inputCubeFiles", _counted("num")),
        pa.field("inputOtherFiles", _counted("num")),
        *_numbers("inputNumCubes"),
        pa.field("mergedFiles", _counted("num")),
        *_numbers("numOutputCubes"),
        *_numbers("mergedNumCubes", nullable=True),
    ]
)


_CLUSTERING = pa.struct(
    [
        pa.field("inputZCubeFiles", _counted("numFiles")),
        pa.field("inputOtherFiles", _counted("numFiles")),
        *_numbers("inputNumZCubes"),
        pa.field("mergedFiles", _counted("numFiles")),
        *_numbers("numOutputZCubes"),
    ]
)


_PARALLELISM = pa.struct(
    _numbers(
        "maxClusterActiveParallelism",
        "minClusterActiveParallelism",
        "maxSessionActiveParallelism",
        "minSessionActiveParallelism",
        nullable=True,
    )
)


_VECTORS = pa.struct(_numbers("numDeletionVectorsRemoved", "numDeletionVectorRowsRemoved"))


_METRICS = pa.struct(
    [
        *_numbers("numFilesAdded", "numFilesRemoved"),
        pa.field("filesAdded", _SIZES),
        pa.field("filesRemoved", _SIZES),
        *_numbers("partitionsOptimized"),
        pa.field("zOrderStats", _ZORDER),
        pa.field("clusteringStats", _CLUSTERING),
        *_numbers("numBins", "numBatches", "totalConsideredFiles", "totalFilesSkipped"),
        pa.field("preserveInsertionOrder", pa.bool_(), False),
        *_numbers(
            "numFilesSkippedToReduceWriteAmplification",
            "numBytesSkippedToReduceWriteAmplification",
            "startTimeMs",
            "endTimeMs",
            "totalClusterParallelism",
            "totalScheduledTasks",
        ),
        pa.field("autoCompactParallelismStats", _PARALLELISM),
        pa.field("deletionVectorStats", _VECTORS),
        *_numbers("numTableColumns", "numTableColumnsWithStats"),
    ]
)


_SCHEMA = pa.schema([("path", pa.string()), ("metrics", _METRICS)])
