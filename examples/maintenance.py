"""Maintain a Delta table with Spark, with no JAR: create, alter, optimize, vacuum, restore and clone it."""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("deltapy maintenance")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/events"

        print("\n1. Create a table, clustered by city, with a generated column\n")
        table = (
            DeltaTable.create(spark)
            .location(path)
            .addColumn("id", "BIGINT", nullable=False)
            .addColumn("city", "STRING")
            .addColumn("at", "TIMESTAMP")
            .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
            .clusterBy("city")
            .property("delta.enableDeletionVectors", "true")
            .execute()
        )
        for part in range(5):
            rows = spark.range(part * 1000, (part + 1) * 1000).selectExpr(
                "id", "elt(1 + id % 4, 'Basel', 'Bern', 'Chur', 'Zug') AS city", "TIMESTAMP '2026-01-31 18:00:00' AS at"
            )
            delta_pyds.write(rows.coalesce(1), path, mode="append")
        table.delete("id % 10 = 0")

        print("2. Compact many small files into a few, clustered by city\n")
        table.optimize().executeCompaction().select("metrics.numFilesAdded", "metrics.numFilesRemoved").show()
        print(delta_pyds.explain(path, where="city = 'Zug'"))

        print("\n3. Alter it\n")
        table.addConstraint("known", "city IS NOT NULL")
        table.addColumn("note", "STRING", comment="free text", after="city")
        table.toDF().printSchema()

        print("4. A mistake, and the table as it was before\n")
        before = table.history(1).collect()[0].version
        table.delete()
        table.restoreToVersion(before).show()
        print(f"{table.toDF().count()} rows are back\n")

        print("5. A clone that shares the files\n")
        table.clone(f"{folder}/trial", isShallow=True)
        trial = DeltaTable.forPath(spark, f"{folder}/trial")
        trial.delete("city = 'Bern'")
        print(f"{trial.toDF().count()} rows in the clone, {table.toDF().count()} in the table\n")

        print("6. Files that no version of the last week needs: none yet\n")
        print(f"{table.vacuum(dry_run=True).count()} files would be deleted\n")

        print("7. What happened to the table, newest first\n")
        table.history().select("version", "operation").show(truncate=False)
        print(delta_pyds.verify(path))
    spark.stop()


if __name__ == "__main__":
    main()
