"""One of several processes that share a metastore, one after another. Arguments: its directory, the steps, a server.

What a step says of tables that an earlier one made holds in whatever process it runs.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import UserError
from tests.support.metastore import with_metastore


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def creates(spark: Any, directory: str) -> None:
    """Tables with names: at a place, where the schema puts them, by SQL, and one that a process has died over."""
    spark.sql("CREATE SCHEMA sales")
    delta_pyds.write(spark.sql("SELECT id, 'a' AS s FROM range(3)"), f"{directory}/orders é's")
    delta_pyds.create_table(spark, "sales.Orders", f"{directory}/orders é's")
    delta_pyds.write(spark.range(2), table="sales.managed")
    delta_pyds.sql(spark, f"CREATE TABLE sales.declared (id INT) USING deltapy LOCATION '{directory}/declared'")
    half = delta_pyds.create_table(spark, "half", f"{directory}/orders é's")
    spark.sql(f"DROP VIEW {half.quoted}")
    broken = delta_pyds.create_table(spark, "broken", f"{directory}/declared")
    spark.sql(f"DROP TABLE {broken.quoted_entry}")
    spark.sql("CREATE VIEW sales.on_top AS SELECT max(id) AS last FROM sales.orders")


def changes(spark: Any, directory: str) -> None:
    """By the names, in a process that has made none of them."""
    assert rows(spark.sql("SELECT * FROM sales.orders")) == [(0, "a"), (1, "a"), (2, "a")]
    delta_pyds.write(spark.sql("SELECT 3L AS id, 'b' AS s"), table="sales.orders", mode="append")
    assert rows(spark.table("sales.on_top")) == [(3,)]
    more = spark.sql("SELECT 3L AS id, 'c' AS s UNION ALL SELECT 4L, 'd'")
    merge = DeltaTable.forName(spark, "sales.orders").alias("t").merge(more.alias("m"), "t.id = m.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    delta_pyds.sql(spark, "UPDATE sales.orders SET s = 'z' WHERE orders.id = 0")
    delta_pyds.sql(spark, "ALTER TABLE sales.orders ADD COLUMNS (late INT)")
    assert spark.sql("SELECT * FROM sales.orders").columns == ["id", "s", "late"]
    delta_pyds.sql(spark, "INSERT INTO sales.declared VALUES (7)")
    for taken in ("sales.orders", "sales.on_top", "SALES.ORDERS"):
        try:
            delta_pyds.create_table(spark, taken, f"{directory}/declared")
        except UserError as error:
            assert error.code == "TABLE_OR_VIEW_ALREADY_EXISTS", error
        else:
            raise AssertionError(taken)
    delta_pyds.create_table(spark, "half", f"{directory}/declared")
    assert rows(spark.table("half")) == rows(delta_pyds.read(spark, table="broken")) == [(7,)]
    delta_pyds.create_table(spark, "broken", f"{directory}/declared", if_not_exists=True)
    assert rows(spark.table("broken")) == [(7,)]


def streams(spark: Any, directory: str) -> None:
    """With PySpark's own methods, from a name to a name; and all of it goes again."""
    delta_pyds.install(spark)
    assert rows(spark.sql("SELECT id, s FROM sales.orders WHERE late IS NULL")) == [
        (0, "z"), (1, "a"), (2, "a"), (3, "c"), (4, "d"),
    ]  # fmt: skip
    query = spark.readStream.table("sales.orders").writeStream.format("deltapy").trigger(availableNow=True)
    query.option("checkpointLocation", f"{directory}/checkpoint").toTable("sales.copied").awaitTermination()
    spark.range(1).selectExpr("CAST(id AS INT) AS id").write.insertInto("sales.declared")
    spark.sql("ALTER TABLE sales.copied RENAME TO sales.moved")
    assert spark.sql("SELECT count(*) FROM sales.moved VERSION AS OF 0").collect()[0][0] == 0
    assert rows(spark.table("sales.moved").select("id")) == [(0,), (1,), (2,), (3,), (4,)]
    assert rows(spark.table("sales.declared")) == [(0,), (7,)]
    spark.sql("DROP VIEW sales.on_top")
    for name in ("sales.moved", "sales.managed", "sales.orders", "sales.declared", "half", "broken"):
        spark.sql(f"DROP TABLE {name}")
    # what is installed shows no entries
    delta_pyds.uninstall()
    left = [row.tableName for schema in ("sales", "default") for row in spark.sql(f"SHOW TABLES IN {schema}").collect()]
    # of the process that died an entry is left, which nothing stands for
    assert [name.rsplit("_", 2)[0] for name in left] == ["_deltapy_half"], left
    assert delta_pyds.load_snapshot(f"{directory}/declared").version == 2


STEPS = {step.__name__: step for step in (creates, changes, streams)}


def main(directory: str, steps: str, server: str | None = None) -> None:
    if server is None:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = with_metastore(builder, directory).getOrCreate()
    else:
        spark = SparkSession.builder.remote(server).getOrCreate()
    for step in steps.split(","):
        STEPS[step](spark, directory)
    print("all is well", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
