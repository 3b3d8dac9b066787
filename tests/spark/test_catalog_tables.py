"""A table of a catalog on Spark: each call names it, and the processes of Spark find it by themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds import DeltaTable, DeltaTableBuilder
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.errors import OptionError
from tests.support.unity_server import UnityServer

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

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


class FileOfOne(SqliteCatalog):
    """Another process makes one of the same file."""

    def __reduce__(self) -> tuple[type[SqliteCatalog], tuple[str]]:
        return SqliteCatalog, (self._sql.path,)


def test_an_object_as_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    """The processes that Spark plans and commits in make another one."""
    catalog = FileOfOne(str(tmp_path / "catalog.db"))
    builder = DeltaTable.create(spark).tableName(NAME, catalog=catalog).addColumn("id", "BIGINT")
    builder.execute()
    assert delta_pyds.write(spark.range(3).coalesce(1), table=NAME, catalog=catalog, mode="append").version == 1
    DeltaTable.forName(spark, NAME, catalog=catalog).delete("id = 1")
    for engine in ("native", "arrow"):
        frame = delta_pyds.read(spark, table=NAME, catalog=catalog, engine=engine)  # type: ignore[arg-type]
        assert sorted(row.id for row in frame.collect()) == [0, 2]
    assert catalog.load_table(NAME).latest_version == 2


def test_an_object_that_stays_in_its_process(spark: SparkSession, tmp_path: Path) -> None:
    catalog = SqliteCatalog(str(tmp_path / "catalog.db"))
    with pytest.raises(OptionError, match="Define __reduce__ in its class"):
        delta_pyds.write(spark.range(3).coalesce(1), table=NAME, catalog=catalog, mode="append")
    with pytest.raises(OptionError, match=r"must be a name or a delta_pyds\.catalog"):
        delta_pyds.read(spark, table=NAME, catalog=7)  # type: ignore[arg-type]


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
        with pytest.raises(delta_pyds.DeltaError, match="only its catalog may do that"):
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


@pytest.fixture(params=["prod"])
def prod(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A table as SQL calls it. The processes of Spark remember where a catalog of that name is."""
    settings = Path(os.environ["DELTA_PYDS_CATALOGS"])
    settings.write_text(json.dumps({request.param: {"url": f"sqlite://{tmp_path}/catalog.db"}}))
    yield f"{request.param}.{NAME}"
    settings.unlink()
    forget_catalogs()


