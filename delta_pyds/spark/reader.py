"""The batch reader: planned in a planner process, read in the tasks."""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from delta_pyds.errors import OptionError, UserError
from delta_pyds.protocol.handoff import ScanState
from delta_pyds.protocol.schema import TIMESTAMP
from delta_pyds.protocol.temporal import TimeZone

if TYPE_CHECKING:
    from delta_pyds.expr.nodes import Expr
    from delta_pyds.spark.driver import Opened
    from delta_pyds.spark.options import ReadOptions
    from delta_pyds.table.scan import Scan

_SESSION_TIME_ZONE = "spark.sql.session.timeZone"


class FilePartition(InputPartition):
    """Files for one task, as rows of ``columnar.scan_files`` in Arrow's stream format."""

    def __init__(self, files: bytes) -> None:
        super().__init__(files)
        self.files = files


@dataclass(frozen=True)
class Pinned:
    """What a load was made at. ``zone_used``: choosing the version depended on the time zone."""

    version: int | None
    table_id: str | None
    zone_used: bool


class DeltaReader(DataSourceReader):
    """Reads the rows that the options select.

    Invariant: Spark pickles the reader before it asks for partitions, so all
    that tasks need is planned in the constructor; the snapshot stays behind.
    """

    def __init__(self, options: ReadOptions, pinned: Pinned, user_schema: StructType | None) -> None:
        from delta_pyds.spark.driver import check_same_table, open_table

        # Spark reads pushed literals after this, in this process: the default of 28 digits would round decimals
        decimal.getcontext().prec = 60
        self._options = options
        opened: Opened = open_table(options, pinned.version)
        if pinned.table_id is not None:
            check_same_table(opened.snapshot, pinned.table_id)
        self._opened: Opened | None = opened
        self._user_schema = None if user_schema is None else _user_schema(user_schema, options)
        self._zone_used = pinned.zone_used or opened.zone_used
        self._plan(())

    def _plan(self, pushed: tuple[Expr, ...]) -> None:
        from delta_pyds.spark.driver import plan

        assert self._opened is not None
        scan = plan(self._opened, self._options, self._user_schema, pushed)
        self._scan: Scan | None = scan
        self.state: ScanState = scan.state
        self._timestamps = _partition_timestamps(scan)
        # with a filter, files may have been left out already by what their partition values mean in that zone
        zone_matters = self._zone_used or scan.uses_time_zone or bool(self._timestamps and scan.filters)
        zone = self._opened.time_zone if self._opened.zone_assumed else None
        self._assumed_zone = zone if zone_matters else None
        self._zone_of_values = zone

    def __getstate__(self) -> dict[str, Any]:
        kept = ("state", "_assumed_zone", "_zone_of_values", "_timestamps")
        return {name: self.__dict__[name] for name in kept}

    def partitions(self) -> Sequence[InputPartition]:
        from delta_pyds.spark.driver import partitions

        assert self._scan is not None
        return [FilePartition(_to_stream(batch)) for batch in partitions(self._scan, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from delta_pyds.columnar.scan_files import to_scan_files
        from delta_pyds.data.reader import read

        _check_zone(self._assumed_zone)
        if not isinstance(partition, FilePartition):
            return  # Spark's stand-in where there is nothing to read
        with pa.ipc.open_stream(partition.files) as stream:
            for batch in stream:
                for file in to_scan_files(batch, self.state.table_root):
                    if any(_lacks_zone(file.partition_values[i]) for i in self._timestamps):
                        _check_zone(self._zone_of_values)
                    yield from read(self.state, file)


class PushingDeltaReader(DeltaReader):
    """The same, pruning files by the filters that Spark pushes.

    Only for loads that are used once, or on a Spark that keeps pushed filters
    with the scan: see ``delta_pyds.spark.pushdown``.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        from delta_pyds.spark.filters import to_expressions

        assert self._opened is not None
        self._plan(to_expressions(filters, self._opened.snapshot.schema, self._opened.time_zone))
        # Spark applies every one of them to the rows as well: pruning need not be exact
        return iter(filters)


def _to_stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _user_schema(schema: StructType, options: ReadOptions) -> Any:
    """The table's part of a schema that the user gave; what rowPosition and rowIds add must stand at its end."""
    from delta_pyds.spark.datasource import extra_fields
    from delta_pyds.spark.types import from_spark

    extra = extra_fields(options)
    if not extra:
        return from_spark(schema)
    names = [(f.name, f.dataType) for f in extra]
    if [(f.name, f.dataType) for f in schema.fields[-len(extra) :]] != names:
        raise UserError(
            "a schema was given together with rowPosition or rowIds: it must end with the columns that they add: "
            f"{', '.join(n for n, _ in names)}.",
            code="DELTA_READ_SCHEMA_CONFLICT",
        )
    return from_spark(StructType(schema.fields[: -len(extra)]))


def _partition_timestamps(scan: Scan) -> tuple[int, ...]:
    """Which of the partition columns that are read hold timestamps."""
    types = {f.physical_name: f.data_type for f in scan.snapshot.schema}
    return tuple(i for i, name in enumerate(scan.state.partition_columns) if types[name] == TIMESTAMP)


def _lacks_zone(value: str | None) -> bool:
    """Whether a partition value is a time that only a time zone makes an instant: the usual writers end it in Z."""
    return bool(value) and not str(value).endswith("Z")


def _check_zone(assumed: str | None) -> None:
    """Refuse to go on where the session's time zone is not the one that planning had to assume."""
    context = TaskContext.get()
    session = context.getLocalProperty(_SESSION_TIME_ZONE) if assumed and context else None
    if session is None or assumed is None or TimeZone(session).same_as(TimeZone(assumed)):
        return
    raise OptionError(
        f"the session's time zone is {session}, but Spark does not tell a Python data source so when it plans, and "
        f"{assumed} (that of its JVM) was taken. A timestamp without a zone means another moment then. Add "
        f'.option("timeZone", "{session}"), or read with delta_pyds.read, which does.',
        option="timeZone",
    )
