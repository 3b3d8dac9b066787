"""Names of Spark's catalog in ``delta_pyds.sql``: read as by path, and only where the table is meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, PySparkException

import delta_pyds
from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.storage.local import LocalStorage
from tests.support.calls import count_calls_to_the_jvm
from tests.support.documented_queries import make, wrong_answers
from tests.support.frames import physical, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.one_test_in(4)

SCHEMA = "deltapy_reads"
NATIVE, SOURCE = "FileScan parquet", "BatchScan deltapy"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """``t`` of three files by ``p`` with a deleted row, ``T`` of another schema, and ``u``."""
    place = tmp_path_factory.mktemp("reads")
    for schema in (SCHEMA, f"{SCHEMA}_2"):
        spark.sql(f"CREATE SCHEMA {schema}")
    spark.sql(f"USE {SCHEMA}")
    for text in (
        f"CREATE TABLE t (id BIGINT, p INT) USING deltapy PARTITIONED BY (p) LOCATION '{place}/t'",
        "ALTER TABLE t SET TBLPROPERTIES (delta.enableDeletionVectors = true)",
        "INSERT INTO t SELECT id, id % 3 FROM range(9)",
        "DELETE FROM t WHERE id = 4",
        f"CREATE TABLE {SCHEMA}_2.T USING deltapy LOCATION '{place}/other' AS SELECT id + 100 AS id FROM range(2)",
        f"CREATE TABLE u USING deltapy LOCATION '{place}/u' AS SELECT id, id AS t FROM range(2, 12)",
    ):
        delta_pyds.sql(spark, text)
    yield place
    spark.sql("USE default")
    for schema in (SCHEMA, f"{SCHEMA}_2"):
        spark.sql(f"DROP SCHEMA {schema} CASCADE")


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("text", "native"),
    [
        ("SELECT * FROM t WHERE p = 1 AND id > 2", 1),
        ("SELECT t.id, x.id FROM t JOIN `U` AS x ON t.id = x.t WHERE t.p IN (SELECT min(p) FROM `T`)", 3),
        (f"SELECT max(id) FROM {SCHEMA}_2.t UNION ALL SELECT max(t.id) FROM spark_catalog.{SCHEMA}.T", 2),
        ("WITH c AS (SELECT id FROM t) SELECT c.id, (SELECT count(*) FROM u WHERE u.id > c.id) FROM c", 2),
        ("SELECT /*+ BROADCAST(u) */ t.* FROM t LEFT ANTI JOIN u USING (id)", 2),
        (
            "SELECT p, k FROM t LATERAL VIEW explode(array(1, 2)) x AS k |> WHERE p = 0 |> AGGREGATE sum(k) GROUP BY p",
            1,
        ),
        ("SELECT count(*) FROM IDENTIFIER('t') WHERE id < :most", 1),
        ("TABLE u", 1),
        # the table is not what is meant, or not certainly
        ("WITH t AS (SELECT 77 AS id) SELECT * FROM t", 0),
        ("WITH u AS (SELECT 78 AS id), t (SELECT * FROM u) SELECT T.id FROM T", 0),
        (f"SELECT {SCHEMA}.t.id FROM t WHERE spark_catalog.{SCHEMA}.t.p = 2", 0),
        ("SELECT count(*) > 0 FROM t TABLESAMPLE (100 PERCENT)", 0),
        ("SELECT t.id FROM t JOIN u CROSS JOIN u AS v ON t.id = u.id AND u.id = v.id", 3),
    ],
)
def test_rows_are_those_of_spark_and_are_read_natively(spark: SparkSession, text: str, native: int) -> None:
    args = {"most": 5} if ":most" in text else None
    found = delta_pyds.sql(spark, text, args)

    assert rows(found) == rows(spark.sql(text, args)) != []
    assert found.columns == spark.sql(text, args).columns
    assert physical(found).count(NATIVE) >= native
    assert (SOURCE in plan(found)) == (native == 0 and "SELECT 7" not in text)


@pytest.mark.usefixtures("tables")
def test_the_condition_of_the_statement_decides_which_files_are_read(spark: SparkSession) -> None:
    found = delta_pyds.sql(spark, "SELECT id FROM t WHERE p = 1")
    assert rows(found) == [(1,), (7,)]
    assert "PartitionFilters: [isnotnull(p" in physical(found)


def test_views_have_names_and_see_rows_that_come(spark: SparkSession, tables: Path) -> None:
    name = f"{SCHEMA}.moving"
    delta_pyds.sql(spark, f"CREATE TABLE {name} USING deltapy LOCATION '{tables}/moving' AS SELECT 1L AS id")
    for view in ("VIEW kept", "TEMPORARY VIEW fleeting"):
        delta_pyds.sql(spark, f"CREATE {view} AS SELECT * FROM moving")
    delta_pyds.sql(spark, "INSERT INTO moving SELECT id + 1 FROM moving")
    assert rows(delta_pyds.sql(spark, "SELECT * FROM kept")) == rows(spark.table("fleeting")) == [(1,), (2,)]
    # a temporary view hides the table, and a cached one is another name
    spark.sql("CREATE TEMPORARY VIEW moving AS SELECT 5L AS id")
    try:
        assert rows(delta_pyds.sql(spark, "SELECT * FROM moving")) == [(5,)]
        assert rows(delta_pyds.sql(spark, f"SELECT * FROM {name}")) == [(1,), (2,)]
    finally:
        spark.catalog.dropTempView("moving")
        spark.catalog.dropTempView("fleeting")
    spark.sql(f"USE {SCHEMA}_2")
    try:
        assert rows(delta_pyds.sql(spark, "SELECT * FROM t")) == [(100,), (101,)]
        with pytest.raises(AnalysisException, match="moving"):
            delta_pyds.sql(spark, "SELECT * FROM moving")
    finally:
        spark.sql(f"USE {SCHEMA}")
    # a view of a user's over the name is what it says
    spark.sql("CREATE VIEW small AS SELECT id FROM t WHERE id < 2")
    assert rows(delta_pyds.sql(spark, "SELECT * FROM small")) == [(0,), (1,)]


def test_commands_take_names_for_their_rows(spark: SparkSession, tables: Path) -> None:
    def sql(text: str) -> list[tuple[Any, ...]]:
        return rows(delta_pyds.sql(spark, text.replace("<T>", f"delta.`{tables}/copy`")))

    sql("CREATE TABLE <T> AS SELECT id, p FROM t WHERE p < 2")
    sql("INSERT INTO <T> (p, id) SELECT t, u.id FROM u WHERE id > 8")
    sql("MERGE INTO <T> c USING t ON c.id = t.id WHEN NOT MATCHED AND t.p = 2 THEN INSERT *")
    sql(f"MERGE INTO <T> c USING {SCHEMA}.t ON c.id = {SCHEMA}.t.id AND false WHEN MATCHED THEN DELETE")
    sql("DELETE FROM <T> WHERE id IN (SELECT t.id FROM t WHERE t.p = 0)")
    sql("UPDATE <T> SET p = (SELECT max(u.t) FROM u) WHERE EXISTS (SELECT 1 FROM u WHERE u.id = 11) AND id = 1")
    assert sql("SELECT * FROM <T>") == [(1, 11), (10, 10), (11, 11), (2, 2), (5, 2), (7, 1), (8, 2), (9, 9)]
    [(explained,)] = sql("EXPLAIN SELECT * FROM u WHERE id = 3")
    assert NATIVE in explained
    with pytest.raises(AnalysisException, match="nothing") as wrong:
        sql("SELECT nothing FROM t")
    assert "table_0" not in str(wrong.value)


def test_rows_that_are_kept_answer_until_the_table_changes(spark: SparkSession, tables: Path) -> None:
    kept, path = "InMemoryTableScan", f"delta.`{tables}/kept`"
    delta_pyds.sql(spark, f"CREATE TABLE kept_table USING deltapy LOCATION '{tables}/kept' AS SELECT 1L AS id")
    delta_pyds.sql(spark, "CACHE LAZY TABLE kept_table OPTIONS ('storageLevel' 'MEMORY_ONLY')")
    try:
        first, second = (delta_pyds.sql(spark, f"SELECT id FROM {name} WHERE id > 0") for name in ("kept_table", path))
        assert rows(first) == rows(second) == [(1,)]
        assert kept in plan(first)
        assert kept in plan(second)
        assert rows(first.join(second, first.id == second.id).select(second.id)) == [(1,)]
        delta_pyds.write(spark.range(2, 4), tables / "kept", mode="append")
        delta_pyds.sql(spark, "DELETE FROM kept_table WHERE id = 3")
        for _ in range(2):
            again = delta_pyds.sql(spark, "SELECT k.id FROM kept_table k JOIN t USING (id)")
            assert rows(again) == [(1,), (2,)]
            assert kept in physical(again)
        assert rows(delta_pyds.sql(spark, "SELECT * FROM kept_table VERSION AS OF 0")) == [(1,)]
        old = delta_pyds.read(spark, tables / "kept", version=0)
        assert kept not in physical(old)
    finally:
        delta_pyds.sql(spark, "UNCACHE TABLE IF EXISTS kept_table")
    assert kept not in plan(delta_pyds.sql(spark, "SELECT * FROM kept_table"))
    delta_pyds.sql(spark, f"CACHE TABLE {path}")
    delta_pyds.sql(spark, "CLEAR CACHE")
    assert kept not in plan(delta_pyds.sql(spark, "SELECT * FROM kept_table"))
    with pytest.raises(UserError, match="storage level 'EVERYWHERE'"):
        delta_pyds.sql(spark, "CACHE TABLE kept_table OPTIONS (storageLevel = 'EVERYWHERE')")
    delta_pyds.sql(spark, "CACHE TABLE kept_table")
    assert kept in physical(delta_pyds.sql(spark, f"SELECT * FROM {path}"))
    delta_pyds.sql(spark, "DROP TABLE kept_table")
    assert kept not in physical(delta_pyds.sql(spark, f"SELECT * FROM {path}"))


def test_the_catalog_of_a_session_has_tables_for_names(
    spark: SparkSession, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is the same on Spark Connect is in ``connect_names``."""
    opened: list[str] = []
    listed = LocalStorage.list_from

    def looking(self: LocalStorage, directory: str, start_name: str) -> Any:
        opened.append(directory)
        return listed(self, directory, start_name)

    monkeypatch.setattr(LocalStorage, "list_from", looking)
    delta_pyds.install(spark)
    try:
        here, by_path = spark.catalog, f"deltapy.`{tables}/u`"
        here.cacheTable("u", StorageLevel.MEMORY_ONLY)
        assert here.isCached(f"{SCHEMA}.u")
        assert here.isCached(by_path)
        assert "InMemoryTableScan" in physical(spark.sql("SELECT id FROM u"))
        here.uncacheTable(by_path)
        assert not here.isCached("u")
        spark.sql("CACHE LAZY TABLE u")
        assert here.isCached("u")
        here.clearCache()
        assert not here.isCached("u")
        opened.clear()
        found = {table.name: table.tableType for table in here.listTables() if not table.isTemporary}
        assert {"t", "u"} <= {row.tableName for row in spark.sql("SHOW TABLES").collect()}
        assert spark.sql("SHOW TABLE EXTENDED LIKE '*'").count() >= 2
        assert opened == []
        assert found["t"] == found["u"] == here.getTable("u").tableType == "EXTERNAL"
        assert opened != []
        assert not [name for name in found if name.startswith("_")]
        assert here.tableExists(by_path)
        assert not here.tableExists(f"deltapy.`{tables}/nothing`")
        here.createTable("made", source="deltapy", schema=spark.range(1).schema, description="words")
        assert (here.getTable("made").tableType, here.getTable("made").description) == ("MANAGED", "words")
        if hasattr(here, "dropView"):  # and SHOW TABLES has AS JSON
            plain = json.loads(spark.sql(f"SHOW TABLES IN {SCHEMA} AS JSON").collect()[0][0])["tables"]
            assert {"t", "u", "made"} <= {one["name"] for one in plain}
            assert not [one for one in plain if one["name"].startswith("_")]
            (of_u,) = json.loads(spark.sql("SHOW TABLE EXTENDED LIKE 'u' AS JSON").collect()[0][0])["tables"]
            assert (of_u["name"], of_u["type"], of_u["isTemporary"]) == ("u", "EXTERNAL", False)
            with pytest.raises(UserError, match="is a Delta table"):
                here.dropView("made")
            here.dropTable("made")
            assert not here.tableExists("made")
    finally:
        delta_pyds.uninstall()
    assert "u" in {table.name for table in spark.catalog.listTables() if table.tableType == "VIEW"}


