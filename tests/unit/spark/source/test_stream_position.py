"""A stream on a Spark that asks for the newest offset alone. Calls come in the order of Spark 4.0 and 4.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from delta_pyds.spark.options.read import parse_read_options
from delta_pyds.spark.options.stream import parse_stream_options
from delta_pyds.spark.planning.pinned import Pinned
from delta_pyds.spark.source.stream_position import PositionedStreamReader
from delta_pyds.spark.source.stream_reader import StreamPartition
from tests.support.table_builder import TableBuilder

Offset = dict[str, Any]


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Version 0 without rows, and versions 1 to 4 with one file each."""
    built = TableBuilder(tmp_path / "t", {"id": "long"})
    built.create()
    for i in range(4):
        built.append([{"id": i}])
    return built


def reader(table: TableBuilder, **options: str) -> PositionedStreamReader:
    texts = {"path": str(table.path), "startingVersion": "0", "maxFilesPerTrigger": "1", **options}
    schema = StructType().add("id", LongType())
    pinned = Pinned(None, None, False)
    return PositionedStreamReader(
        parse_read_options(texts), parse_stream_options(texts), pinned, schema, schema_is_ours=True
    )


def planned(stream: PositionedStreamReader, start: Offset, end: Offset) -> int:
    """The number of files of a batch."""
    partitions = [p for p in stream.partitions(start, end) if isinstance(p, StreamPartition)]
    return sum(batch.num_rows for p in partitions for batch in pa.ipc.open_stream(p.files))


def batches(stream: PositionedStreamReader, start: Offset) -> list[int]:
    """Run as a trigger that runs on: the files of each batch."""
    found = []
    while (end := stream.latestOffset()) != start:
        found.append(planned(stream, start, end))
        stream.commit(end)
        start = end
    return found


def test_the_first_answer_may_be_the_only_one_and_takes_all(table: TableBuilder) -> None:
    stream = reader(table)
    end = stream.latestOffset()
    assert planned(stream, stream.initialOffset(), end) == 4
    assert stream.latestOffset() == end


def test_a_second_question_shows_that_limits_can_hold(table: TableBuilder) -> None:
    stream = reader(table)
    first = stream.latestOffset()
    assert planned(stream, stream.initialOffset(), first) == 4
    for i in range(3):
        table.append([{"id": i}])
    assert batches(stream, first) == [1, 1, 1]


def test_an_option_limits_the_first_batch_too(table: TableBuilder) -> None:
    stream = reader(table, limitFirstBatch="true")
    assert batches(stream, stream.initialOffset()) == [1, 1, 1, 1]


def test_an_answer_moves_nothing_until_spark_plans_it(table: TableBuilder) -> None:
    """With several sources a batch may begin later than the answer; Spark asks again."""
    stream = reader(table, limitFirstBatch="true")
    first = stream.latestOffset()
    assert stream.latestOffset() == first
    assert planned(stream, stream.initialOffset(), first) == 1
    second = stream.latestOffset()
    assert second != first and stream.latestOffset() == second


def test_a_restart_goes_on_at_the_newest_offset_of_the_checkpoint(table: TableBuilder) -> None:
    before = reader(table, limitFirstBatch="true")
    first = before.latestOffset()
    stream = reader(table, limitFirstBatch="true")
    assert planned(stream, first, first) == 0
    assert batches(stream, first) == [1, 1, 1]


def test_a_restart_plans_the_batch_again_that_was_not_done(table: TableBuilder) -> None:
    before = reader(table, limitFirstBatch="true")
    start = before.initialOffset()
    first = before.latestOffset()
    assert planned(before, start, first) == 1
    second = before.latestOffset()
    stream = reader(table, limitFirstBatch="true")
    assert planned(stream, second, second) == 0
    assert planned(stream, first, second) == 1
    assert batches(stream, second) == [1, 1]


def test_an_older_batch_that_is_planned_again_moves_nothing_back(table: TableBuilder) -> None:
    """A DataFrame of ``foreachBatch`` outlives its batch."""
    stream = reader(table, limitFirstBatch="true")
    start = stream.initialOffset()
    first = stream.latestOffset()
    assert planned(stream, start, first) == 1
    second = stream.latestOffset()
    assert planned(stream, first, second) == 1
    assert planned(stream, start, first) == 1
    assert batches(stream, second) == [1, 1]


def test_only_new_rows_begin_with_an_empty_batch(table: TableBuilder) -> None:
    stream = reader(table, startingVersion="latest")
    end = stream.latestOffset()
    assert planned(stream, stream.initialOffset(), end) == 0
    table.append([{"id": 9}])
    assert batches(stream, end) == [1]
