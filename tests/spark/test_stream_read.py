"""``spark.readStream.format("deltapy")``: which rows arrive, once, and where a stream stops with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_pyds.spark.versions import has_admission_control
from tests.support.limits import ONLY_A_HANG_S
from tests.support.streams import Sink, stream
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    return Sink(tmp_path / "sink")


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Three versions, with a row each in one file each: ids 0, 1, 2."""
    table = TableBuilder(tmp_path / "t", {"id": "long", "v": "string"})
    table.create()
    for i in range(3):
        table.append([{"id": i, "v": f"v{i}"}])
    return table


def test_the_snapshot_comes_first_and_then_every_commit_once(
    spark: SparkSession, table: TableBuilder, sink: Sink
) -> None:
    sink.run(stream(spark, table.path))
    assert sink.rows(spark) == [(0, "v0"), (1, "v1"), (2, "v2")]
    assert sink.last_offset() == {
        "sourceVersion": 1,
        "reservoirId": table.table_id,
        "reservoirVersion": 4,
        "index": -1,
        "isStartingVersion": False,
    }
    table.append([{"id": 3, "v": "v3"}])
    table.append([{"id": 4, "v": "v4"}])
    sink.run(stream(spark, table.path))
    assert sink.ids(spark) == [0, 1, 2, 3, 4]
    before = sink.last_offset()
    assert sink.run(stream(spark, table.path)) == [] or sink.ids(spark) == [0, 1, 2, 3, 4]
    assert sink.last_offset() == before


def test_limits_hold_across_the_initial_snapshot_and_the_commits_after_it(
    spark: SparkSession, tmp_path: Path, sink: Sink
) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    for i in range(5):
        table.append([{"id": i}])
    df = stream(spark, table.path, maxFilesPerTrigger=2)
    progress = sink.run(df)
    # without admission control this trigger runs one batch
    assert [p["numInputRows"] for p in progress if p["numInputRows"]] == ([2, 2, 1] if has_admission_control() else [5])
    for i in range(5, 8):
        table.append([{"id": i}])
    progress = sink.run(stream(spark, table.path, maxBytesPerTrigger="1b"))
    assert [p["numInputRows"] for p in progress if p["numInputRows"]] == ([1, 1, 1] if has_admission_control() else [3])
    assert sink.ids(spark) == list(range(8))


def test_limits_hold_for_a_trigger_that_runs_on(spark: SparkSession, table: TableBuilder, sink: Sink) -> None:
    assert sink.run_on(stream(spark, table.path, maxFilesPerTrigger=2, limitFirstBatch=True)) == [2, 1]
    for i in range(3, 6):
        table.append([{"id": i, "v": f"v{i}"}])
    assert sink.run_on(stream(spark, table.path, maxBytesPerTrigger="1b", limitFirstBatch=True)) == [1, 1, 1]
    for i in range(6, 8):
        table.append([{"id": i, "v": f"v{i}"}])
    # without admission control the first batch of a run may be the only one
    expected = [1, 1] if has_admission_control() else [2]
    assert sink.run_on(stream(spark, table.path, maxFilesPerTrigger=1)) == expected
    assert sink.ids(spark) == list(range(8))


def test_trigger_once_takes_everything_in_one_batch(spark: SparkSession, table: TableBuilder, sink: Sink) -> None:
    progress = sink.run(stream(spark, table.path, maxFilesPerTrigger=1), once=True)
    assert [p["numInputRows"] for p in progress] == [3]


def test_a_continuing_query_sees_commits_as_they_come(spark: SparkSession, table: TableBuilder, sink: Sink) -> None:
    query = (
        stream(spark, table.path)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(sink.checkpoint))
        .trigger(processingTime="0 seconds")
        .start(str(sink.data))
    )
    try:
        query.processAllAvailable()
        for i in range(3, 6):
            table.append([{"id": i, "v": "later"}])
            query.processAllAvailable()
            assert sink.ids(spark) == list(range(i + 1))
        latest = query.lastProgress["sources"][0]["latestOffset"]
        assert "'reservoirVersion': 7" in str(latest) or '"reservoirVersion":7' in str(latest).replace(" ", "")
    finally:
        query.stop()


def test_starting_version_leaves_out_what_was_there_before(
    spark: SparkSession, table: TableBuilder, tmp_path: Path
) -> None:
    numbered = Sink(tmp_path / "a")
    numbered.run(stream(spark, table.path, startingVersion=2))
    assert numbered.ids(spark) == [1, 2]
    latest = Sink(tmp_path / "b")
    latest.run(stream(spark, table.path, startingVersion="latest"))
    assert latest.ids(spark) == []
    table.append([{"id": 9, "v": "new"}])
    latest.run(stream(spark, table.path, startingVersion="latest"))
    assert latest.ids(spark) == [9]
    # with a checkpoint the option does not count any more
    numbered.run(stream(spark, table.path, startingVersion=0))
    assert numbered.ids(spark) == [1, 2, 9]


