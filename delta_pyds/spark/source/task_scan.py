"""Reading of a partition of files in a task, for batches and streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from delta_pyds.errors import OptionError
from delta_pyds.protocol.schema import TIMESTAMP
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.spark.other_engines import engine_here
from delta_pyds.spark.settings import TIME_ZONE
from delta_pyds.tasks.scan_state import COMMIT_TIMESTAMP_COLUMN, ScanFile, ScanState

if TYPE_CHECKING:
    from delta_pyds.spark.planning.driver import Opened
    from delta_pyds.table.scan.row_selection import RowSelection


@dataclass(frozen=True)
class TaskScan:
    """The state that tasks need besides their files; small and picklable.

    ``assumed_zone``: the time zone that planning assumed; None if the plan does not
    depend on it. ``zone_of_values``: the same for partition timestamps without a
    zone, which only a task sees. ``timestamps``: their positions among the partition values.
    """

    state: ScanState
    assumed_zone: str | None
    zone_of_values: str | None
    timestamps: tuple[int, ...]

    def check_zone(self) -> None:
        """Raises: OptionError if the session's time zone is not the one that planning had to assume."""
        _check_zone(self.assumed_zone)

    def read(self, files: bytes) -> Iterator[pa.RecordBatch]:
        """The rows of files that ``to_stream`` wrote."""
        found = self._files(files)
        if self.state.compared_columns is None:
            from delta_pyds.data.read.concurrent import read_in_task

            batches = read_in_task(self.state, found)
        else:
            from delta_pyds.data.read.computed_changes import read_changes

            batches = read_changes(self.state, found)
        # ended with the task, also if Spark wants no more rows
        with closing(batches):
            yield from batches

    def _files(self, files: bytes) -> Iterator[ScanFile]:
        from delta_pyds.columnar.scan_files import to_scan_files

        with pa.ipc.open_stream(files) as stream:
            for batch in stream:
                for file in to_scan_files(batch, self.state.table_root):
                    if any(_lacks_zone(file.partition_values[i]) for i in self.timestamps):
                        _check_zone(self.zone_of_values)
                    yield file


def task_scan(selection: RowSelection, opened: Opened, *, zone_used: bool) -> TaskScan:
    """``zone_used``: whether the version or the range depends on the time zone."""
    types = {f.physical_name: f.data_type for f in selection.relation.schema}
    columns = selection.state.partition_columns
    # we make the commit times of a change feed, with their zone
    ours = (COMMIT_TIMESTAMP_COLUMN,) if selection.relation.change_feed else ()
    timestamps = tuple(i for i, name in enumerate(columns) if types[name] == TIMESTAMP and name not in ours)
    # with a filter, files may have been left out already by their partition values in that zone
    zone_matters = zone_used or selection.uses_time_zone or bool(timestamps and selection.filters)
    zone = opened.time_zone if opened.zone_assumed else None
    return TaskScan(selection.state, zone if zone_matters else None, zone, timestamps)


def to_stream(batch: pa.RecordBatch) -> bytes:
    """A batch in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _lacks_zone(value: str | None) -> bool:
    """Whether a partition value is a time without a zone: the usual writers end it in Z."""
    return bool(value) and not str(value).endswith("Z")


def _check_zone(assumed: str | None) -> None:
    """Raise an error if the session's time zone is not the one that planning had to assume."""
    if assumed is None:
        return
    context = TaskContext.get()
    if context is None:
        raise OptionError(
            f"the session's time zone is unknown, because {engine_here()} runs this task. {assumed} was assumed. A "
            "timestamp without a zone means another moment in another zone. Name the right zone: "
            f'.option("timeZone", "{assumed}"). Or read with delta_pyds.read, which names it.',
            option="timeZone",
        )
    session = context.getLocalProperty(TIME_ZONE)
    if session is None or TimeZone(session).same_as(TimeZone(assumed)):
        return
    raise OptionError(
        f"the session's time zone is {session}, but {assumed}, the zone of Spark's JVM, was assumed: a Python data "
        "source cannot see the session's zone when it plans. A timestamp without a zone means another moment there. "
        "Add "
        f'.option("timeZone", "{session}"). Or read with delta_pyds.read, which names the zone.',
        option="timeZone",
    )
