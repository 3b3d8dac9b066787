"""great_expectations: suites over a table by path, at a version of it, and over a DataFrame of it."""

from __future__ import annotations

from pathlib import Path

import great_expectations as gx
from great_expectations import expectations as gxe
from pyspark.sql import SparkSession


def main() -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.createDataFrame([(1, "Bern"), (2, None)], "id INT, city STRING").write.format("delta").save("tables/visits")
    spark.createDataFrame([(3, "Zug"), (3, "Uri")], "id INT, city STRING").write.format("delta").mode("append").save(
        "tables/visits"
    )
    context = gx.get_context(mode="ephemeral")
    source = context.data_sources.add_or_update_spark_filesystem("tables", base_directory=Path("tables").absolute())
    batches = {}
    for name, version in (("now", None), ("before", "0")):
        asset = source.add_directory_delta_asset(name, data_directory="visits", version_as_of=version)
        batches[name] = asset.add_batch_definition_whole_directory("all").get_batch()
    frames = context.data_sources.add_or_update_spark("frames").add_dataframe_asset("visits")
    frame = spark.read.format("delta").load("tables/visits").filter("id < 3")
    batches["frame"] = frames.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(
        "visits",
        expectations=[
            gxe.ExpectTableRowCountToBeBetween(min_value=2, max_value=4),
            gxe.ExpectTableColumnsToMatchOrderedList(column_list=["id", "city"]),
            gxe.ExpectColumnValuesToBeOfType(column="id", type_="IntegerType"),
            gxe.ExpectColumnValuesToBeBetween(column="id", min_value=1, max_value=3),
            gxe.ExpectColumnValuesToBeInSet(column="city", value_set=["Bern", "Zug", "Uri"]),
            gxe.ExpectColumnMaxToBeBetween(column="id", min_value=2, max_value=3),
            gxe.ExpectColumnValuesToNotBeNull(column="city", mostly=0.5),
        ],
    )
    for name, batch in batches.items():
        results = batch.validate(suite)
        assert results.success, (name, results)
        unique = batch.validate(gxe.ExpectColumnValuesToBeUnique(column="id"))
        assert unique.success == (name != "now"), unique
        rows = batch.validate(gxe.ExpectTableRowCountToEqual(value=4 if name == "now" else 2))
        assert rows.success, rows


if __name__ == "__main__":
    main()
