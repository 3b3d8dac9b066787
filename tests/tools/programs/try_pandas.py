"""The pandas API on Spark: a table written, read and aggregated."""

from __future__ import annotations

from pathlib import Path

import pyspark.pandas as ps
from pyspark.sql import SparkSession


def main() -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.ansi.enabled", "false").getOrCreate()
    path = str(Path("visits").resolve())
    frame = ps.DataFrame({"id": [1, 2, 3], "city": ["Bern", "Zug", "Bern"], "n": [5, 7, 1]})
    frame.to_delta(path, mode="overwrite", partition_cols="city", index_col="id")
    frame[frame.n > 4].to_delta(path, mode="append", partition_cols="city", index_col="id")
    read = ps.read_delta(path, index_col="id")
    assert read.groupby("city").n.sum().sort_index().to_dict() == {"Bern": 11, "Zug": 14}
    assert len(ps.read_delta(path, version=0)) == 3
    assert len(ps.sql("SELECT * FROM delta.`{path}`".replace("{path}", path))) == 5
    assert spark.sql(f"DESCRIBE HISTORY delta.`{path}`").count() == 2


if __name__ == "__main__":
    main()
