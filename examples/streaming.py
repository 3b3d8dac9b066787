"""Streams over Delta tables, with no JAR: a table to a table exactly once, its change feed, and foreachBatch."""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

import delta_pyds


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("deltapy streaming")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        events, copy, totals = f"{folder}/events", f"{folder}/copy", f"{folder}/totals"
        readings = spark.range(1000).select("id", (col("id") % 10).alias("sensor"), (col("id") * 0.5).alias("value"))
        delta_pyds.write(readings, events, partition_by="sensor", properties={"delta.enableChangeDataFeed": "true"})

        print("\n1. A table to a table: each micro-batch is one commit, and a restart neither loses nor repeats one\n")

        def follow() -> None:
            stream = spark.readStream.format("deltapy").option("maxFilesPerTrigger", 8).load(events)
            query = (
                stream.writeStream.format("deltapy")
                .option("checkpointLocation", f"{folder}/checkpoints/copy")
                .trigger(availableNow=True)
                .start(copy)
            )
            query.awaitTermination()
            print(f"{count(spark, copy)} rows in the copy, after {len(query.recentProgress)} micro-batches")

        follow()
        readings.limit(5).write.format("deltapy").mode("append").save(events)
        follow()

        print("\n2. What changed, row by row: the change feed, as a batch and as a stream\n")
        spark.createDataFrame([(1, 3, 99.0)], readings.schema).write.format("deltapy").mode("overwrite").option(
            "replaceWhere", "sensor = 3"
        ).save(events)
        changes = (
            spark.read.format("deltapy").option("readChangeFeed", "true").option("startingVersion", 2).load(events)
        )
        changes.groupBy("_commit_version", "_change_type").count().orderBy("_change_type").show()

        print("3. foreachBatch: any work on a micro-batch, written once by txnAppId and txnVersion\n")

        def add_up(batch: DataFrame, batch_id: int) -> None:
            sums = batch.filter("_change_type <> 'delete'").groupBy("sensor").sum("value")
            (
                sums.withColumnRenamed("sum(value)", "total")
                .write.format("deltapy")
                .mode("append")
                .option("txnAppId", "totals")  # the same at every start of this query, and different from other queries
                .option("txnVersion", batch_id)
                .save(totals)
            )

        stream = spark.readStream.format("deltapy").option("readChangeFeed", "true").load(events)
        query = (
            stream.writeStream.foreachBatch(add_up)
            .option("checkpointLocation", f"{folder}/checkpoints/totals")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        spark.read.format("deltapy").load(totals).orderBy("sensor").show()

        print("4. All of it checked against the protocol\n")
        for path in (events, copy, totals):
            print(delta_pyds.verify(path))
    spark.stop()


def count(spark: SparkSession, path: str) -> int:
    return spark.read.format("deltapy").load(path).count()


if __name__ == "__main__":
    main()
