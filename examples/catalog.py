"""Tables that a catalog manages: one SQLite file decides which commits exist, and a table has a name, not a path."""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.catalog.named import open_catalog

NAME = "main.sales.orders"


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        # A catalog in SQLite needs no settings. Other catalogs have a name, such as "prod", and settings in the
        # environment (DELTA_PYDS_CATALOG_PROD_URL), so that no option contains a secret. In SQL every catalog has a
        # name.
        catalog = f"sqlite://{folder}/catalog.db"
        os.environ["DELTA_PYDS_CATALOG_SHOP_URL"] = catalog
        spark = (
            SparkSession.builder.master("local[2]")
            .appName("deltapy catalog")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")

        print("\n1. Create a table by its name, and append to it\n")
        first = spark.createDataFrame([(1, "Bern", 120), (2, "Basel", 40)], "id long, city string, amount int")
        delta_pyds.write(first, table=NAME, catalog=catalog, mode="append")
        more = spark.createDataFrame([(3, "Bern", 15)], "id long, city string, amount int")
        more.write.format("deltapy").option("table", NAME).option("catalog", catalog).mode("append").save()

        print("2. Change its rows, and read it now and as it was\n")
        orders = DeltaTable.forName(spark, NAME, catalog=catalog)
        orders.update("city = 'Bern'", {"amount": "amount + 1"})
        orders.delete("id = 2")
        delta_pyds.read(spark, table=NAME, catalog=catalog).orderBy("id").show()
        delta_pyds.read(spark, table=NAME, catalog=catalog, version=0).orderBy("id").show()
        orders.history().select("version", "operation").show()

        print("3. The same in SQL, with the name of the catalog before the name of the table\n")
        delta_pyds.sql(spark, f"SELECT city, sum(amount) AS total FROM shop.{NAME} GROUP BY city ORDER BY city").show()

        print("4. The catalog's state of the table: every commit is immediately in the log too\n")
        known = open_catalog(catalog).load_table(NAME)
        print(f"latest version {known.latest_version}, {len(known.unpublished)} commits wait to be published\n")

        print("5. Its path is refused, because only the catalog knows the newest commits\n")
        try:
            delta_pyds.read(spark, known.location)
        except delta_pyds.DeltaError as error:
            print(error.message.replace(folder, "..."), "\n")

        print("6. Check the table and its catalog against the protocol\n")
        print(delta_pyds.verify(table=NAME, catalog=catalog))
        spark.stop()


if __name__ == "__main__":
    main()
