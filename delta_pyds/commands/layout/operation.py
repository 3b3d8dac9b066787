"""The operation and metrics of a layout command, for history and the caller, under the reference's names."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from delta_pyds.commands.layout.cubes import cube_of
from delta_pyds.commands.layout.plan import LayoutPlan
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.html_table import ShownAsTable
from delta_pyds.protocol.actions import AddFile
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.mend import Mends
from delta_pyds.tasks.write_state import WrittenFile


@dataclass(frozen=True)
class LayoutResult(ShownAsTable):
    """``version``: the committed version; None if no file was rewritten.

    ``metrics``: the struct that the reference returns, as nested dicts of its names.
    """

    table_root: str
    version: int | None
    metrics: dict[str, Any]
    place: Place

    def __str__(self) -> str:
        if self.version is None:
            return f"rewrote none of {self.metrics['totalConsideredFiles']} files"
        return (
            f"made version {self.version}: {self.metrics['numFilesRemoved']} files became "
            f"{self.metrics['numFilesAdded']}; ran in {self.place.where_run}, {self.place.reason}"
        )


def operation_of(plan: LayoutPlan, added: Sequence[WrittenFile], mends: Mends) -> Operation:
    """The operation of a command, as the table's history shows it."""
    removed = plan.target.files
    sizes = sorted(file.size_bytes for file in added)
    metrics = {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(file.size for file in removed),
        "numAddedFiles": len(sizes),
        "numAddedBytes": sum(sizes),
        "numDeletionVectorsRemoved": sum(file.deletion_vector is not None for file in removed),
    }
    if sizes:
        positions = {"min": 0, "p25": len(sizes) // 4, "p50": len(sizes) // 2, "p75": 3 * len(sizes) // 4, "max": -1}
        metrics |= {f"{name}FileSize": sizes[place] for name, place in positions.items()}
    return Operation(plan.kind, plan.parameters, metrics | mends.metrics)


def result_metrics(plan: LayoutPlan, added: Sequence[WrittenFile], *, parallelism: int) -> dict[str, Any]:
    """The metrics that the command returns. ``parallelism``: how many tasks run at once."""
    removed = plan.target.files
    vectors = [file.deletion_vector for file in removed if file.deletion_vector is not None]
    configuration = plan.target.snapshot.configuration
    columns = len(configuration.schema.fields)
    return {
        "numFilesAdded": len(added),
        "numFilesRemoved": len(removed),
        "filesAdded": _sizes([file.size_bytes for file in added]),
        "filesRemoved": _sizes([file.size for file in removed]),
        "partitionsOptimized": len({frozenset((b.files[0].partition_values or {}).items()) for b in plan.bins}),
        "zOrderStats": _zorder_stats(plan) if plan.by and plan.provider is None else None,
        "clusteringStats": _clustering_stats(plan) if plan.provider is not None else None,
        "numBins": len(plan.bins),
        "numBatches": 1,
        "totalConsideredFiles": plan.considered,
        "totalFilesSkipped": plan.considered - len(removed),
        "preserveInsertionOrder": False,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": plan.started_ms,
        # the reference always has 0 here
        "endTimeMs": int(time.time() * 1000),
        "totalClusterParallelism": parallelism,
        "totalScheduledTasks": len(plan.bins),
        "autoCompactParallelismStats": None,
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": len(vectors),
            "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
        }
        if vectors
        else None,
        "numTableColumns": columns,
        "numTableColumnsWithStats": min(configuration.properties.num_indexed_columns, columns),
    }


def _sizes(sizes: Sequence[int]) -> dict[str, Any]:
    total = sum(sizes)
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": total / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": total,
    }


def _zorder_stats(plan: LayoutPlan) -> dict[str, Any]:
    files = _counted(plan.target.files, "num")
    return {
        "strategyName": "all",
        "inputCubeFiles": _counted((), "num"),
        "inputOtherFiles": files,
        "inputNumCubes": 0,
        "mergedFiles": files,
        "numOutputCubes": len(plan.bins),
        "mergedNumCubes": None,
    }


def _clustering_stats(plan: LayoutPlan) -> dict[str, Any]:
    clustered, others, ids = [], [], set()
    full = bool(plan.parameters.get("isFull"))
    for file in plan.input_files:
        cube = cube_of(file)
        if cube is not None and (full or cube.columns == plan.columns):
            clustered.append(file)
            ids.add(cube.id)
        else:
            others.append(file)
    return {
        "inputZCubeFiles": _counted(clustered, "numFiles"),
        "inputOtherFiles": _counted(others, "numFiles"),
        "inputNumZCubes": len(ids),
        "mergedFiles": _counted(plan.target.files, "numFiles"),
        "numOutputZCubes": len(plan.bins),
    }


def _counted(files: Iterable[AddFile], number: str) -> dict[str, int]:
    sizes = [file.size for file in files]
    return {number: len(sizes), "size": sum(sizes)}
