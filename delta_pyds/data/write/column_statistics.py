"""Statistics of columns of an existing file, as its writer would gather them.

Protocol: "Per-file Statistics".
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.data.write.output_file import CountedOutput, bounded_columns
from delta_pyds.data.write.parquet_schema import FileSchema
from delta_pyds.data.write.statistics import StatisticsCollector, StatisticsPlan
from delta_pyds.tasks.write_state import WriteState


def column_statistics(state: WriteState, batches: Iterable[pa.RecordBatch]) -> str:
    """The statistics, as JSON, that a file with these rows would have. ``batches``: have the state's schema.

    The rows are encoded, because most bounds come from a footer; the encoded bytes are dropped.
    """
    schema = FileSchema(state)
    collector = StatisticsCollector(StatisticsPlan(state, schema))
    footers: list[Any] = []
    writer = pq.ParquetWriter(
        _DiscardingOutput(),
        schema.arrow,
        compression="none",
        use_dictionary=False,
        write_statistics=bounded_columns([f.column for f in schema.fields]),
        store_decimal_as_integer=True,
        use_compliant_nested_type=True,
        store_schema=False,
        metadata_collector=footers,
    )
    with writer:
        for batch in batches:
            rows = pa.Table.from_arrays(schema.columns(batch), schema=schema.arrow)
            collector.observe(rows)
            writer.write_table(rows, row_group_size=max(1, rows.num_rows))
    return collector.json(footers[0])


class _DiscardingOutput(CountedOutput):
    """A file that drops what is written."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self._discarded = True