@pytest.mark.usefixtures("tables")
def test_the_log_answers_by_name_as_by_path(spark: SparkSession) -> None:
    text = "SELECT count(*) AS n, min(p), max(p) FROM t"
    counted = delta_pyds.sql(spark, text)
    assert physical(counted).startswith("LocalTableScan")
    assert rows(counted) == rows(spark.sql(text)) == [(8, 0, 2)]
    assert rows(delta_pyds.sql(spark, f"SELECT count(*) FROM {SCHEMA}_2.t VERSION AS OF 0")) == [(2,)]
    assert rows(delta_pyds.sql(spark, "SELECT count(*) FROM t TABLESAMPLE (100 PERCENT)")) == [(8,)]
    assert not physical(delta_pyds.sql(spark, "SELECT min(id) FROM t")).startswith("LocalTableScan")


@pytest.mark.usefixtures("tables")
def test_after_install_spark_sql_reads_names_natively(spark: SparkSession) -> None:
    delta_pyds.install(spark)
    try:
        for text in (
            "SELECT * FROM t WHERE p = 1",
            "WITH c AS (SELECT * FROM t) SELECT c.id, u.t FROM c JOIN u USING (id)",
        ):
            found = spark.sql(text)
            assert SOURCE not in plan(found)
            assert NATIVE in plan(found)
            assert rows(found) == rows(delta_pyds.sql(spark, text)) != []
        streamed = spark.sql("SELECT t.id, u.t FROM STREAM t JOIN u USING (id)")
        assert streamed.isStreaming
        assert streamed.columns == ["id", "t"]
        assert spark.sql("SELECT count(*) FROM STREAM (t)").isStreaming
        assert NATIVE in spark.sql("EXPLAIN SELECT * FROM t").first()[0]
        assert rows(spark.sql("SELECT count(*) FROM t")) == [(8,)]
        assert physical(spark.sql("SELECT count(*) FROM t")).startswith("LocalTableScan")
        spark.sql("CREATE TABLE plain USING parquet AS SELECT id FROM t WHERE p = 0")
        assert rows(spark.sql("SELECT * FROM plain")) == [(0,), (3,), (6,)]
        assert rows(spark.sql("SELECT * FROM {x} WHERE id IN (SELECT id FROM t)", x=spark.range(1, 3))) == [(1,), (2,)]
    finally:
        delta_pyds.uninstall()


