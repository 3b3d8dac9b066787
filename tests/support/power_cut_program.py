"""Commands by a session of Spark with processes of its own; after each, the table as a power cut leaves it then.

Arguments: the disk's base, its record, and where the tables that are left go. Prints the version after each command.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import delta_pyds
from delta_pyds import DeltaTable
from tests.support.java_options import QUICK_COMPILER
from tests.support.power_cut import Disk


def main(base: Path, record: Path, cuts: Path) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", f"{QUICK_COMPILER} -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", str(record / "local"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    delta_pyds.register(spark)
    path = str(base / "a" / "t")

    def append(first: int) -> None:
        rows = spark.range(first, first + 8, 1, 2).withColumn("p", sf.concat(sf.lit("p"), sf.col("id") % 3))
        options = {"partitionBy": "p", "delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
        rows.write.format("deltapy").options(**(options if not first else {})).mode("append").save(path)

    def merge() -> None:
        # our own evaluator does not know hash: tasks of Spark find and write the rows
        source = spark.range(14, 20).withColumn("p", sf.lit("new"))
        matched = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "hash(t.id) = hash(s.id)")
        matched.whenMatchedUpdate(set={"p": "s.p"}).whenNotMatchedInsertAll().execute()

    steps = [
        lambda: append(0),
        lambda: append(8),
        lambda: DeltaTable.forPath(spark, path).delete("hash(id) % 5 = 0"),
        merge,
        lambda: DeltaTable.forPath(spark, path).optimize().executeCompaction(),
    ]
    for step in steps:
        step()
        version = delta_pyds.load_snapshot(path).version
        Disk(base, record).left_after_power_cut(cuts / str(version))
        print(version, flush=True)
    spark.stop()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    main(*(Path(argument) for argument in sys.argv[1:]))
    os._exit(0)
