"""ibis with the backend PySpark: tables by path and by name."""

from __future__ import annotations

from pathlib import Path

import ibis
import pandas as pd
from pyspark.sql import SparkSession


def main() -> None:
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    con = ibis.pyspark.connect(spark)
    visits = pd.DataFrame({"id": [1, 2, 3], "city": ["Bern", "Zug", "Bern"]})
    con.to_delta(ibis.memtable(visits), "visits")
    assert (Path("visits") / "_delta_log").exists()
    con.to_delta(ibis.memtable(visits).filter(ibis._.id == 3), "visits", mode="append")

    read = con.read_delta("visits", table_name="read")
    assert read.schema() == ibis.schema({"id": "int64", "city": "string"})
    counted = read.group_by("city").agg(n=ibis._.count()).order_by("city").to_pandas()
    assert counted.values.tolist() == [["Bern", 3], ["Zug", 1]]
    assert read.filter(read.id > 2).count().execute() == 2
    before = con.read_delta("visits", versionAsOf=0)
    assert before.count().execute() == 3

    table = con.create_table("named", read.mutate(more=read.id + 1), format="delta", partition_by="city")
    assert (Path("spark-warehouse") / "named" / "_delta_log").exists()
    assert "named" in con.list_tables() and table.columns == ("id", "city", "more")
    con.insert("named", pd.DataFrame({"id": [9], "city": ["Chur"], "more": [10]}))
    con.insert("named", table.filter(table.id == 9).mutate(city=ibis.literal("Uri")))
    joined = table.inner_join(read, "id").filter(table.city != read.city)
    assert joined.count().execute() == 0
    assert sorted(table.city.to_list()) == ["Bern", "Bern", "Bern", "Chur", "Uri", "Zug"]
    con.upsert("named", pd.DataFrame({"id": [9, 10], "city": ["Sion"] * 2, "more": [0, 1]}), on="id")
    assert sorted(table.filter(table.city == "Sion").id.to_list()) == [9, 9, 10]
    con.create_table("named", table.filter(table.id == 1), format="delta", overwrite=True)
    assert con.table("named").to_pandas().values.tolist() == [[1, "Bern", 2]]
    con.create_table("empty", schema={"id": "int64"}, format="delta")
    assert con.table("empty").count().execute() == 0
    con.create_view("seen", con.table("named").filter(ibis._.id == 1))
    assert con.table("seen").count().execute() == 1
    con.drop_view("seen")
    con.drop_table("named")
    assert "named" not in con.list_tables()


if __name__ == "__main__":
    main()
