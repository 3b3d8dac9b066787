"""A table of a catalog on Spark: each call names it, and the processes of Spark find it by themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable, DeltaTableBuilder
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from tests.support.unity_server import UnityServer

NAME = "main.db.orders"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[str]:
    yield f"sqlite://{tmp_path}/catalog.db"
    forget_catalogs()


def ids(spark: SparkSession, catalog: str, **given: int) -> list[int]:
    frame = delta_pyds.read(spark, table=NAME, catalog=catalog, **given)  # type: ignore[arg-type]
    return sorted(row.id for row in frame.collect())


def test_the_life_of_a_table(spark: SparkSession, catalog: str) -> None:
    rows = spark.range(4).coalesce(1)
    assert delta_pyds.write(rows, table=NAME, catalog=catalog, mode="append").version == 0
    rows.write.format("deltapy").mode("append").option("table", NAME).option("catalog", catalog).save()
    table = DeltaTable.forName(spark, NAME, catalog=catalog)
    table.delete("id = 0")
    table.update("id = 1", {"id": "id + 10"})
    updates = spark.createDataFrame([(2,), (20,)], "id long").coalesce(1)
    merge = table.alias("t").merge(updates.alias("s"), "t.id = s.id").whenMatchedDelete().whenNotMatchedInsertAll()
    merge.execute()

    assert ids(spark, catalog) == [3, 3, 11, 11, 20]
    assert ids(spark, catalog, version=0) == [0, 1, 2, 3]
    plain = spark.read.format("deltapy").option("table", NAME).option("catalog", catalog).load()
    assert sorted(row.id for row in plain.collect()) == [3, 3, 11, 11, 20]
    assert [row.operation for row in table.history().collect()] == ["MERGE", "UPDATE", "DELETE", "WRITE", "WRITE"]
    assert sorted(row.id for row in table.toDF().collect()) == [3, 3, 11, 11, 20]
    known = open_catalog(catalog).load_table(NAME)
    assert (known.latest_version, known.unpublished) == (4, ())
    assert delta_pyds.verify(table=NAME, catalog=catalog).ok


def test_created_by_its_name(spark: SparkSession, catalog: str) -> None:
    def builder(mode: str) -> DeltaTableBuilder[DeltaTable]:
        made = getattr(DeltaTable, mode)(spark).tableName(NAME, catalog=catalog).addColumn("id", "BIGINT")
        return made.property("delta.enableChangeDataFeed", "true")  # type: ignore[no-any-return]

    with pytest.raises(delta_pyds.DeltaError):
        builder("replace").execute()
    table = builder("create").execute()
    delta_pyds.write(spark.range(3).coalesce(1), table=NAME, catalog=catalog, mode="append")
    with pytest.raises(delta_pyds.DeltaError) as error:
        builder("create").execute()
    assert error.value.code == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert builder("createIfNotExists").execute().toDF().count() == 3
    table.delete("id = 1")
    changes = spark.read.format("deltapy").option("table", NAME).option("catalog", catalog)
    feed = changes.option("readChangeFeed", "true").option("startingVersion", "2").load()
    assert [(row.id, row._change_type) for row in feed.collect()] == [(1, "delete")]
    builder("createOrReplace").execute()
    assert ids(spark, catalog) == [] and ids(spark, catalog, version=1) == [0, 1, 2]
    assert delta_pyds.verify(table=NAME, catalog=catalog).ok


def test_by_path_it_is_refused(spark: SparkSession, catalog: str) -> None:
    delta_pyds.write(spark.range(2).coalesce(1), table=NAME, catalog=catalog, mode="append")
    root = open_catalog(catalog).load_table(NAME).location
    with pytest.raises(delta_pyds.DeltaError) as error:
        delta_pyds.read(spark, root)
    assert error.value.code == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"
    assert NAME in error.value.message and "/" in root


def test_streams(spark: SparkSession, catalog: str, tmp_path: Path) -> None:
    """In from one table of the catalog, and out to another."""
    delta_pyds.write(spark.range(3).coalesce(1), table=NAME, catalog=catalog, mode="append")
    source = spark.readStream.format("deltapy").option("table", NAME).option("catalog", catalog).load()
    sink = source.writeStream.format("deltapy").option("checkpointLocation", str(tmp_path / "c"))
    for _ in range(2):
        query = sink.option("table", "main.db.copy").option("catalog", catalog).trigger(availableNow=True).start()
        query.awaitTermination(120)
        assert query.exception() is None
        delta_pyds.write(spark.range(3, 5).coalesce(1), table=NAME, catalog=catalog, mode="append")
    copied = delta_pyds.read(spark, table="main.db.copy", catalog=catalog).collect()
    assert sorted(row.id for row in copied) == [0, 1, 2, 3, 4]


def test_unity_catalog_and_how_far_its_token_gets(spark: SparkSession, tmp_path: Path) -> None:
    """With a server of our own, which is not the real one (``unity_server``)."""
    token, settings = "dapi-9988776655443322", Path(os.environ["DELTA_PYDS_CATALOGS"])
    with UnityServer(str(tmp_path / "tables"), token=token) as server:
        settings.write_text(json.dumps({"unity": {"url": server.url, "token": token}}))
        forget_catalogs()
        rows = spark.range(4).coalesce(1)
        assert delta_pyds.write(rows, table=NAME, catalog="unity", mode="append").version == 0
        rows.write.format("deltapy").mode("append").option("table", NAME).option("catalog", "unity").save()
        table = DeltaTable.forName(spark, NAME, catalog="unity")
        table.delete("id = 0")
        wider = table.toDF().selectExpr("id + 10 AS id", "'x' AS note")
        delta_pyds.write(wider, table=NAME, catalog="unity", mode="append", merge_schema=True)
        native = delta_pyds.read(spark, table=NAME, catalog="unity")
        by_source = spark.read.format("deltapy").option("table", NAME).option("catalog", "unity").load()
        for frame in (native, by_source):
            assert sorted(row.id for row in frame.collect()) == [1, 1, 2, 2, 3, 3, 11, 11, 12, 12, 13, 13]
            assert token not in frame._jdf.queryExecution().toString()
        with pytest.raises(delta_pyds.DeltaError, match="keeps that operation to itself"):
            table.vacuum()
        known = server.tables[NAME]
        assert [field["name"] for field in known.columns["fields"]] == ["id", "note"]
        assert (known.commits[0]["version"], known.published) == (3, True)
        assert {sent for _, _, sent, _ in server.requests} == {f"Bearer {token}"}
        assert delta_pyds.verify(table=NAME, catalog="unity").ok
    settings.unlink()
    forget_catalogs()
    files = [file for file in tmp_path.rglob("*.json") if file.is_file()]
    assert files and not [file for file in files if token in file.read_text()]
