"""The pandas API of Spark: tables by path and by name, in the ways that it has for Delta and for any format."""

from __future__ import annotations

from pathlib import Path

import pyspark.pandas as ps
from pyspark.sql import SparkSession


def main() -> None:
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    frame = ps.DataFrame({"id": [1, 2, 3], "city": ["Bern", "Zug", "Bern"]})
    frame.to_delta("visits", partition_cols="city")
    assert (Path("visits") / "_delta_log").exists()
    frame[frame.id == 3].to_delta("visits", mode="append")
    read = ps.read_delta("visits", index_col="id")
    assert read.groupby("city").size().sort_index().to_dict() == {"Bern": 3, "Zug": 1}
    assert len(ps.read_delta("visits", version=0)) == 3
    assert sorted(read.index.to_list()) == [1, 2, 3, 3]
    other = ps.read_spark_io("visits", format="delta")
    assert sorted(other[other.id > 1].city.to_list()) == ["Bern", "Bern", "Zug"]

    frame.spark.to_spark_io("ways", format="delta", mode="overwrite")
    assert len(ps.read_delta("ways")) == 3
    frame.to_table("named", format="delta")
    assert (Path("spark-warehouse") / "named" / "_delta_log").exists()
    named = ps.read_table("named", index_col="id")
    assert named.loc[2, "city"] == "Zug"
    frame.spark.to_table("named", format="delta", mode="append")
    assert ps.sql("SELECT count(*) AS n FROM named").n.to_list() == [6]
    joined = ps.read_table("named").merge(ps.read_delta("visits"), on="id")
    assert len(joined) == 8
    read = ps.read_delta("visits")
    read["more"] = read.id * 2
    read.to_delta("visits", mode="overwrite", overwriteSchema="true")
    assert sorted(ps.read_delta("visits").more.to_list()) == [2, 4, 6, 6]


if __name__ == "__main__":
    main()
