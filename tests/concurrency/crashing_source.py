"""The data source, but for the moment at which it kills all of Spark: the real code runs before and after.

What to kill at is in the file that the environment variable ``PLAN`` names:
``{"point": ..., "table": ..., "n": ...}``, the n-th time that the point is
reached for the table of that name, counted over all processes of one life. The
hit is written down beside it first.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pickle
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, InputPartition, WriterCommitMessage
from pyspark.sql.types import StructType

from delta_pyds.spark.source.datasource import DeltaDataSource, stream_reader_class
from delta_pyds.spark.source.stream_reader import StreamPartition
from delta_pyds.spark.source.stream_writer import DeltaStreamWriter, StreamMessage
from tests.concurrency.process_session import kill_session

FORMAT = "crashing_deltapy"
PLAN = "DELTA_PYDS_KILL_PLAN"
_LOG_ENTRY = re.compile(r"_delta_log/\d{20}\.json$")
_CHECKPOINT = re.compile(r"_delta_log/\d{20}\.checkpoint")


def reached(point: str, path: str, **what: Any) -> None:
    """Kill the session that this process belongs to, if it is the planned moment."""
    file = Path(os.environ[PLAN])
    plan = json.loads(file.read_text()) if file.exists() else {}
    if (plan.get("point"), plan.get("table")) != (point, os.path.basename(path)):
        return
    with open(file.with_name("reached"), "ab", buffering=0) as count:
        # two tasks may be here at once
        fcntl.flock(count, fcntl.LOCK_EX)
        count.write(b".")
        if os.fstat(count.fileno()).st_size != plan["n"]:
            return
    with open(file.with_name("hit.json"), "x") as hit:
        json.dump({**plan, **what}, hit)
        hit.flush()
        os.fsync(hit.fileno())
    kill_session(os.getsid(0))


@contextlib.contextmanager
def crashing_commit(path: str, batch: int) -> Iterator[None]:
    """The points of what commits a batch in this process."""
    reached("before commit", path, batch=batch)
    real = os.link

    def link(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        entry = _LOG_ENTRY.search(os.fspath(target))
        if entry:
            reached("before put", path, batch=batch)
        elif _CHECKPOINT.search(os.fspath(target)):
            reached("before checkpoint", path, batch=batch)
        real(source, target, *args, **kwargs)
        if entry:
            reached("after put", path, batch=batch)

    os.link = link
    try:
        yield
    finally:
        os.link = real
    reached("after commit", path, batch=batch)


class CrashingDataSource(DeltaDataSource):
    """Makes the real readers and writers, which then are of the classes below."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        reader = super().streamReader(schema)
        reader.__class__ = CrashingStreamReader
        return reader

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        writer = super().streamWriter(schema, overwrite)
        writer.__class__ = CrashingStreamWriter
        return writer


class CrashingStreamReader(stream_reader_class()):
    # without admission control Spark passes nothing
    def latestOffset(self, *asked: Any) -> dict[str, Any]:  # noqa: N802
        start = asked[0] if asked else None
        reached("before latestOffset", self._options.path, start=start)
        end: dict[str, Any] = super().latestOffset(*asked)
        reached("after latestOffset", self._options.path, start=start, end=end)
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        reached("before partitions", self._options.path, start=start, end=end)
        found = super().partitions(start, end)
        reached("after partitions", self._options.path, start=start, end=end)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from super().read(partition)
        assert isinstance(partition, StreamPartition)
        reached("after read", pickle.loads(partition.task).state.table_root)


class CrashingStreamWriter(DeltaStreamWriter):
    """Its points count only where a batch has rows: another one commits nothing."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        message = super().write(iterator)
        assert isinstance(message, StreamMessage)
        if message.output.files:
            files = [file.path for file in message.output.files]
            reached("after write", self._options["path"], batch=message.origin.batch_id, files=files)
        return message

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        path = self._options["path"]
        if not any(message.output.files for message in messages if isinstance(message, StreamMessage)):
            super().commit(messages, batchId)
            return
        with crashing_commit(path, batchId):
            super().commit(messages, batchId)
