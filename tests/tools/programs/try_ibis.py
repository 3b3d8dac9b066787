"""ibis with the backend pyspark: a table written, read and queried."""

from __future__ import annotations

from pathlib import Path

import ibis
from pyspark.sql import SparkSession


def main() -> None:
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    connection = ibis.pyspark.connect(spark)
    path = str(Path("visits").resolve())
    spark.createDataFrame([(1, "Bern"), (2, "Zug")], "id INT, city STRING").createOrReplaceTempView("source")
    connection.to_delta(connection.table("source"), path, mode="overwrite")
    table = connection.read_delta(path, table_name="visits")
    assert table.filter(table.id > 1).city.execute().tolist() == ["Zug"]
    connection.create_table("kept", table, format="delta", overwrite=True)
    assert connection.table("kept").count().execute() == 2


if __name__ == "__main__":
    main()