@pytest.mark.usefixtures("tables")
def test_after_install_spark_sql_asks_the_catalog_for_names_without_a_query(spark: SparkSession) -> None:
    def executions() -> int:
        """The number of the newest execution: Spark forgets old ones."""
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return int(spark._jsparkSession.sharedState().statusStore().executionsList().last().executionId())

    delta_pyds.install(spark)
    try:
        # PySpark makes a temporary view of each frame, which Spark counts as an execution
        for text, views in (("SELECT * FROM t", 1), ("SELECT t.id FROM t JOIN u USING (id) WHERE t.p = 1", 2)):
            before = executions()
            found = spark.sql(text)
            assert executions() == before + views
            assert NATIVE in plan(found)
    finally:
        delta_pyds.uninstall()


@pytest.mark.usefixtures("tables")
def test_after_install_a_name_that_was_read_may_get_another_meaning(spark: SparkSession) -> None:
    delta_pyds.install(spark)
    try:
        assert spark.sql("SELECT id FROM t").count() == 8
        spark.range(100, 101).createOrReplaceTempView("t")
        assert rows(spark.sql("SELECT id FROM t")) == [(100,)]
        assert spark.sql(f"SELECT id FROM {SCHEMA}.t").count() == 8
        spark.catalog.dropTempView("t")
        assert rows(spark.sql("WITH t AS (SELECT 7 AS id) SELECT id FROM t")) == [(7,)]
        assert rows(spark.sql("SELECT 1 AS t")) == [(1,)]
        assert spark.sql("SELECT id FROM t").count() == 8
        with pytest.raises(AnalysisException, match="nope"):
            spark.sql("SELECT nope FROM t")
        spark.sql(f"USE {SCHEMA}_2")
        assert rows(spark.sql("SELECT id FROM t")) == [(100,), (101,)]
    finally:
        spark.sql(f"USE {SCHEMA}")
        delta_pyds.uninstall()


