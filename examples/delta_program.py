"""A program for delta-spark, without the JAR: the line with ``install`` is all that was added."""

from __future__ import annotations

import os
import sys
import tempfile

import delta_pyds

print(delta_pyds.install(delta=True))

from delta.tables import DeltaTable  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("a program for delta-spark")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")

    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/visits"
        visits = spark.createDataFrame([(1, "Bern", 3), (2, "Chur", 1)], "id INT, city STRING, visits INT")
        visits.write.format("delta").partitionBy("city").save(path)

        news = spark.createDataFrame([(2, "Chur", 5), (3, "Bern", 1)], visits.schema)
        table = DeltaTable.forPath(spark, path)
        merge = table.alias("t").merge(news.alias("n"), "t.id = n.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        table.update("city = 'Bern'", {"visits": "visits + 1"})

        spark.read.format("delta").load(path).orderBy("id").show()
        before = spark.read.format("delta").option("versionAsOf", 0).load(path)
        print(f"{before.count()} rows before")
        table.history().select("version", "operation").show()
    spark.stop()


if __name__ == "__main__":
    main()