def test_starting_timestamp_begins_with_the_first_commit_at_or_after_it(
    spark: SparkSession, table: TableBuilder, tmp_path: Path
) -> None:
    for version, second in enumerate((0, 10, 20, 30)):
        table.set_mtime(version, 1_700_000_000_000 + second * 1000)
    exact = Sink(tmp_path / "a")
    exact.run(stream(spark, table.path, startingTimestamp="2023-11-14T22:13:40Z"))
    assert exact.ids(spark) == [1, 2]
    between = Sink(tmp_path / "b")
    between.run(stream(spark, table.path, startingTimestamp="2023-11-14 22:13:41"))
    assert between.ids(spark) == [2]
    refused = Sink(tmp_path / "c").refusal(stream(spark, table.path, startingTimestamp="2024-01-01"))
    assert "DELTA_TIMESTAMP_GREATER_THAN_COMMIT" in refused


def test_a_batch_that_spark_has_not_noted_is_the_same_again(
    spark: SparkSession, table: TableBuilder, tmp_path: Path
) -> None:
    """Batch 0 has no stored start: it must follow from its end, at whatever version the table is by then."""
    seen: list[list[int]] = []

    def keep(df: DataFrame, _: int) -> None:
        seen.append(sorted(r.id for r in df.collect()))

    sink = Sink(tmp_path / "s")
    for round_ in range(3):
        query = (
            stream(spark, table.path, maxFilesPerTrigger=100)
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(sink.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(ONLY_A_HANG_S)
        if round_ == 0:
            assert seen == [[0, 1, 2]]
            sink.forget_last_commit()
            table.append([{"id": 3, "v": "x"}])
    assert seen == [[0, 1, 2], [0, 1, 2], [3]]


def test_deletes_and_updates_stop_the_stream_unless_an_option_says_otherwise(
    spark: SparkSession, table: TableBuilder, tmp_path: Path
) -> None:
    sink = Sink(tmp_path / "s")
    sink.run(stream(spark, table.path))
    first = table.active()[0]
    table.commit([table.remove(first)], operation="DELETE")
    refused = sink.refusal(stream(spark, table.path))
    assert "DELTA_SOURCE_IGNORE_DELETE" in refused and "DELETE" in refused and "Version 4" in refused
    for option in ("ignoreDeletes", "skipChangeCommits", "ignoreChanges"):
        assert option in refused
    second = table.active()[0]
    rewritten = table.write_file([{"id": 100, "v": "updated"}])
    table.commit([table.remove(second), rewritten], operation="UPDATE")
    table.append([{"id": 5, "v": "v5"}])
    refused = sink.refusal(stream(spark, table.path, ignoreDeletes="true"))
    assert "DELTA_SOURCE_TABLE_IGNORE_CHANGES" in refused and "UPDATE" in refused and "Version 5" in refused
    sink.run(stream(spark, table.path, skipChangeCommits="true"))
    assert sink.ids(spark) == [0, 1, 2, 5]
    again = Sink(tmp_path / "again")
    again.run(stream(spark, table.path, startingVersion=1, ignoreChanges="true"))
    assert again.ids(spark) == [0, 1, 2, 5, 100]


def test_columns_where_schema_and_excluded_files(spark: SparkSession, table: TableBuilder, tmp_path: Path) -> None:
    chosen = Sink(tmp_path / "a")
    chosen.run(stream(spark, table.path, columns="v", where="id >= 1"))
    assert chosen.rows(spark) == [("v1",), ("v2",)]
    typed = Sink(tmp_path / "b")
    typed.run(spark.readStream.format("deltapy").schema("v string").load(str(table.path)))
    assert typed.rows(spark) == [("v0",), ("v1",), ("v2",)]
    path = table.active()[0]["add"]["path"]
    fewer = Sink(tmp_path / "c")
    fewer.run(stream(spark, table.path, excludeRegex=path.replace(".", r"\.")))
    assert len(fewer.ids(spark)) == 2


def test_vectors_mapped_columns_and_partitions_are_as_in_batch(spark: SparkSession, tmp_path: Path, sink: Sink) -> None:
    table = TableBuilder(
        tmp_path / "t",
        {"id": "long", "p": "string"},
        ["p"],
        {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    )
    table.create()
    adds = table.append([{"id": i, "p": "a b%"} for i in range(10)] + [{"id": 50, "p": None}])
    table.delete(adds[0], [0, 3])
    expected = sorted(((r["id"], r["p"]) for r in table.expected_rows()), key=repr)
    sink.run(stream(spark, table.path))
    assert sink.rows(spark) == expected


def test_an_added_column_stops_the_stream_and_a_restart_has_it(spark: SparkSession, tmp_path: Path, sink: Sink) -> None:
    path = tmp_path / "t"
    write_rows(path, {"id": "long"}, [{"id": 1}])
    df = stream(spark, path)
    sink.run(df)
    write_rows(path, {"id": "long", "more": "string"}, [{"id": 2, "more": "x"}], merge_schema=True)
    refused = sink.refusal(df)
    assert "DELTA_SCHEMA_CHANGED" in refused and "more" in refused and "restart" in refused.lower()
    sink.run(stream(spark, path))
    assert sink.rows(spark, "id", "more") == [(1, None), (2, "x")]


def test_a_rename_needs_a_schema_log_and_then_the_users_word(spark: SparkSession, tmp_path: Path, sink: Sink) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "a": "string"}, (), {"delta.columnMapping.mode": "name"})
    table.create()
    table.append([{"id": 1, "a": "one"}])
    location = str(sink.checkpoint / "_schemas")
    tracked = {"schemaTrackingLocation": location}
    untracked = Sink(tmp_path / "untracked")
    running = stream(spark, table.path)
    untracked.run(running)
    sink.run(stream(spark, table.path, **tracked))
    physical = table.schema["fields"][1]["metadata"]["delta.columnMapping.physicalName"]
    table.commit(
        [table.metadata({"id": "long", "b": "string"}, physical_names={"b": physical})], operation="RENAME COLUMN"
    )
    table.append([{"id": 2, "b": "two"}])
    refused = untracked.refusal(running)
    assert "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE" in refused and "schemaTrackingLocation" in refused
    # all before the rename was read, so a recreated stream can go on with what comes after it
    untracked.run(stream(spark, table.path))
    assert untracked.rows(spark, "id", "a", "b") == [(1, "one", None), (2, None, "two")]
    # one that has older rows to read cannot
    late = Sink(tmp_path / "late").refusal(stream(spark, table.path, startingVersion=0))
    assert "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE" in late and "schemaTrackingLocation" in late
    if not has_admission_control():
        sink.run(stream(spark, table.path, **tracked))  # its one batch ends at the change
    assert "DELTA_STREAMING_METADATA_EVOLUTION" in sink.refusal(stream(spark, table.path, **tracked))
    refused = sink.refusal(stream(spark, table.path, **tracked))
    assert "CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION" in refused and "allowSourceColumnRename" in refused
    df = stream(spark, table.path, **tracked, allowSourceColumnRename="always")
    assert df.columns == ["id", "b"]
    sink.run(df)
    assert sink.rows(spark, "id", "a", "b") == [(1, "one", None), (2, None, "two")]


def test_another_table_at_the_path_is_refused(spark: SparkSession, table: TableBuilder, sink: Sink) -> None:
    import shutil

    sink.run(stream(spark, table.path))
    shutil.rmtree(table.path)
    other = TableBuilder(table.path, {"id": "long", "v": "string"})
    other.create()
    for i in range(8):
        other.append([{"id": i, "v": "other"}])
    refused = sink.refusal(stream(spark, table.path))
    assert "DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE" in refused
    assert sink.ids(spark) == [0, 1, 2]


def test_versions_that_were_cleaned_away_are_data_loss(spark: SparkSession, table: TableBuilder, sink: Sink) -> None:
    sink.run(stream(spark, table.path))
    for i in range(3, 6):
        table.append([{"id": i, "v": "x"}])
    table.checkpoint(5)
    table.cleanup_log(5)
    refused = sink.refusal(stream(spark, table.path))
    assert "DELTA_MISSING_FILES_UNEXPECTED_VERSION" in refused and "failOnDataLoss" in refused
    sink.run(stream(spark, table.path, failOnDataLoss="false"))
    # version 4 is lost, 5 and 6 are there
    assert sink.ids(spark) == [0, 1, 2, 4, 5]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"versionAsOf": "1"}, "versionAsOf"),
        ({"startingVersion": "77"}, "DELTA_VERSION_NOT_FOUND"),
        ({"readChangeFeed": "true", "computeChanges": "never"}, "DELTA_MISSING_CHANGE_DATA"),
    ],
)
def test_options_that_cannot_be(
    spark: SparkSession, table: TableBuilder, sink: Sink, options: dict[str, str], words: str
) -> None:
    with pytest.raises(PySparkException) as error:
        sink.run(stream(spark, table.path, **options))
    assert words in str(error.value)


def test_there_is_no_table(spark: SparkSession, tmp_path: Path, sink: Sink) -> None:
    with pytest.raises(PySparkException, match="nowhere"):
        sink.run(stream(spark, tmp_path / "nowhere"))