def test_a_name_is_described_as_json(spark: SparkSession, tables: Path) -> None:
    delta_pyds.sql(
        spark, "CREATE TABLE told (id BIGINT NOT NULL COMMENT 'it', s STRUCT<a: INT>) USING deltapy COMMENT 'x'"
    )
    (row,) = delta_pyds.sql(spark, "DESCRIBE FORMATTED told AS JSON").collect()
    found = json.loads(row.json_metadata)
    assert [(column["name"], column["nullable"]) for column in found["columns"]] == [("id", False), ("s", True)]
    assert found["columns"][0]["comment"] == "it"
    assert (found["type"], found["provider"], found["comment"]) == ("MANAGED", "delta", "x")
    assert found["location"].endswith("/told")
    assert not [key for key in found if key.startswith("view_")]
    assert found["table_properties"]["delta.minReaderVersion"] == "1"
    with pytest.raises(UnsupportedOperationError, match="AS JSON does not support") as by_path:
        delta_pyds.sql(spark, f"DESCRIBE EXTENDED delta.`{tables}/u` AS JSON")
    assert by_path.value.code == "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
    with pytest.raises(PySparkException, match="EXTENDED"):
        delta_pyds.sql(spark, "DESCRIBE told AS JSON")
    delta_pyds.drop_table(spark, "told", data=True)


