"""Read a real Delta table with Spark, and write one: no JAR, no configuration.

The table in ``examples/tables`` was written by the reference implementation (``tests/interop/make_example_table.py``):
four partitions, a checkpoint, deleted and updated rows by deletion vectors.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import delta_pyds

TABLE = str(Path(__file__).resolve().parent / "tables" / "trips")
WHERE = "day >= DATE '2026-01-03' AND trip < 200"


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("deltapy quickstart")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")

    print("\n1. The table, by its format name\n")
    df = spark.read.format("deltapy").load(TABLE)
    df.printSchema()
    df.orderBy("trip").show(10)
    print(f"{df.count()} rows\n")

    print("2. Time travel: before any row was deleted\n")
    first = spark.read.format("deltapy").option("versionAsOf", 8).load(TABLE)
    print(f"{first.count()} rows at version 8\n")

    print(f"3. A predicate that skips files: where {WHERE}\n")
    delta_pyds.read(spark, TABLE, where=WHERE, columns=["trip", "city"]).orderBy("trip").show(10)

    print("4. What was skipped, and why\n")
    print(delta_pyds.explain(TABLE, where=WHERE))

    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/copy"
        print("\n5. Write the rows to a table of our own, partitioned and with a constraint\n")
        delta_pyds.write(df, path, partition_by="day", properties={"delta.constraints.known": "trip IS NOT NULL"})
        df.filter("city = 'Bern'").write.format("deltapy").mode("append").save(path)
        print(f"{spark.read.format('deltapy').load(path).count()} rows after an append of Bern once more")

        print("\n6. Replace one partition\n")
        first_day = "day = DATE '2026-01-01'"
        df.filter(first_day).write.format("deltapy").mode("overwrite").option("replaceWhere", first_day).save(path)
        print(f"{spark.read.format('deltapy').load(path).count()} rows: those of that day are as at first\n")

        print("7. Check the new table against the protocol: its log, its statistics, its rows\n")
        print(delta_pyds.verify(path))
    spark.stop()


if __name__ == "__main__":
    main()
