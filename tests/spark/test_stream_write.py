"""``df.writeStream.format("deltapy")``: real queries, restarted as after a crash at each place that matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, lit

import delta_pyds
from delta_pyds.table.snapshot import load_snapshot
from tests.support.java_options import QUICK_COMPILER
from tests.support.limits import ONLY_A_HANG_S
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)


class Stream:
    """A source of JSON files, one file for each batch, and a query from it into a table."""

    def __init__(self, spark: SparkSession, path: Path, schema: str = "id bigint") -> None:
        self.spark, self.schema = spark, schema
        self.source, self.table, self.checkpoint = path / "source", path / "table", path / "checkpoint"
        self.source.mkdir(parents=True)
        self.batches = 0

    def feed(self, *rows: dict[str, Any]) -> None:
        """One batch more. The source takes files in the order of their times."""
        file = self.source / f"{self.batches:04d}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (1_700_000_000 + self.batches,) * 2)
        self.batches += 1

    def feed_ids(self, *ids: int) -> None:
        self.feed(*({"id": i} for i in ids))

    def frame(self) -> DataFrame:
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.source))

    def run(
        self,
        frame: DataFrame | None = None,
        mode: str = "append",
        checkpoint: Path | None = None,
        **options: Any,
    ) -> None:
        """Write all that there is; a query that fails raises its error."""
        writer = (frame if frame is not None else self.frame()).writeStream.format("deltapy").outputMode(mode)
        writer = writer.option("checkpointLocation", str(checkpoint or self.checkpoint)).options(**options)
        query = writer.trigger(availableNow=True).start(str(self.table))
        try:
            assert query.awaitTermination(ONLY_A_HANG_S)
        finally:
            query.stop()

    def refusal(self, *args: Any, **options: Any) -> str:
        with pytest.raises(PySparkException) as error:
            self.run(*args, **options)
        return str(error.value)

    def forget_last(self) -> int:
        """As if Spark had died before it noted the last batch as done."""
        last = max(int(f.name) for f in (self.checkpoint / "commits").iterdir() if f.name.isdecimal())
        for name in (f"{last}", f".{last}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)
        return last

    def forget_commit(self) -> None:
        """As if the sink had died after the data files, before its commit."""
        version = self.version
        for suffix in ("json", "crc"):
            (self.table / "_delta_log" / f"{version:020d}.{suffix}").unlink()

    @property
    def version(self) -> int:
        return load_snapshot(str(self.table)).version

    def ids(self, column: str = "id") -> list[Any]:
        rows = self.spark.read.format("deltapy").load(str(self.table)).select(column).collect()
        return sorted(row[0] for row in rows)

    def info(self, version: int) -> dict[str, Any]:
        text = (self.table / "_delta_log" / f"{version:020d}.json").read_text()
        return dict(json.loads(text.splitlines()[0])["commitInfo"])

    def data_files(self) -> list[Path]:
        return [f for f in self.table.rglob("*.parquet") if "_delta_log" not in f.parts]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def test_each_batch_is_one_version_and_the_query_is_known_by_its_checkpoint(stream: Stream) -> None:
    for n in range(3):
        stream.feed_ids(2 * n, 2 * n + 1)
    stream.run(userMetadata="nightly")
    stream.feed_ids(6)
    stream.run()
    query = json.loads((stream.checkpoint / "metadata").read_text())["id"]
    assert stream.version == 3 and stream.ids() == list(range(7))
    assert [stream.info(v)["operationParameters"]["epochId"] for v in range(4)] == ["0", "1", "2", "3"]
    assert {stream.info(v)["operationParameters"]["queryId"] for v in range(4)} == {query}
    assert stream.info(1)["operation"] == "STREAMING UPDATE" and stream.info(1)["userMetadata"] == "nightly"
    assert load_snapshot(str(stream.table)).transactions[query].version == 3


def test_a_batch_that_spark_forgot_is_not_written_twice(stream: Stream) -> None:
    for n in range(3):
        stream.feed_ids(n)
    stream.run()
    files = stream.data_files()
    assert stream.forget_last() == 2
    stream.run()
    assert stream.ids() == [0, 1, 2] and stream.version == 2
    assert sorted(stream.data_files()) == sorted(files)
    stream.feed_ids(3)
    stream.run()
    assert stream.ids() == [0, 1, 2, 3] and stream.version == 3


def test_a_batch_that_was_not_committed_is_written_by_the_restart(stream: Stream) -> None:
    for n in range(3):
        stream.feed_ids(n)
    stream.run()
    stream.forget_last()
    stream.forget_commit()
    stream.feed_ids(3)
    stream.run()
    assert stream.ids() == [0, 1, 2, 3]
    assert [stream.info(v)["operationParameters"]["epochId"] for v in range(4)] == ["0", "1", "2", "3"]


def test_the_first_batch_may_be_repeated_too(stream: Stream) -> None:
    stream.feed_ids(0)
    stream.run()
    stream.forget_last()
    stream.run()
    assert stream.ids() == [0] and stream.version == 0


def test_complete_mode_holds_the_result_of_the_last_batch(stream: Stream) -> None:
    stream.feed_ids(1, 2, 3)
    counts = stream.frame().groupBy((col("id") % 2).alias("odd")).agg(count("*").alias("n"))
    stream.run(counts, "complete")
    stream.feed_ids(5)
    stream.run(stream.frame().groupBy((col("id") % 2).alias("odd")).agg(count("*").alias("n")), "complete")
    found = {(r.odd, r.n) for r in stream.spark.read.format("deltapy").load(str(stream.table)).collect()}
    assert found == {(0, 1), (1, 3)}
    assert stream.info(1)["operationParameters"]["outputMode"] == "Complete"
    assert int(stream.info(1)["operationMetrics"]["numRemovedFiles"]) > 0
    stream.forget_last()
    version = stream.version
    stream.run(stream.frame().groupBy((col("id") % 2).alias("odd")).agg(count("*").alias("n")), "complete")
    assert stream.version == version
    assert delta_pyds.verify(str(stream.table)).ok


def test_complete_mode_may_replace_the_schema(stream: Stream, tmp_path: Path) -> None:
    stream.feed_ids(1, 2)
    stream.run(stream.frame().groupBy("id").count(), "complete")
    other = stream.frame().groupBy("id").agg(count("*").cast("string").alias("other"))
    assert "overwriteSchema" in stream.refusal(checkpoint=tmp_path / "append", overwriteSchema="true")
    stream.run(other, "complete", checkpoint=tmp_path / "second", overwriteSchema="true")
    assert load_snapshot(str(stream.table)).schema.names == ("id", "other")
    assert stream.ids("other") == ["1", "1"]


def test_two_queries_write_into_one_table(stream: Stream, tmp_path: Path) -> None:
    stream.feed_ids(1)
    stream.feed_ids(2)
    stream.run()
    stream.run(stream.frame().selectExpr("id + 10 AS id"), checkpoint=tmp_path / "second")
    stream.feed_ids(3)
    stream.run()
    stream.run(stream.frame().selectExpr("id + 10 AS id"), checkpoint=tmp_path / "second")
    assert stream.ids() == [1, 2, 3, 11, 12, 13]
    assert len(load_snapshot(str(stream.table)).transactions) == 2


def test_two_queries_at_the_same_time(stream: Stream, tmp_path: Path) -> None:
    for n in range(6):
        stream.feed_ids(n)
    stream.spark.range(0).write.format("deltapy").mode("append").save(str(stream.table))
    queries = []
    for number in range(2):
        frame = stream.frame().select((col("id") + 100 * number).alias("id"))
        writer = frame.writeStream.format("deltapy").option("checkpointLocation", str(tmp_path / f"c{number}"))
        queries.append(writer.trigger(availableNow=True).start(str(stream.table)))
    for query in queries:
        assert query.awaitTermination(ONLY_A_HANG_S)
    assert stream.ids() == [*range(6), *range(100, 106)] and stream.version == 12
    assert delta_pyds.verify(str(stream.table)).ok


def test_a_new_column_needs_merge_schema(stream: Stream) -> None:
    stream.feed_ids(1)
    stream.run()
    stream.feed_ids(2)
    wider = stream.frame().withColumn("note", lit("x"))
    message = stream.refusal(wider)
    assert "DELTA_METADATA_MISMATCH" in message and "note" in message and "mergeSchema" in message
    assert stream.ids() == [1]
    stream.run(wider, mergeSchema="true")
    assert stream.ids() == [1, 2]
    rows = stream.spark.read.format("deltapy").load(str(stream.table)).collect()
    assert {(r.id, r.note) for r in rows} == {(1, None), (2, "x")}


def test_a_row_that_breaks_a_constraint_stops_the_query_and_leaves_nothing(stream: Stream) -> None:
    stream.feed_ids(1)
    stream.run(**{"delta.constraints.small": "id < 10"})
    before = stream.data_files()
    stream.feed_ids(2)
    stream.feed_ids(3, 10)
    message = stream.refusal()
    assert "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in message and "id < 10" in message
    assert stream.ids() == [1, 2] and stream.version == 1
    assert len(stream.data_files()) == len(before) + 1


def test_generated_and_default_columns_are_computed_for_each_batch(stream: Stream) -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {
                "name": "tens",
                "type": "long",
                "nullable": True,
                "metadata": {"delta.generationExpression": "CAST(id / 10 AS BIGINT)"},
            },
            {"name": "kind", "type": "string", "nullable": True, "metadata": {"CURRENT_DEFAULT": "'new'"}},
        ],
    }
    features = ["appendOnly", "invariants", "generatedColumns", "allowColumnDefaults"]
    table = TableBuilder(stream.table, schema, features=([], features), protocol=None)
    table.create()
    stream.feed_ids(7, 42)
    stream.feed_ids(99)
    stream.run()
    rows = stream.spark.read.format("deltapy").load(str(stream.table)).collect()
    assert {tuple(r) for r in rows} == {(7, 0, "new"), (42, 4, "new"), (99, 9, "new")}


def test_batches_without_rows_make_no_commits(stream: Stream) -> None:
    stream.feed_ids(1)
    for n in range(4):
        stream.feed_ids(100 + n)
    stream.feed_ids(2)
    stream.run(stream.frame().filter("id < 100"))
    assert stream.ids() == [1, 2] and stream.version == 1
    assert stream.info(1)["operationParameters"]["epochId"] == "5"


def test_an_empty_first_batch_creates_the_table(stream: Stream) -> None:
    stream.feed_ids(100)
    stream.run(stream.frame().filter("id < 100").withColumn("p", col("id") % 2), partitionBy="p")
    assert load_snapshot(str(stream.table)).configuration.partition_columns == ("p",)
    assert stream.ids() == []


def test_many_small_batches_leave_checkpoints_and_checksums(stream: Stream) -> None:
    for n in range(30):
        stream.feed_ids(n)
    stream.run(**{"delta.checkpointInterval": "7"})
    log = stream.table / "_delta_log"
    assert sorted(int(f.name[:20]) for f in log.glob("*.checkpoint*")) == [7, 14, 21, 28]
    assert len(list(log.glob("*.crc"))) == 30
    report = delta_pyds.verify(str(stream.table))
    assert report.ok and not report.findings, str(report)
    assert stream.ids() == list(range(30))


def test_a_query_that_runs_on_writes_what_comes(stream: Stream) -> None:
    writer = stream.frame().writeStream.format("deltapy").option("checkpointLocation", str(stream.checkpoint))
    query = writer.trigger(processingTime="200 milliseconds").start(str(stream.table))
    try:
        for n in range(3):
            stream.feed_ids(n)
            end = time.monotonic() + 60
            commit = stream.table / "_delta_log" / f"{n:020d}.json"
            while time.monotonic() < end and not commit.exists():
                time.sleep(0.1)
            assert stream.ids() == list(range(n + 1)) and query.isActive
    finally:
        query.stop()
    assert stream.version == 2


def test_foreach_batch_writes_each_batch_once(stream: Stream) -> None:
    def save(batch: DataFrame, number: int) -> None:
        writer = batch.write.format("deltapy").mode("append")
        writer.options(txnAppId="job-7", txnVersion=number).save(str(stream.table))

    def run() -> None:
        writer = stream.frame().writeStream.foreachBatch(save).trigger(availableNow=True)
        assert writer.option("checkpointLocation", str(stream.checkpoint)).start().awaitTermination(ONLY_A_HANG_S)

    stream.feed_ids(1)
    stream.feed_ids(2)
    run()
    stream.forget_last()
    stream.feed_ids(3)
    run()
    assert stream.ids() == [1, 2, 3] and stream.version == 2
    assert load_snapshot(str(stream.table)).transactions["job-7"].version == 2


def test_an_application_id_of_the_users_own(stream: Stream, tmp_path: Path) -> None:
    stream.feed_ids(1)
    stream.feed_ids(2)
    stream.run(txnAppId="mine")
    stream.forget_last()
    stream.run(txnAppId="mine")
    assert stream.ids() == [1, 2]
    assert load_snapshot(str(stream.table)).transactions["mine"].version == 1
    message = stream.refusal(txnAppId="mine", checkpoint=tmp_path / "new")
    assert "txnAppId" in message and "new checkpoint" in message
    assert stream.ids() == [1, 2]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"txnAppId": "a", "txnVersion": "1"}, "txnVersion"),
        ({"replaceWhere": "id = 1"}, "foreachBatch"),
        ({"partitionOverwriteMode": "dynamic"}, "partitionOverwriteMode"),
        ({"createMode": "ignore"}, "createMode"),
    ],
)
def test_an_option_that_a_stream_cannot_have_is_named(stream: Stream, options: dict[str, str], named: str) -> None:
    stream.feed_ids(1)
    message = stream.refusal(**options)
    assert named in message and "[DELTA_ILLEGAL_OPTION]" in message
    assert not stream.table.exists()


def test_the_complete_mode_is_refused_on_an_append_only_table(stream: Stream, tmp_path: Path) -> None:
    stream.feed_ids(1)
    stream.run(**{"delta.appendOnly": "true"})
    frame = stream.frame().groupBy("id").count().select("id")
    message = stream.refusal(frame, "complete", checkpoint=tmp_path / "other")
    assert "DELTA_CANNOT_MODIFY_APPEND_ONLY" in message
    assert len(stream.data_files()) == 1


def test_types_and_partitions_are_as_in_batch(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path, "id bigint, day date, ts timestamp, tags array<string>, m map<string, double>")
    first = {"id": 1, "day": "2024-02-29", "ts": "2024-02-29T12:00:00Z", "tags": ["a", None], "m": {"k": 0.5}}
    stream.feed(first, {"id": 2, "day": None, "tags": None})
    stream.run(partitionBy="day", compression="zstd")
    rows = spark.read.format("deltapy").load(str(stream.table))
    assert rows.dtypes == stream.frame().dtypes
    expected = spark.read.schema(stream.schema).json(str(stream.source))
    assert_df_equality(rows, expected, ignore_nullable=True, transforms=[lambda frame: frame.orderBy("id")])
    assert {f.parent.name for f in stream.data_files()} == {"day=2024-02-29", "day=__HIVE_DEFAULT_PARTITION__"}
    assert all(".zstd." in f.name for f in stream.data_files())


CONNECT = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession

source, table, checkpoint = sys.argv[1:]
spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.connect.grpc.binding.address", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
frame = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).json(source)
for restart in range(2):
    writer = frame.writeStream.format("deltapy").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start(table)
    query.awaitTermination()
    for name in ("1", ".1.crc"):
        (Path(checkpoint) / "commits" / name).unlink(missing_ok=True)
print("query", query.id)
spark.stop()
"""


def test_the_query_is_known_through_spark_connect_too(stream: Stream) -> None:
    stream.feed_ids(1)
    stream.feed_ids(2)
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, str(stream.source), str(stream.table), str(stream.checkpoint)],
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        cwd=stream.source.parent,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            # the one way to have server and client agree on a free port
            "SPARK_TESTING": "1",
            "PYSPARK_SUBMIT_ARGS": f"--driver-memory 1g --driver-java-options '{QUICK_COMPILER}' "
            "--conf spark.ui.enabled=false pyspark-shell",
        },
    )
    assert done.returncode == 0, done.stderr[-4000:]
    query = done.stdout.split()[-1]
    assert stream.ids() == [1, 2] and stream.version == 1
    assert load_snapshot(str(stream.table)).transactions[query].version == 1