def test_files_of_rows_are_told_where_spark_reads_them(spark: SparkSession, tables: Path) -> None:
    """That they are the reference's is held in ``tests/interop/test_sql.py``."""
    found = delta_pyds.sql(spark, "SELECT *, _metadata FROM t WHERE _metadata.file_size > 0 AND id > 3")
    assert found.columns == ["id", "p", "_metadata"]
    assert sorted(row.id for row in found.collect()) == [5, 6, 7, 8]
    for row in found.collect():
        path = Path(row._metadata.file_path.removeprefix("file:"))
        assert (path.name, path.stat().st_size) == (row._metadata.file_name, row._metadata.file_size)
        assert path.parent.name == f"p={row.p}"
        [there] = [r for n, r in enumerate(spark.read.parquet(str(path)).collect()) if n == row._metadata.row_index]
        assert there.id == row.id
    by_path = f"delta.`{tables}/u`"
    text = "SELECT count(DISTINCT x._metadata.file_name) FROM {} x JOIN t USING (id)"
    assert rows(delta_pyds.sql(spark, text.format("u"))) == rows(delta_pyds.sql(spark, text.format(by_path))) != []
    delta_pyds.sql(spark, f"CREATE TABLE delta.`{tables}/told` AS SELECT *, _metadata.row_index FROM t WHERE id < 3")
    assert delta_pyds.read(spark, tables / "told").columns == ["id", "p", "row_index"]
    with pytest.raises(UnsupportedOperationError, match="Name the columns instead"):
        delta_pyds.sql(spark, "SELECT * FROM (SELECT id, _metadata.row_index FROM t)")
    with pytest.raises(UserError, match="does not track rows") as untracked:
        delta_pyds.sql(spark, f"SELECT _metadata.row_id FROM {by_path}")
    assert untracked.value.code == "FIELD_NOT_FOUND"
    tracked = f"delta.`{tables}/tracked`"
    delta_pyds.sql(
        spark, f"CREATE TABLE {tracked} TBLPROPERTIES (delta.enableRowTracking = true) AS SELECT id FROM range(3)"
    )
    delta_pyds.sql(spark, f"UPDATE {tracked} SET id = 7 WHERE id = 1")
    text = f"SELECT *, _metadata.row_id, _metadata.row_commit_version AS v FROM {tracked}"
    found = delta_pyds.sql(spark, text)
    ids = {row.id: row for row in found.collect()}
    assert found.columns == ["id", "row_id", "v"] and sorted(row.row_id for row in ids.values()) == [0, 1, 2]
    assert [ids[n].v for n in (0, 7, 2)] == [0, 1, 0]
    # a column of the user's is one like any other
    own = f"delta.`{tables}/own`"
    delta_pyds.sql(spark, f"CREATE TABLE {own} AS SELECT 1L AS id, 'mine' AS _metadata")
    for text in (f"SELECT * FROM {own} WHERE _metadata = 'mine'", f"SELECT o.* FROM {own} o WHERE o.`_metadata` > ''"):
        assert rows(delta_pyds.sql(spark, text)) == [(1, "mine")]
    delta_pyds.sql(spark, f"INSERT INTO {own} SELECT id + 1, _metadata FROM (SELECT * FROM {own})")
    assert rows(delta_pyds.sql(spark, f"SELECT id, _metadata FROM {own}")) == [(1, "mine"), (2, "mine")]
    with pytest.raises(UnsupportedOperationError, match="one of the tables has its own column _metadata"):
        delta_pyds.sql(spark, f"SELECT o.*, t._metadata.file_name FROM {own} o JOIN t USING (id)")
    sources = "spark.sql.sources.useV1SourceList"
    before = spark.conf.get(sources)
    try:
        for without in ("csv", ""):
            spark.conf.set(sources, without)
            with pytest.raises(UnsupportedOperationError, match=f"Spark's own Parquet reader.*{sources}"):
                delta_pyds.sql(spark, f"SELECT _metadata.file_name FROM {by_path}")
    finally:
        spark.conf.set(sources, before)


