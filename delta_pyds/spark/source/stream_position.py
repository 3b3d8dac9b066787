"""The stream reader for a Spark without admission control: 4.0 and 4.1.

Spark asks such a reader only for the newest offset. It tells neither the start of the batch, nor a limit, nor the
trigger. Both ``Trigger.Once`` and ``Trigger.AvailableNow`` ask once and run one batch. A restarted query first plans an
empty batch at the newest offset of its checkpoint. Then it plans the unfinished batch again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.spark.source.stream_reader import DeltaStreamReader

if TYPE_CHECKING:
    from delta_pyds.protocol.stream_offset import StreamOffset


class PositionedStreamReader(DeltaStreamReader):
    """Keeps the position of the query itself.

    Invariants: the position is the newest end of a batch that Spark has planned, so an answer moves nothing, and Spark
    may ask again. The first answer of a run has no limit, because it may be the only one. A second question shows that
    the trigger runs more batches: from then on the limits hold.
    """

    _position: StreamOffset | None = None
    _asked = False

    @leaves_worker
    def latestOffset(self, start: object = None, limit: object = None) -> dict[str, Any]:
        source = self._opened.source
        unlimited = not self._asked and not self._stream.limit_first_batch
        self._asked = True
        position = source.initial_offset() if self._position is None else self._position
        return source.latest_offset(position, unlimited=unlimited).to_json()

    @leaves_worker
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        from delta_pyds.protocol.stream_offset import StreamOffset

        found = super().partitions(start, end)
        reached = StreamOffset.from_json(end)
        # a DataFrame of foreachBatch may be planned again after its batch
        if self._position is None or self._position.position < reached.position:
            self._position = reached
        return found
