"""Change rows of a Delta table with Spark, with no JAR: merge, update and delete by ``DeltaTable``."""

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
        .appName("deltapy upsert")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/customers"
        customers = spark.createDataFrame(
            [(1, "Ada", "Bern", 3), (2, "Bo", "Basel", 1), (3, "Cy", "Bern", 7), (4, "Di", "Genf", 0)],
            "id long, name string, city string, visits int",
        )
        delta_pyds.write(customers, path, properties={"delta.enableDeletionVectors": "true"})
        table = DeltaTable.forPath(spark, path)

        print("\n1. Upsert: update known customers, delete those that left, insert new ones\n")
        news = spark.createDataFrame(
            [(1, "Ada", "Zug", False), (4, "Di", "Genf", True), (5, "Ed", "Chur", False)],
            "id long, name string, city string, left boolean",
        )
        merged = (
            table.alias("c")
            .merge(news.alias("n"), "c.id = n.id")
            .whenMatchedDelete("n.left")
            .whenMatchedUpdate(set={"city": "n.city", "visits": "c.visits + 1"})
            .whenNotMatchedInsert("NOT n.left", {"id": "n.id", "name": "n.name", "city": "n.city", "visits": "1"})
            .execute()
        )
        merged.show()
        table.toDF().orderBy("id").show()

        print("2. Update and delete, by conditions in SQL or by Columns\n")
        table.update("city = 'Bern'", {"visits": "visits + 10"})
        table.delete(table.toDF().visits < 2).show()
        table.toDF().orderBy("id").show()

        print("3. Where the merge ran, and why\n")
        print(delta_pyds.explain(merged))

        print("\n4. What happened to the table, newest first\n")
        table.history().select("version", "operation", "operationMetrics.numOutputRows").show()
        detail = table.detail().select("numFiles", "sizeInBytes", "tableFeatures").collect()[0]
        print(f"{detail.numFiles} files; features: {', '.join(detail.tableFeatures)}\n")

        print("5. Check the table against the protocol\n")
        print(delta_pyds.verify(path))
    spark.stop()


if __name__ == "__main__":
    main()
