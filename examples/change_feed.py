"""The change feed of a Delta table: what a merge did to each row, and a second table updated from it. No JAR."""

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
        .appName("deltapy change feed")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        prices, copy = f"{folder}/prices", f"{folder}/copy"
        rows = spark.createDataFrame(
            [(1, "tea", 4.0), (2, "milk", 2.0), (3, "rice", 3.5)], "id long, item string, price double"
        )
        delta_pyds.write(rows, prices, properties={"delta.enableChangeDataFeed": "true"})
        delta_pyds.write(rows, copy)
        table, target = DeltaTable.forPath(spark, prices), DeltaTable.forPath(spark, copy)

        print("\n1. A merge, and a delete\n")
        news = spark.createDataFrame([(1, "tea", 4.5), (4, "salt", 1.0)], rows.schema)
        (
            table.alias("p")
            .merge(news.alias("n"), "p.id = n.id")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
            .show()
        )
        table.delete("item = 'milk'")

        print("2. What changed since the first version, row by row: the old row and the new one of an update\n")
        changes = (
            spark.read.format("deltapy").option("readChangeFeed", "true").option("startingVersion", 1).load(prices)
        )
        changes.drop("_commit_timestamp").orderBy("_commit_version", "id", "_change_type").show()

        print("3. The same changes, applied to a second table\n")
        last = changes.filter("_change_type != 'update_preimage'")
        (
            target.alias("c")
            .merge(last.alias("f"), "c.id = f.id")
            .whenMatchedDelete("f._change_type = 'delete'")
            .whenMatchedUpdate(set={"item": "f.item", "price": "f.price"})
            .whenNotMatchedInsert("f._change_type != 'delete'", {"id": "f.id", "item": "f.item", "price": "f.price"})
            .execute()
        )
        target.toDF().orderBy("id").show()
        same = target.toDF().exceptAll(table.toDF()).count() == 0 == table.toDF().exceptAll(target.toDF()).count()
        print(f"The second table {'has' if same else 'does not have'} the rows of the first.")
    spark.stop()


if __name__ == "__main__":
    main()
