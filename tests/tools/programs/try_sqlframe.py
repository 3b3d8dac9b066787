"""sqlframe with the engine Spark: its DataFrames over a table."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession as Sessions
from sqlframe.spark import SparkSession
from sqlframe.spark import functions as F  # noqa: N812 - Spark's own name for it


def main() -> None:
    spark = Sessions.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sql("CREATE TABLE visits (id INT, city STRING) USING delta")
    spark.sql("INSERT INTO visits VALUES (1, 'Bern'), (2, 'Zug'), (3, 'Bern')")
    frame = SparkSession.builder.config("sqlframe.conn", spark).getOrCreate().table("visits")
    counted = frame.groupBy("city").agg(F.count("*").alias("n")).orderBy("city").collect()
    assert [(row.city, row.n) for row in counted] == [("Bern", 2), ("Zug", 1)]
    assert (Path("spark-warehouse") / "visits" / "_delta_log").exists()


if __name__ == "__main__":
    main()
