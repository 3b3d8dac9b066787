"""SQL on Delta tables with Spark, with no JAR: ``delta_pyds.sql`` runs what ``spark.sql`` refuses."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial

from pyspark.sql import SparkSession

import delta_pyds


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        spark = (
            SparkSession.builder.master("local[2]")
            .appName("deltapy SQL")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", folder)
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        statements(spark, folder)
        spark.stop()


def statements(spark: SparkSession, folder: str) -> None:
    sql = partial(delta_pyds.sql, spark)
    customers, news = f"delta.`{folder}/customers`", f"delta.`{folder}/news`"

    print("\n1. Create tables, and fill them\n")
    sql(
        f"CREATE TABLE {customers} (id BIGINT NOT NULL, name STRING, city STRING, visits INT) USING delta "
        "TBLPROPERTIES (delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true)"
    )
    sql(f"INSERT INTO {customers} VALUES (1, 'Ada', 'Bern', 3), (2, 'Bo', 'Basel', 1), (4, 'Di', 'Genf', 0)")
    sql(f"CREATE TABLE {news} AS SELECT * FROM VALUES (1, 'Zug', false), (4, 'Genf', true) AS n(id, city, gone)")

    print("2. Merge, update, delete; :name is an argument\n")
    merged = sql(
        f"MERGE INTO {customers} c USING {news} n ON c.id = n.id "
        "WHEN MATCHED AND n.gone THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET city = n.city, visits = c.visits + 1"
    )
    merged.show()
    sql(f"UPDATE {customers} SET visits = visits + :more WHERE city = :city", {"more": 10, "city": "Zug"})
    sql(f"DELETE FROM {customers} c WHERE EXISTS (SELECT 1 FROM {news} n WHERE n.id = c.id AND n.gone)").show()

    print("3. Query: tables work wherever Spark expects one, in earlier versions too\n")
    sql(
        f"SELECT c.id, c.city, c.visits, b.visits AS before FROM {customers} c "
        f"JOIN {customers} VERSION AS OF 1 b ON c.id = b.id ORDER BY c.id"
    ).show()
    sql(f"SELECT id, city, _change_type FROM table_changes('{folder}/customers', 2) ORDER BY id, city").show()

    print("4. Maintain the table\n")
    sql(f"ALTER TABLE {customers} ADD COLUMN country STRING COMMENT 'ISO 3166'")
    sql(f"OPTIMIZE {customers}").select("metrics.numFilesAdded", "metrics.numFilesRemoved").show()
    sql(f"DESCRIBE HISTORY {customers}").select("version", "operation").show()

    print("5. An error shows its position\n")
    try:
        sql(f"UPDATE {customers}\nSETT visits = 0")
    except delta_pyds.DeltaError as error:
        print(error.message)

    print("6. A table by name: spark.sql of any session reads it\n")
    sql("CREATE TABLE visits (city STRING, day DATE, number INT) USING deltapy PARTITIONED BY (city)")
    sql("INSERT INTO visits VALUES ('Bern', DATE'2026-01-31', 3), ('Zug', DATE'2026-01-31', 5)")
    sql("UPDATE visits SET number = default.visits.number + 1 WHERE visits.city = 'Zug'")
    spark.sql("SELECT * FROM visits ORDER BY city").show()
    sql("SELECT number FROM visits VERSION AS OF 1 WHERE city = 'Zug'").show()
    sql("DROP TABLE visits")


if __name__ == "__main__":
    main()
