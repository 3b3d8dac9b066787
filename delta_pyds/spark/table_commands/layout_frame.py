"""The result of a layout command, as the DataFrame that the reference returns: a path, and a struct of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from delta_pyds.commands.layout.operation import LayoutResult
from delta_pyds.storage.resolve import hadoop_path
from delta_pyds.table.scan.read_report import remember

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


def layout_frame(spark: SparkSession, result: LayoutResult) -> DataFrame:
    """One row."""
    row = {"path": hadoop_path(result.table_root), "metrics": result.metrics}
    frame = spark.createDataFrame(pa.Table.from_pylist([row], schema=_SCHEMA))
    remember(frame, result)
    return frame
