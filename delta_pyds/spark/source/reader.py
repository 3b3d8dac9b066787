"""The batch reader: planned in a planner process, read in the tasks."""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.other_engines import engine_here
from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.spark.source.task_scan import task_scan, to_stream
from delta_pyds.spark.versions import has_filters, keeps_pushed_filters_with_scan

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from delta_pyds.expr.nodes import Expr
    from delta_pyds.spark.options.read import ReadOptions
    from delta_pyds.spark.planning.driver import Opened
    from delta_pyds.spark.planning.pinned import Pinned
    from delta_pyds.table.change_feed.change_scan import ChangeScan
    from delta_pyds.table.scan.scan import Scan


class FilePartition(InputPartition):
    """Files for one task, as rows of ``columnar.scan_files`` in Arrow's stream format."""

    def __init__(self, files: bytes) -> None:
        super().__init__(files)
        self.files = files


class DeltaReader(DataSourceReader):
    """Reads the rows that the options select.

    Invariant: Spark pickles the reader before it asks for partitions. So the constructor plans all that tasks need. The
    snapshot is not pickled.
    """

    def __init__(self, options: ReadOptions, pinned: Pinned, user_schema: StructType | None) -> None:
        from delta_pyds.spark.planning.driver import check_same_table, open_table
        from delta_pyds.spark.planning.extra_columns import user_columns

        # Spark reads pushed literals after this, in this process: the default of 28 digits would round decimals
        decimal.getcontext().prec = 60
        self._options = options
        opened: Opened = open_table(options, pinned.version)
        if pinned.table_id is not None:
            check_same_table(opened.snapshot, pinned.table_id)
        self._opened: Opened | None = opened
        self._user_schema = None if user_schema is None else user_columns(user_schema, options)
        self._zone_used = pinned.zone_used or opened.zone_used
        self._plan(())

    def _plan(self, pushed: tuple[Expr, ...]) -> None:
        from delta_pyds.spark.planning.driver import plan

        assert self._opened is not None
        scan = plan(self._opened, self._options, self._user_schema, pushed)
        self._scan: Scan | ChangeScan | None = scan
        self.task = task_scan(scan.selection, self._opened, zone_used=self._zone_used)

    def require_columns(self, schema: pa.Schema) -> None:
        """Raises: UnsupportedOperationError if another engine than Spark asks for other columns than these."""
        from delta_pyds.spark.planning.extra_columns import extra_fields
        from delta_pyds.spark.planning.types import describes

        if not describes(schema, self.task.state.output, extra_fields(self._options)):
            raise UnsupportedOperationError(
                f"{engine_here()} reads the table {self.task.state.table_root} with other columns than it has. Leave "
                "out the schema; name columns by the option columns, and cast afterwards.",
                table=self.task.state.table_root,
            )

    def __getstate__(self) -> dict[str, Any]:
        return {"task": self.task}

    @leaves_worker
    def partitions(self) -> Sequence[InputPartition]:
        from delta_pyds.spark.planning.driver import partitions

        assert self._scan is not None
        packed = partitions(self.task.state, self._scan.batches(), self._options)
        return [FilePartition(to_stream(batch)) for batch in packed]

    @leaves_worker
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self.task.check_zone()
        if isinstance(partition, FilePartition):  # else Spark's placeholder if there is nothing to read
            yield from self.task.read(partition.files)


class PushingDeltaReader(DeltaReader):
    """The same, pruning files by the filters that Spark pushes.

    Only for loads that are used once, or on a Spark that keeps pushed filters with the scan: see ``pushes_filters``.
    """

    @leaves_worker
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        from delta_pyds.spark.source.filters import to_expressions

        assert self._opened is not None
        self._plan(to_expressions(filters, self._opened.snapshot.schema, self._opened.time_zone))
        # Spark also applies each of them to the rows: pruning need not be exact
        return iter(filters)


def pushes_filters(options: ReadOptions) -> bool:
    """Whether pushed filters may prune: the option pushFilters asks for it, or this version of Spark is correct.

    Spark 4.1 to 4.3 keeps the outcome of a pushdown on the relation and not on the scan. If a DataFrame is used twice,
    with other filters or without any, the second use reads the files of the first one. It does not help to return the
    filters as residual: the partitions leak. A source that prunes by pushed filters returns wrong rows there.
    """
    if options.change_feed or not has_filters():
        return False
    return keeps_pushed_filters_with_scan() if options.push_filters is None else options.push_filters
