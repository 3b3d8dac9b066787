"""The stream reader for a Spark that tells start, limit and trigger of each batch."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.spark.source.stream_reader import DeltaStreamReader


class AdmittingStreamReader(DeltaStreamReader, SupportsTriggerAvailableNow):
    """Ends a batch within the limit that Spark gives."""

    def getDefaultReadLimit(self) -> ReadLimit:
        # Spark has no limit of files and bytes together; the source applies its own, and detects Trigger.Once by this
        return ReadMaxFiles(self._stream.max_files or 1)

    @leaves_worker
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        from delta_pyds.protocol.stream_offset import StreamOffset

        unlimited = isinstance(limit, ReadAllAvailable)
        return self._opened.source.latest_offset(StreamOffset.from_json(start), unlimited=unlimited).to_json()

    @leaves_worker
    def reportLatestOffset(self) -> dict[str, Any] | None:
        newest = self._opened.source.newest_offset()
        return None if newest is None else newest.to_json()

    @leaves_worker
    def prepareForTriggerAvailableNow(self) -> None:
        self._opened.source.fix_end()
