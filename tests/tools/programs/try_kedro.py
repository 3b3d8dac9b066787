"""kedro: a pipeline whose datasets are tables, read and written as DataFrames and changed as a DeltaTable."""

from __future__ import annotations

from pathlib import Path

from delta.tables import DeltaTable
from kedro.io import DataCatalog
from kedro.pipeline import node, pipeline
from kedro.runner import SequentialRunner
from pyspark.sql import DataFrame, SparkSession

_CATALOG = {
    "raw@spark": {
        "type": "spark.SparkDataset",
        "filepath": "data/raw",
        "file_format": "delta",
        "save_args": {"mode": "overwrite", "partitionBy": ["city"]},
    },
    "raw@delta": {"type": "spark.DeltaTableDataset", "filepath": "data/raw"},
    "first": {
        "type": "spark.SparkDataset",
        "filepath": "data/raw",
        "file_format": "delta",
        "load_args": {"versionAsOf": 0},
    },
    "log": {
        "type": "spark.SparkDatasetV2",
        "filepath": "data/log",
        "file_format": "delta",
        "save_args": {"mode": "append", "mergeSchema": True},
    },
    "cities": {
        "type": "spark.SparkHiveDataset",
        "database": "default",
        "table": "cities",
        "write_mode": "upsert",
        "table_pk": ["city"],
        "save_args": {"format": "delta"},
    },
}


def make() -> DataFrame:
    rows = [(1, "Bern"), (2, "Zug"), (3, "Bern")]
    return SparkSession.builder.getOrCreate().createDataFrame(rows, "id INT, city STRING")


def change(table: DeltaTable) -> bool:
    table.delete("id = 1")
    return True


def count(rows: DataFrame, _: bool) -> tuple[DataFrame, DataFrame]:
    counted = rows.groupBy("city").count()
    return counted, counted


def main() -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setCheckpointDir("checkpoints")
    spark.sql("CREATE TABLE cities (city STRING, count BIGINT) USING delta")
    catalog = DataCatalog.from_config(_CATALOG)
    assert [name for name in _CATALOG if catalog.exists(name)] == ["cities"]
    steps = pipeline(
        [
            node(make, None, "raw@spark", name="make"),
            node(change, "raw@delta", "changed", name="change"),
            node(count, ["raw@spark", "changed"], ["log", "cities"], name="count"),
        ]
    )
    for _ in range(2):
        SequentialRunner().run(steps, catalog)
    assert all(map(catalog.exists, _CATALOG))
    assert sorted(tuple(row) for row in catalog.load("raw@spark").collect()) == [(2, "Zug"), (3, "Bern")]
    assert catalog.load("first").count() == 3
    assert catalog.load("log").count() == 4
    assert sorted(tuple(row) for row in catalog.load("cities").collect()) == [("Bern", 1), ("Zug", 1)]
    for folder in ("data/raw", "data/log", "spark-warehouse/cities"):
        assert (Path(folder) / "_delta_log").exists()


if __name__ == "__main__":
    main()
