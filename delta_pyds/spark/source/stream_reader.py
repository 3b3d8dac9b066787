"""The reader of a stream: it wraps ``table.stream.source``, in the process that Spark keeps for a query.

``stream_admission`` and ``stream_position`` say where a batch ends.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.spark.source.task_scan import TaskScan, to_stream

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from delta_pyds.spark.options.read import ReadOptions
    from delta_pyds.spark.options.stream import StreamReadOptions
    from delta_pyds.spark.planning.pinned import Pinned
    from delta_pyds.spark.source.stream_driver import OpenedStream


class StreamPartition(InputPartition):
    """Files for one task of a micro-batch, and the state to read them with."""

    def __init__(self, task: bytes, files: bytes) -> None:
        super().__init__(None)
        self.task = task
        self.files = files


class DeltaStreamReader(DataSourceStreamReader):
    """Reads a table as a stream. A subclass answers with the end of a batch.

    Invariant: the two offsets of a batch alone determine its rows. Spark
    makes a second instance that only reads partitions, so these carry all that
    is needed, and nothing is opened before the first question about offsets.
    """

    def __init__(
        self,
        options: ReadOptions,
        stream: StreamReadOptions,
        pinned: Pinned,
        schema: StructType,
        *,
        schema_is_ours: bool,
    ) -> None:
        self._options = options
        self._stream = stream
        self._pinned = pinned
        self._schema = schema
        self._schema_is_ours = schema_is_ours
        self._pickled: tuple[TaskScan, bytes] | None = None

    @cached_property
    def _opened(self) -> OpenedStream:
        from delta_pyds.spark.planning.extra_columns import user_columns
        from delta_pyds.spark.source.stream_driver import check_same_columns, open_stream

        if not self._schema_is_ours:
            return open_stream(self._options, self._stream, self._pinned, user_columns(self._schema, self._options))
        opened = open_stream(self._options, self._stream, self._pinned, None)
        # a tracked schema may have changed since the DataFrame was made
        check_same_columns(self._schema, opened.task.state)
        return opened

    def _task(self) -> bytes:
        task = self._opened.task_now()
        if self._pickled is None or self._pickled[0] is not task:
            self._pickled = task, pickle.dumps(task)
        return self._pickled[1]

    def __getstate__(self) -> dict[str, Any]:
        return {}  # the instance that reads partitions needs nothing

    @leaves_worker
    def initialOffset(self) -> dict[str, Any]:
        return self._opened.source.initial_offset().to_json()

    @leaves_worker
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        from delta_pyds.protocol.stream_offset import StreamOffset
        from delta_pyds.spark.planning.driver import partitions

        task, state = self._task(), self._opened.task_now().state
        files = self._opened.source.batches(StreamOffset.from_json(start), StreamOffset.from_json(end))
        return [StreamPartition(task, to_stream(batch)) for batch in partitions(state, files, self._options)]

    @leaves_worker
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, StreamPartition):
            task: TaskScan = pickle.loads(partition.task)
            task.check_zone()
            yield from task.read(partition.files)

    @leaves_worker
    def commit(self, end: dict[str, Any]) -> None:
        from delta_pyds.protocol.stream_offset import StreamOffset

        self._opened.source.committed(StreamOffset.from_json(end))
