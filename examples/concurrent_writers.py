"""Four processes upsert into one table while it is optimized. None of them fails or runs again as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable

WRITERS = 4
MERGES = 10
CUSTOMERS = 1_000


def session(name: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[1]")
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def upsert(path: str, writer: int) -> None:
    """Count a visit of some customers in each merge, and add a new customer. All writers change the same files."""
    spark = session(f"writer {writer}")
    table = DeltaTable.forPath(spark, path)
    for n in range(MERGES):
        known = [customer for customer in range(CUSTOMERS) if customer % WRITERS == writer and customer % MERGES == n]
        visits = spark.createDataFrame([(key,) for key in [*known, CUSTOMERS + WRITERS * n + writer]], "id long")
        (
            table.alias("c")
            .merge(visits.alias("v"), "c.id = v.id")
            .whenMatchedUpdate(set={"visits": "c.visits + 1"})
            .whenNotMatchedInsert(values={"id": "v.id", "visits": "1"})
            .execute()
        )
    spark.stop()


def main() -> None:
    spark = session("optimizer")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/customers"
        customers = spark.range(CUSTOMERS).selectExpr("id", "0L AS visits").repartition(8)
        properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
        delta_pyds.write(customers, path, properties=properties)
        table = DeltaTable.forPath(spark, path)

        print(f"\n1. {WRITERS} processes merge {MERGES} times each, while the table is optimized\n")
        command = [sys.executable, __file__, path]
        writers = [subprocess.Popen([*command, str(number)]) for number in range(WRITERS)]
        optimized = 0
        while any(writer.poll() is None for writer in writers):
            optimized += bool(table.optimize().executeCompaction().first()["metrics"]["numFilesRemoved"])
        if any(writer.returncode for writer in writers):
            raise SystemExit("A writer failed.")

        print("2. What the table's history says\n")
        history = table.history().selectExpr("operation", "CAST(operationMetrics.numMends AS INT) AS mends")
        history.groupBy("operation").agg({"*": "count", "mends": "sum"}).show()

        print("3. Each visit was counted once\n")
        rows = table.toDF()
        rows.selectExpr("count(*) AS customers", "min(visits)", "max(visits)", "sum(visits)").show()
        expected = CUSTOMERS + WRITERS * MERGES
        counted = rows.where("visits = 1").count()
        if (rows.count(), counted) != (expected, expected):
            raise SystemExit(f"{expected} customers should have one visit, but {counted} have.")
        print(f"The table was optimized {optimized} times. {delta_pyds.verify(path)}")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        upsert(sys.argv[1], int(sys.argv[2]))
    else:
        main()
