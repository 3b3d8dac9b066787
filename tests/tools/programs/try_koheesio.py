"""Steps of koheesio: its Delta reader and writers, in batches and streams, with merges and changing dimensions."""

from __future__ import annotations

import datetime as dt
from typing import Any

from koheesio.spark.delta import DeltaTableStep, StaleDataCheckStep
from koheesio.spark.readers.delta import DeltaTableReader, DeltaTableStreamReader
from koheesio.spark.writers import BatchOutputMode
from koheesio.spark.writers.delta import DeltaTableStreamWriter, DeltaTableWriter, SCD2DeltaTableWriter
from pyspark.sql import DataFrame, SparkSession, functions


def session() -> SparkSession:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    return builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()


def frame(rows: list[tuple[Any, ...]], columns: str = "id INT, city STRING") -> DataFrame:
    return session().createDataFrame(rows, columns).coalesce(1)


def rows(table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in DeltaTableReader(table=table).read().collect())


def write(table: str, content: DataFrame, mode: BatchOutputMode = BatchOutputMode.APPEND, **options: Any) -> None:
    DeltaTableWriter(table=table, output_mode=mode, df=content, **options).execute()


def batches() -> None:
    table = DeltaTableStep(
        table="cities", create_if_not_exists=True, default_create_properties={"delta.enableChangeDataFeed": "true"}
    )
    assert not table.exists and table.columns is None
    DeltaTableWriter(table=table, df=frame([(1, "Bern"), (2, "Zug")])).execute()
    assert table.exists and table.is_cdf_active
    assert table.columns == ["id", "city"]
    write("cities", frame([(3, "Chur")]))
    read = DeltaTableReader(table="cities", filter_cond="id > 1", columns=["city"])
    assert sorted(row.city for row in read.read().collect()) == ["Chur", "Zug"]
    assert session().table(read.view).count() == 2
    table.add_property("delta.appendOnly", False)
    assert table.get_persisted_properties()["delta.appendOnly"] == "false"
    history = table.describe_history()
    assert history is not None and history.first().operation == "SET TBLPROPERTIES"
    assert not StaleDataCheckStep(table=table, interval=dt.timedelta(days=1)).execute().is_data_stale
    write("cities", frame([(3, "Chur")]), BatchOutputMode.OVERWRITE)
    assert rows("cities") == [(3, "Chur")]
    changes = DeltaTableReader(table="cities", read_change_feed=True, starting_version="1").read()
    assert {row._change_type for row in changes.collect()} == {"insert", "delete"}


def merges() -> None:
    condition = {"merge_cond": "target.id = source.id"}
    for content in ([(1, "Bern")], [(1, "Uri"), (2, "Zug")]):  # the first run creates the table
        write("merged", frame(content), BatchOutputMode.MERGEALL, output_mode_params=condition)
    assert rows("merged") == [(1, "Uri"), (2, "Zug")]
    clauses = [
        {"clause": "whenMatchedUpdate", "set": {"city": "source.city"}, "condition": "source.id > 1"},
        {"clause": "whenNotMatchedInsert", "values": {"id": "source.id", "city": "source.city"}},
    ]
    write(
        "merged",
        frame([(1, "Chur"), (2, "Chur"), (3, "Sion")]),
        BatchOutputMode.MERGE,
        output_mode_params={"merge_builder": clauses, **condition},
    )
    assert rows("merged") == [(1, "Uri"), (2, "Chur"), (3, "Sion")]


def dimensions() -> None:
    session().sql(
        "CREATE TABLE dimension (id INT, city STRING, seen INT,"
        " _scd2 STRUCT<effective_time: TIMESTAMP, end_time: TIMESTAMP, is_current: BOOLEAN>) USING delta"
    )
    for content in ([(1, "Bern", 1), (2, "Zug", 1)], [(1, "Uri", 1), (2, "Zug", 2)]):
        SCD2DeltaTableWriter(
            table=DeltaTableStep(table="dimension"),
            merge_key="id",
            scd2_columns=["city"],
            scd1_columns=["seen"],
            scd2_timestamp_col=functions.current_timestamp(),
            df=frame(content, "id INT, city STRING, seen INT"),
        ).execute()
    found = session().table("dimension").selectExpr("id", "city", "seen", "_scd2.is_current")
    assert sorted(tuple(row) for row in found.collect()) == [
        (1, "Bern", 1, False), (1, "Uri", 1, True), (2, "Zug", 2, True),
    ]  # fmt: skip


def streams() -> None:
    for _ in range(2):
        stream = DeltaTableStreamReader(table="merged", ignore_changes=True).read()
        writer = DeltaTableStreamWriter(table="streamed", checkpoint_location="checkpoint", df=stream)
        writer.execute()
        writer.streaming_query.awaitTermination()
        write("merged", frame([(4, "Nyon")]))
    assert (4, "Nyon") in rows("streamed")
    assert len(rows("streamed")) == 4


def main() -> None:
    session()
    for step in (batches, merges, dimensions, streams):
        step()


if __name__ == "__main__":
    main()