def test_documented_queries_have_these_rows_by_path_and_by_name(spark: SparkSession, tables: Path) -> None:
    def sql(text: str) -> DataFrame:
        return delta_pyds.sql(spark, text)

    path = f"{tables}/documented"
    make(sql, "documented", path)
    assert wrong_answers(sql, "documented", path, is_name=True) == []
    assert wrong_answers(sql, f"delta.`{path}`", path, is_name=False) == []
    # views keep the name, and see what comes; a temporary one over a path stays at its version
    sql("CREATE OR REPLACE VIEW mapped AS SELECT concat(userId, eventType) AS x FROM documented")
    sql(f"CREATE OR REPLACE TEMPORARY VIEW old AS SELECT * FROM delta.`{path}`")
    sql("INSERT INTO documented SELECT * FROM documented VERSION AS OF 1 WHERE userId = 111")
    sql(
        "MERGE INTO documented target USING documented TIMESTAMP AS OF date_sub(current_date(), 5) source "
        "ON source.userId = target.userId WHEN MATCHED THEN UPDATE SET *"
    )
    assert rows(sql("SELECT x FROM mapped")) == [("111gone",), ("1click",), ("2view",), ("3buy",), ("4view",)]
    assert sql("SELECT * FROM old").count() == 4
    spark.catalog.dropTempView("old")


@pytest.mark.usefixtures("tables")
def test_what_is_not_ours_costs_three_questions_to_the_jvm_at_most(spark: SparkSession) -> None:
    spark.range(1).createOrReplaceTempView("passing")
    texts = ("DESCRIBE passing", "SELECT * FROM passing", "SELECT 1")
    # by names that are looked up again: the methods are replaced
    calls = [lambda: spark.table("passing"), *(partial(_sql, spark, text) for text in texts)]
    before = [count_calls_to_the_jvm(call) for call in calls]
    delta_pyds.install(spark)
    try:
        [count_calls_to_the_jvm(call) for call in calls]  # the first time looks at what the session is
        after = [count_calls_to_the_jvm(call) for call in calls]
    finally:
        delta_pyds.uninstall()
        spark.catalog.dropTempView("passing")
    assert [b - a for a, b in zip(before, after, strict=True)] == [3, 3, 2, 0]


def _sql(spark: SparkSession, text: str) -> DataFrame:
    return spark.sql(text)