def rows_of(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_sql_by_a_catalogs_name(spark: SparkSession, prod: str) -> None:
    def sql(text: str, args: dict[str, object] | None = None) -> DataFrame:
        return delta_pyds.sql(spark, text.format(t=prod, u="prod.main.db.`other`"), args)

    sql("CREATE TABLE {t} (id BIGINT NOT NULL, s STRING) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sql("CREATE TABLE {u} AS SELECT id + 1 AS id, upper(s) AS s FROM {t}")
    sql("MERGE INTO {t} USING {u} u ON orders.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    sql("UPDATE {t} SET s = 'x' WHERE {t}.id = :id", {"id": 1})
    sql("DELETE FROM {t} WHERE id IN (SELECT max(id) FROM {u})")
    expected = [(1, "x"), (2, "A"), (3, "B")]
    assert rows_of(sql("SELECT * FROM {t}")) == expected
    assert rows_of(sql("SELECT orders.id, s FROM {t} VERSION AS OF 1")) == [(1, "a"), (2, "b"), (3, "c")]
    assert rows_of(sql("WITH c AS (SELECT * FROM {t}) SELECT a.id, b.s FROM c a JOIN {u} b USING (id)")) == [
        (2, "A"),
        (3, "B"),
    ]
    changes = sql("SELECT id, _change_type FROM table_changes('{t}', 3, 3)")
    assert rows_of(changes) == [(1, "update_postimage"), (1, "update_preimage")]
    counted = sql("SELECT count(*) AS n FROM {t}")
    assert rows_of(counted) == [(3,)] and "LocalRelation" in counted._jdf.queryExecution().toString()
    assert "parquet" in sql("EXPLAIN SELECT id FROM {t}").collect()[0][0].lower()
    sql("INSERT INTO {u} SELECT id + 100, s FROM {t} WHERE id = 1")
    sql("INSERT OVERWRITE {u} TABLE {t}")
    assert rows_of(sql("SELECT * FROM {u}")) == expected
    assert rows_of(sql("SELECT * FROM {u}@v1")) == [(2, "A"), (3, "B"), (4, "C"), (101, "x")]
    sql("CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT * FROM {u}")
    assert rows_of(spark.table("seen")) == expected
    sql("CREATE TABLE like_it LIKE {t}")
    assert not [row for row in rows_of(sql("SHOW TBLPROPERTIES like_it")) if str(row[0]).startswith("io.")]
    sql("DROP TABLE like_it")
    sql("ALTER TABLE {t} ADD COLUMNS (note STRING)")
    sql("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')")
    sql("COMMENT ON TABLE {t} IS 'what was ordered'")
    assert rows_of(sql("SHOW COLUMNS IN {t}")) == [("id",), ("note",), ("s",)]
    assert rows_of(sql("SHOW TBLPROPERTIES {t} ('a')")) == [("a", "b")]
    described = dict(row[:2] for row in rows_of(sql("DESCRIBE EXTENDED {t}")))
    assert (described["Catalog"], described["Database"], described["Table"]) == ("prod", "main.db", "orders")
    assert [row.operation for row in sql("DESCRIBE HISTORY {t} LIMIT 1").collect()] == ["SET TBLPROPERTIES"]
    assert sql("DESCRIBE DETAIL {t}").collect()[0].description == "what was ordered"
    sql("RESTORE TABLE {t} TO VERSION AS OF 1")
    sql("OPTIMIZE {t}")
    assert sql("VACUUM {t}").count() == 1
    assert rows_of(sql("SELECT id FROM {t}")) == [(1,), (2,), (3,)]
    assert delta_pyds.verify(table=NAME, catalog="prod").ok
    sql("CREATE OR REPLACE TABLE {u} AS SELECT 7 AS seven")
    assert rows_of(sql("SELECT * FROM {u}")) == [(7,)]
    for text, code in (
        ("DROP TABLE {t}", "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"),
        ("ALTER TABLE {t} RENAME TO prod.main.db.o", "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"),
        ("CACHE TABLE {t}", "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"),
        ("ALTER TABLE {t} SET LOCATION '/data'", "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"),
        ("CREATE TABLE delta.`/data/copy` SHALLOW CLONE {t}", "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"),
        ("CREATE TABLE {t} (id INT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE prod.main.db.p (id INT) USING parquet", "DELTA_INVALID_PROVIDER"),
        ("CREATE TABLE prod.main.db.p (id INT) LOCATION '/data'", "DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH"),
        ("CREATE TABLE prod.main.db.p LOCATION '/d' AS SELECT 1", "DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH"),
        ("REPLACE TABLE prod.main.db.p AS SELECT 1 AS one", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM prod.main.db.p", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DELETE FROM prod.main.db.p", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELECT * FROM prod.main.`a.b`", "INVALID_SCHEMA_OR_RELATION_NAME"),
        ("CREATE VIEW v AS SELECT * FROM {t}", "DELTA_OPERATION_NOT_ALLOWED"),
    ):
        with pytest.raises(delta_pyds.DeltaError) as error:
            sql(text)
        assert error.value.code == code, text
    assert rows_of(sql("SELECT id FROM {t}")) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("prod", ["shop"], indirect=True)
def test_after_install_spark_takes_it_and_its_own_catalogs_go_first(spark: SparkSession, prod: str) -> None:
    known = Path(os.environ["DELTA_PYDS_CATALOGS"]).read_text()
    delta_pyds.install(spark)
    try:
        spark.sql(f"CREATE TABLE {prod} AS SELECT id FROM range(3)")
        spark.sql(f"DELETE FROM {prod} WHERE id = 0")
        assert rows_of(spark.sql(f"SELECT o.id FROM {prod} o JOIN {{more}} USING (id)", more=spark.range(2))) == [(1,)]
        # of two parts the first is a schema of Spark's
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("SELECT * FROM shop.orders")
        # a file that cannot be read is in the way of nothing else
        Path(os.environ["DELTA_PYDS_CATALOGS"]).write_text("{")
        assert spark.sql("SELECT s.a.b FROM (SELECT named_struct('a', named_struct('b', 1)) AS s)").first()[0] == 1
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("SELECT * FROM spark_catalog.default.nothing")
        with pytest.raises(OptionError, match="file of catalogs"):
            spark.sql(f"DELETE FROM {prod}")
        with pytest.raises(OptionError, match="file of catalogs"):
            spark.sql(f"SELECT * FROM {prod}")
        Path(os.environ["DELTA_PYDS_CATALOGS"]).write_text(known)
        spark.conf.set("spark.sql.catalog.shop", "no.such.Catalog")
        with pytest.raises(Exception, match=r"no\.such\.Catalog"):
            spark.sql(f"SELECT * FROM {prod}").collect()
    finally:
        spark.conf.unset("spark.sql.catalog.shop")
        delta_pyds.uninstall()
