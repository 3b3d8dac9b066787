"""Tables by name in Spark's session catalog: given, read, followed, dropped; no other table is touched."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import (
    ConcurrentWriteError,
    ConflictError,
    DeltaError,
    OptionError,
    TableNotFoundError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.spark.catalog_names.locations import location_of, managed_location, settle, take_if_empty
from delta_pyds.spark.catalog_names.lookup import Foreign, find, look_up
from delta_pyds.spark.catalog_names.naming import change_name, update_entry
from delta_pyds.spark.catalog_names.texts import column_texts, new_entry, next_entry
from delta_pyds.spark.planning.types import to_spark
from tests.support.table_writes import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.one_test_in(4)

SCHEMA = "deltapy_names"


@pytest.fixture(autouse=True)
def schema(spark: SparkSession) -> Iterator[str]:
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    spark.sql(f"USE {SCHEMA}")
    yield SCHEMA
    spark.sql("USE default")
    spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


def entries(spark: SparkSession) -> list[str]:
    return sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {SCHEMA}").collect() if not row.isTemporary)


def make(spark: SparkSession, path: Path, rows: int = 3) -> str:
    delta_pyds.write(spark.range(rows), str(path))
    return str(path)


def test_a_name_is_read_by_plain_sql_at_each_query_and_goes_again(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "it's a \\ table")

    table = delta_pyds.create_table(spark, "t", path)

    assert (table.name, table.location) == (f"spark_catalog.{SCHEMA}.t", path)
    assert entries(spark) == [table.holder, "t"]
    assert spark.sql("SELECT count(*) FROM t WHERE id > 0").first()[0] == 2
    delta_pyds.write(spark.range(10, 12), path, mode="append")
    assert spark.sql(f"SELECT max(id) FROM spark_catalog.{SCHEMA}.t").first()[0] == 11
    with pytest.raises(UserError, match="is taken by the Delta table at") as refused:
        delta_pyds.create_table(spark, f"{SCHEMA}.T", path)
    assert refused.value.code == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert delta_pyds.create_table(spark, "t", path, if_not_exists=True) == table

    delta_pyds.drop_table(spark, "t")
    assert entries(spark) == []
    assert delta_pyds.load_snapshot(path).version == 1
    delta_pyds.create_table(spark, "t", path)
    delta_pyds.drop_table(spark, "t", data=True)
    assert entries(spark) == []
    assert not Path(path).exists()
    with pytest.raises(TableNotFoundError, match="'t' is not a Delta table"):
        delta_pyds.drop_table(spark, "t")
    with pytest.raises(TableNotFoundError):
        delta_pyds.create_table(spark, "t", path)
    assert entries(spark) == []


def test_what_is_not_ours_is_neither_taken_nor_dropped(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t")
    ours = delta_pyds.create_table(spark, "ours", path)
    spark.sql("CREATE TABLE others (a INT) USING parquet")
    spark.sql("CREATE TABLE plain_entry (id BIGINT) USING deltapy")
    spark.sql("CREATE VIEW on_top AS SELECT * FROM ours")
    spark.sql(f"CREATE VIEW by_hand AS {ours.select}")
    spark.sql(f"CREATE VIEW altered TBLPROPERTIES ('deltapy.table' = 'external') AS {ours.select} LIMIT 1")
    spark.sql("CREATE TEMPORARY VIEW passing AS SELECT 1 AS a")
    before = entries(spark)

    for name in ("others", "plain_entry", "on_top", "by_hand", "altered", ours.holder):
        with pytest.raises(UserError, match="is taken by"):
            delta_pyds.create_table(spark, name, path)
    for name in ("others", "plain_entry", "on_top", "by_hand", "altered", "passing", ours.holder):
        with pytest.raises(UnsupportedOperationError, match=r"delta_pyds\.create_table"):
            delta_pyds.drop_table(spark, name, data=True)
    assert entries(spark) == before
    assert spark.table("on_top").count() == 3

    # a temporary view goes first where no schema is named
    spark.sql("CREATE TEMPORARY VIEW ours AS SELECT 1 AS a")
    assert isinstance(look_up(spark, "ours"), Foreign)
    assert find(spark, f"{SCHEMA}.ours") == ours
    delta_pyds.create_table(spark, "passing", path)
    with pytest.raises(UnsupportedOperationError, match="temporary view"):
        delta_pyds.drop_table(spark, "passing")
    delta_pyds.drop_table(spark, f"{SCHEMA}.passing")
    spark.catalog.dropTempView("passing")
    spark.catalog.dropTempView("ours")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("`we``ird`", "ASCII letters"),
        ("a.b.c.d", "ASCII letters"),
        ("`ü`", "ASCII letters"),
        ("elsewhere.db.t", "only in Spark's session catalog"),
    ],
)
def test_a_name_that_the_catalog_cannot_hold_is_refused(
    spark: SparkSession, tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(UnsupportedOperationError, match=message):
        delta_pyds.create_table(spark, name, make(spark, tmp_path / "t"))
    with pytest.raises(UnsupportedOperationError, match="both kinds of quotes"):
        delta_pyds.create_table(spark, "t", make(spark, tmp_path / "a'b\"c"))
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        delta_pyds.create_table(spark, "nowhere.t", str(tmp_path / "t"))
    assert entries(spark) == []


def test_the_holder_follows_and_is_mended(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t")
    table = delta_pyds.create_table(spark, "t", path)
    for feature in ("timestampNtz", "variantType"):
        DeltaTable.forPath(spark, path).setProperties({f"delta.feature.{feature}": "supported"})
    column = "s STRUCT<a: ARRAY<INT>, z: MAP<STRING, DECIMAL(9,2)>> COMMENT 'it''s'"
    delta_pyds.sql(
        spark,
        f"ALTER TABLE delta.`{path}` ADD COLUMNS ({column}, n TIMESTAMP_NTZ, v VARIANT, c VARCHAR(3), b BINARY)",
    )
    snapshot = delta_pyds.load_snapshot(path)

    followed = update_entry(spark, table, snapshot.schema)

    assert followed.holder != table.holder
    assert entries(spark) == [followed.holder, "t"]
    assert update_entry(spark, followed, snapshot.schema) == followed == find(spark, "t")
    names = ["id", "s", "n", "v", "c", "b"]
    assert spark.table("t").columns == names
    assert spark.table("t").schema["s"].dataType == delta_pyds.read(spark, path).schema["s"].dataType
    assert spark.table("t").schema["s"].metadata["comment"] == "it's"
    # a process that knows an old entry does not undo what another has done
    assert update_entry(spark, table, snapshot.schema) == followed
    assert entries(spark) == [followed.holder, "t"]

    # an entry that is gone is made again
    spark.sql(f"DROP TABLE {followed.quoted_entry}")
    mended = delta_pyds.create_table(spark, "t", path, if_not_exists=True)
    assert spark.table("t").columns == names
    assert entries(spark) == [mended.holder, "t"]

    # another name, the same table; a name that is taken stays its owner's
    delta_pyds.create_table(spark, "u", path)
    with pytest.raises(UserError, match="is taken by"):
        change_name(spark, mended, (SCHEMA, "u"))
    change_name(spark, mended, (SCHEMA, "w"))
    assert find(spark, "t") is None
    renamed = find(spark, "w")
    assert renamed is not None and renamed.holder == mended.holder
    assert spark.table("w").count() == 3
    delta_pyds.drop_table(spark, "w")
    assert spark.table("u").count() == 3


def test_of_many_who_want_a_name_one_gets_it(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    DeltaTable.create(spark).location(path).addColumn("id", "INT").addColumn("nothing", "VOID").execute()
    others = make(spark, tmp_path / "others")

    def take(number: int) -> str:
        try:
            return delta_pyds.create_table(spark, "t", path if number % 2 else others).location
        except UserError as error:
            return error.code

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(take, range(4)))

    table = find(spark, "t")
    assert table is not None
    assert sorted(outcomes) == sorted([*["TABLE_OR_VIEW_ALREADY_EXISTS"] * 3, table.location])
    assert entries(spark) == [table.holder, "t"]
    delta_pyds.drop_table(spark, "t")
    # a table that several make under a name at once is one: it has the rows of each who was not refused

    def append(number: int) -> int | None:
        try:
            delta_pyds.write(spark.range(number, number + 1), table="made", mode="append")
        except (UserError, ConflictError) as error:
            assert error.code in ("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "DELTA_PROTOCOL_CHANGED")
            return None
        return number

    with ThreadPoolExecutor(3) as pool:
        written = [number for number in pool.map(append, range(3)) if number is not None]
    assert sorted(row.id for row in spark.table("made").collect()) == written != []
    assert len(entries(spark)) == 2
    delta_pyds.drop_table(spark, "made", data=True)


def test_a_table_that_is_dropped_while_it_is_replaced_has_its_name_or_is_gone(spark: SparkSession) -> None:
    def sql(text: str) -> str | None:
        try:
            delta_pyds.sql(spark, text)
        except (DeltaError, PySparkException) as error:
            return str(error)
        return None

    make = "TABLE t USING deltapy AS SELECT 1L AS id"
    sql(f"CREATE {make}")
    location = location_of(spark, "t")
    sql("DROP TABLE t")
    by_path = f"CREATE OR REPLACE TABLE delta.`{location.path}` USING deltapy AS SELECT 2L AS id, 'x' AS s"
    sql(by_path)
    given = settle(spark, location)
    assert given.managed and spark.table("t").collect() == [(2, "x")]
    take_if_empty(spark, given)  # not while a table is there
    location = location_of(spark, "t")
    sql("DROP TABLE t")
    sql(by_path)
    next(Path(location.path).glob("*.parquet")).unlink()
    with pytest.raises(ConcurrentWriteError, match="was dropped while it was written"):
        settle(spark, location)
    assert entries(spark) == []
    shutil.rmtree(location.path)

    for _ in range(3):
        sql(f"CREATE {make}")
        with ThreadPoolExecutor(2) as pool:
            errors = list(pool.map(sql, [f"CREATE OR REPLACE {make}", "DROP TABLE t"]))
        named = find(spark, "t")
        log = Path(location.path, "_delta_log")
        left = sorted(log.glob("*.json")) if log.exists() else []
        if errors == [None, None]:
            assert (named is not None) == bool(left), (named, left)
        if named is not None:
            assert spark.table("t").collect() == [(1,)]
            delta_pyds.drop_table(spark, "t", data=True)
        assert entries(spark) == []
        shutil.rmtree(location.path, ignore_errors=True)


def test_what_dead_processes_left_goes_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t")
    table = delta_pyds.create_table(spark, "t", path)
    write_rows(tmp_path / "t", {"id": "long", "more": "long"}, [{"id": 4, "more": 5}], merge_schema=True)
    schema = delta_pyds.load_snapshot(path).schema
    # one that dies before the view is changed; who comes next makes the same entry
    columns = column_texts(to_spark(schema))
    spark.sql(f"CREATE TABLE {next_entry(table.holder, 't', columns)} ({columns}) USING deltapy")
    with ThreadPoolExecutor(3) as pool:
        followed = list(pool.map(lambda _: update_entry(spark, table, schema), range(3)))
    assert spark.table("t").columns == ["id", "more"]
    assert entries(spark) == [followed[0].holder, "t"]
    # an entry stays with the table that has another name now
    change_name(spark, followed[0], (SCHEMA, "renamed"))
    orphan = new_entry("t", columns)
    spark.sql(f"CREATE TABLE {orphan} ({columns}) USING deltapy")
    spark.sql("CREATE TABLE _deltapy_mine (id INT) USING deltapy")
    assert delta_pyds.remove_orphaned_holders(spark, SCHEMA, wait_seconds=0) == [orphan]
    assert delta_pyds.remove_orphaned_holders(spark) == []
    assert entries(spark) == sorted([followed[0].holder, "_deltapy_mine", "renamed"])
    assert spark.table("renamed").count() == 4
    with pytest.raises(OptionError, match="wait_seconds"):
        delta_pyds.remove_orphaned_holders(spark, wait_seconds="1 hour")


def test_a_column_may_look_like_a_variable(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would put the variable's value into the name."""
    columns = ["a ${spark.app.name}", "${env:HOME}", "s"]
    spark.conf.set("spark.sql.variable.substitute", "false")
    try:
        frame = spark.createDataFrame([(1, 2, (3,))], "a INT, b INT, s STRUCT<c: INT>").toDF(*columns)
        inner = frame.select(*(F.col(f"`{name}`") for name in columns[:2]), F.col("s").cast("struct<`${x}`: int>"))
        delta_pyds.write(inner, tmp_path / "t", properties={"delta.columnMapping.mode": "name"})
    finally:
        spark.conf.unset("spark.sql.variable.substitute")
    delta_pyds.create_table(spark, "t", tmp_path / "t")
    assert spark.sql("SELECT * FROM t").columns == columns
    assert spark.sql("SELECT * FROM t").collect() == [(1, 2, (3,))]
    assert spark.table("t").schema["s"].dataType.names == ["${x}"]
    assert entries(spark)[0].startswith("_deltapy_t_") and len(entries(spark)) == 2


def test_a_subquery_sees_the_table_by_its_whole_name(spark: SparkSession) -> None:
    """And its own column of the table's last name for what that is."""

    def sql(text: str) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in delta_pyds.sql(spark, text.replace("<", f"{SCHEMA}.")).collect())

    for name, rows in (("t", 4), ("u", 2)):
        sql(f"CREATE TABLE <{name} USING deltapy AS SELECT id, named_struct('id', -1L) AS t FROM range({rows})")
    sql("DELETE FROM <t WHERE EXISTS (SELECT 1 FROM <u WHERE u.id + 3 = <t.id)")
    assert sql("SELECT id FROM <t") == [(0,), (1,), (2,)]
    sql("UPDATE <t SET t = named_struct('id', 7L) WHERE id = (SELECT max(<t.id) FROM <t)")
    sql("MERGE INTO <t USING <u ON <t.id = <u.id AND <t.id IN (SELECT x.id FROM range(9) x) WHEN MATCHED THEN DELETE")
    assert sql("SELECT id, <t.t.id FROM <t") == [(2, 7)]
    for name in "tu":
        sql(f"DROP TABLE <{name}")


def test_columns_of_another_writer_are_in_statements(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(1), tmp_path / "t")
    delta_pyds.create_table(spark, f"{SCHEMA.upper()}.T", tmp_path / "t")
    write_rows(tmp_path / "t", {"id": "long", "added": "long"}, [{"id": 2, "added": 3}], merge_schema=True)
    assert delta_pyds.sql(spark, f"SELECT * FROM {SCHEMA}.t").columns == ["id", "added"]
    write_rows(tmp_path / "t", {"id": "long", "more": "long"}, [{"id": 4, "more": 5}], merge_schema=True)
    delta_pyds.sql(spark, f"CREATE TABLE delta.`{tmp_path / 'u'}` AS SELECT * FROM {SCHEMA}.t")
    assert delta_pyds.read(spark, tmp_path / "u").columns == ["id", "added", "more"]
    write_rows(tmp_path / "t", {"id": "long", "last": "long"}, [{"id": 6, "last": 7}], merge_schema=True)
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{tmp_path / 'u'}` u USING {SCHEMA}.t t ON t.id = u.id "
    delta_pyds.sql(spark, f"{merge} WHEN NOT MATCHED THEN INSERT *")
    assert delta_pyds.read(spark, tmp_path / "u").columns == ["id", "added", "more", "last"]
    # also in what Spark itself is asked first, and does not understand
    write_rows(tmp_path / "t", {"id": "long", "a": "long"}, [{"id": 8, "a": 9}], merge_schema=True)
    delta_pyds.sql(spark, f"CREATE VIEW {SCHEMA}.seen AS SELECT a FROM {SCHEMA}.t WHERE id = 8")
    write_rows(tmp_path / "t", {"id": "long", "b": "long"}, [{"id": 10, "b": 11}], merge_schema=True)
    delta_pyds.install(spark)
    try:
        assert spark.sql(f"SELECT b FROM {SCHEMA}.t WHERE id > {{low}}", low=9).collect() == [(11,)]
        write_rows(tmp_path / "t", {"id": "long", "c": "long"}, [{"id": 12, "c": 13}], merge_schema=True)
        spark.sql(f"CREATE OR REPLACE VIEW {SCHEMA}.seen AS SELECT a, c FROM {SCHEMA}.t WHERE id > 10")
        with pytest.raises(AnalysisException, match="nothing"):
            spark.sql(f"SELECT nothing FROM {SCHEMA}.t")
    finally:
        delta_pyds.uninstall()
    assert spark.table(f"{SCHEMA}.seen").collect() == [(None, 13)]


def test_rows_that_spark_keeps_are_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(2), tmp_path / "t")
    delta_pyds.create_table(spark, f"{SCHEMA}.t", tmp_path / "t")
    spark.sql(f"CACHE TABLE {SCHEMA}.t")
    try:
        assert spark.table(f"{SCHEMA}.t").count() == 2
        delta_pyds.sql(spark, f"INSERT INTO {SCHEMA}.t VALUES (7)")
        assert spark.table(f"{SCHEMA}.t").count() == 3
        write_rows(tmp_path / "t", {"id": "long"}, [{"id": 8}])
        delta_pyds.sql(spark, f"INSERT OVERWRITE {SCHEMA}.t SELECT id + 1 FROM {SCHEMA}.t")
        assert sorted(row.id for row in delta_pyds.read(spark, tmp_path / "t").collect()) == [1, 2, 8, 9]
        write_rows(tmp_path / "t", {"id": "long"}, [{"id": 20}])
        delta_pyds.sql(spark, f"REFRESH TABLE {SCHEMA}.t")
        assert spark.table(f"{SCHEMA}.t").count() == 5
    finally:
        spark.sql(f"UNCACHE TABLE IF EXISTS {SCHEMA}.t")


def test_a_name_is_not_taken_for_a_view_or_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(1), tmp_path / "t")
    delta_pyds.create_table(spark, f"{SCHEMA}.t", tmp_path / "t")
    for text in ("CREATE OR REPLACE VIEW {} AS SELECT 1 AS x", "ALTER VIEW {} AS SELECT 1 AS x"):
        with pytest.raises(UserError, match="is a Delta table"):
            delta_pyds.sql(spark, text.format(f"{SCHEMA}.t"))
    delta_pyds.install(spark)
    try:
        with pytest.raises(UserError, match="is a Delta table"):
            spark.sql(f"CREATE OR REPLACE VIEW {SCHEMA}.t AS SELECT 1 AS x")
        with pytest.raises(UserError, match="cannot be saved as parquet"):
            spark.range(1).write.format("parquet").mode("overwrite").saveAsTable(f"{SCHEMA}.t")
    finally:
        delta_pyds.uninstall()
    assert find(spark, f"{SCHEMA}.t") is not None
    place = Path(managed_location(spark, (SCHEMA, "taken")).removeprefix("file:"))
    place.mkdir(parents=True)
    (place / "notes.csv").write_text("x")
    with pytest.raises(UserError, match=r"notes\.csv"):
        delta_pyds.sql(spark, f"CREATE TABLE {SCHEMA}.taken USING deltapy AS SELECT 1 AS x")
    assert [file.name for file in place.iterdir()] == ["notes.csv"]


def test_a_process_that_died_and_a_table_that_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t")
    table = delta_pyds.create_table(spark, "t", path)
    # it died between the two entries: the name is free
    spark.sql(f"DROP VIEW {table.quoted}")
    assert entries(spark) == [table.holder]
    again = delta_pyds.create_table(spark, "t", path)
    assert spark.table("t").count() == 3

    # the table has gone, and another stays what it is
    other = make(spark, tmp_path / "other")
    with pytest.raises(UserError, match="is taken by"):
        delta_pyds.create_table(spark, "t", other, if_not_exists=True)
    (tmp_path / "t" / "_delta_log").rename(tmp_path / "log")
    delta_pyds.drop_table(spark, "t", data=True)
    assert entries(spark) == [table.holder]
    assert again.holder != table.holder
    assert any((tmp_path / "t").iterdir())


def test_python_reads_writes_and_alters_by_name(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t")
    delta_pyds.create_table(spark, "t", path)

    assert delta_pyds.read(spark, table="t", where="id > 0", version=0).count() == 2
    delta_pyds.write(spark.range(3, 5), table=f"{SCHEMA}.t", mode="append")
    table = DeltaTable.forName(spark, "t")
    table.addColumn("note", "STRING")
    table.update("id = 4", {"note": "'four'"})
    assert spark.sql("SELECT id FROM t WHERE note = 'four'").collect() == [(4,)]
    source = spark.sql("SELECT 9L AS id, 'nine' AS note, 1 AS more")
    merge = DeltaTable.forName(spark, "t").alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.withSchemaEvolution().whenNotMatchedInsertAll().execute()
    assert spark.table("t").columns == ["id", "note", "more"]
    delta_pyds.write(spark.sql("SELECT 10L AS id, 2 AS other"), table="t", mode="append", merge_schema=True)
    assert spark.table("t").columns == ["id", "note", "more", "other"]
    _calls_columns_by_the_name(spark)
    table.restoreToVersion(1)
    assert spark.table("t").columns == ["id"]

    # what another engine did is followed as soon as the name is used here
    DeltaTable.forPath(spark, path).addColumn("late", "INT")
    assert spark.table("t").columns == ["id"]
    assert delta_pyds.read(spark, table="t").columns == spark.table("t").columns == ["id", "late"]
    assert len(entries(spark)) == 2

    for call in (
        lambda name: DeltaTable.forName(spark, name),
        lambda name: delta_pyds.read(spark, table=name),
    ):
        with pytest.raises(TableNotFoundError, match="'nothing' is not a Delta table"):
            call("nothing")
    spark.sql("CREATE TEMPORARY VIEW passing AS SELECT 1L AS id")
    spark.sql("CREATE TABLE others (id BIGINT) USING parquet")
    for name in ("passing", "others"):
        with pytest.raises(UnsupportedOperationError, match=name):
            DeltaTable.forName(spark, name)
        with pytest.raises(UnsupportedOperationError, match=name):
            delta_pyds.write(spark.range(1), table=name, mode="overwrite")
    spark.catalog.dropTempView("passing")
    assert spark.table("others").count() == 0


def _calls_columns_by_the_name(spark: SparkSession) -> None:
    table, whole = DeltaTable.forName(spark, "t"), f"{SCHEMA}.t"
    table.update(f"{whole}.id = 10", {f"{whole}.other": f"spark_catalog.{whole}.other + t.id", "t.more": "T.OTHER"})
    assert spark.sql("SELECT other, more FROM t WHERE id = 10").collect() == [(12, 2)]
    table.update(F.col(f"{whole}.id") == 10, {"other": F.col(f"{whole}.other") - F.col("t.id")})
    assert table.toDF().where("t.id = 10").select("t.other").collect() == [(2,)]
    source = spark.sql("SELECT 10L AS id, 5 AS other UNION ALL SELECT 11L, 6")
    for on in (f"{whole}.id = s.id", "t.id = s.id"):
        merge = table.merge(source.alias("s"), on).whenMatchedUpdate(set={f"{whole}.other": f"{whole}.other + 1"})
        merge.whenNotMatchedInsert(values={f"{whole}.id": "s.id", "t.other": "s.other"}).execute()
    # a source may have the last part of the name for its own
    merge = table.merge(spark.sql("SELECT 10L AS number").alias("t"), f"{whole}.id = number")
    merge.whenMatchedUpdate(set={"other": f"{whole}.other + 1"}).execute()
    text = f"MERGE INTO {whole} USING (SELECT 10L AS id, 10L AS number) AS t ON {whole}.id = t.{{}}"
    text += f" WHEN MATCHED THEN UPDATE SET {whole}.other = {whole}.other + 1"
    text += " WHEN NOT MATCHED AND t.id < 0 THEN INSERT (id) VALUES (t.id)"
    delta_pyds.sql(spark, text.format("number"))
    with pytest.raises(AnalysisException, match="may be a column of the table and one of the source"):
        delta_pyds.sql(spark, text.format("id"))
    assert spark.sql("SELECT id, other FROM t WHERE id > 9 ORDER BY id").collect() == [(10, 6), (11, 7)]
    table.delete(f"spark_catalog.{SCHEMA}.T.ID = 11 OR (t.id = 11)")
    assert spark.sql("SELECT id FROM t WHERE id > 10").collect() == []
    for name in ("nowhere.t.id", f"x.{whole}.id"):
        with pytest.raises(AnalysisException) as unknown:
            table.delete(f"{name} = 1")
        assert (unknown.value.getCondition() or "").startswith("UNRESOLVED_COLUMN"), unknown.value
    with pytest.raises(AnalysisException):  # an alias is the only name
        table.alias("x").delete("t.id = 1")


def test_new_tables_by_name_lie_where_the_schema_puts_them(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(3).selectExpr("id", "id % 2 AS p"), table="made", partition_by="p")
    made = find(spark, "made")
    assert made is not None and made.managed
    assert made.location.endswith(f"/warehouse/{SCHEMA}.db/made")
    assert spark.table("made").count() == 3
    with pytest.raises(UserError, match="made"):
        delta_pyds.write(spark.range(3), table="made")
    delta_pyds.drop_table(spark, "made")
    with pytest.raises(UserError, match="name it: ") as refused:
        delta_pyds.write(spark.range(3), table="made", mode="append")
    assert refused.value.code == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    delta_pyds.create_table(spark, "made", made.location)
    delta_pyds.drop_table(spark, "made", data=True)

    def builder(kind: str, *columns: str, name: str = "built") -> DeltaTable:
        begun = getattr(DeltaTable, kind)(spark).tableName(name).location(str(tmp_path / "built"))
        for column in columns:
            begun = begun.addColumn(column, "INT")
        return begun.execute()

    with pytest.raises(TableNotFoundError, match="built does not exist"):
        builder("replace", "a")
    builder("create", "a", "b").addColumn("c", "INT")
    assert spark.table("built").columns == ["a", "b", "c"]
    with pytest.raises(UserError, match="built already exists") as refused:
        builder("create", "a")
    assert refused.value.code == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert builder("createIfNotExists", "x").toDF().columns == ["a", "b", "c"]
    builder("createOrReplace", "z")
    builder("replace", "y").addColumn("late", "INT")
    assert spark.table("built").columns == ["y", "late"]
    assert DeltaTable.forName(spark, "built").history().count() == 5
    # the table that is there gets another name, if it is the one that is meant
    with pytest.raises(UserError, match="Omit the columns"):
        builder("create", "y", name="again")
    assert builder("create", "y", "late", name="again").toDF().columns == ["y", "late"]
    assert builder("create", name="third").toDF().columns == ["y", "late"]
    with pytest.raises(UserError, match="is at"):
        DeltaTable.replace(spark).tableName("third").location(str(tmp_path / "x")).addColumn("a", "INT").execute()
    assert not (tmp_path / "x").exists()
    managed = DeltaTable.create(spark).tableName("managed").addColumn("a", "INT").execute()
    assert managed.toDF().columns == spark.table("managed").columns == ["a"]
    delta_pyds.drop_table(spark, "managed", data=True)


def test_a_name_is_pointed_at_another_table(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(3), table="here")
    old = find(spark, "here")
    assert old is not None and old.managed
    there, other = make(spark, tmp_path / "the re", 5), str(tmp_path / "other")
    delta_pyds.write(spark.range(2).selectExpr("id AS x", "id AS y"), other, partition_by="y")

    with pytest.raises(UserError, match="DELTA_SET_LOCATION_SCHEMA_MISMATCH"):
        delta_pyds.sql(spark, f"ALTER TABLE here SET LOCATION '{other}'")
    with pytest.raises(TableNotFoundError):
        delta_pyds.sql(spark, f"ALTER TABLE here SET LOCATION '{tmp_path}/nothing'")
    with pytest.raises(UserError, match="DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER"):
        delta_pyds.sql(spark, f"ALTER TABLE delta.`{there}` SET LOCATION '{other}'")
    assert find(spark, "here") == old

    delta_pyds.sql(spark, f"ALTER TABLE here SET LOCATION '{there}'")
    assert (spark.table("here").count(), delta_pyds.read(spark, table="here").count()) == (5, 5)
    spark.conf.set("spark.databricks.delta.alterLocation.bypassSchemaCheck", "true")
    try:
        delta_pyds.sql(spark, f"ALTER TABLE here SET LOCATION '{other}'")
    finally:
        spark.conf.unset("spark.databricks.delta.alterLocation.bypassSchemaCheck")
    assert spark.table("here").columns == ["x", "y"]
    assert len(entries(spark)) == 2
    # the name is nobody's reason to delete any of the three
    delta_pyds.sql(spark, "DROP TABLE here")
    assert entries(spark) == []
    for path, rows in ((old.location, 3), (there, 5), (other, 2)):
        assert delta_pyds.read(spark, path).count() == rows


def test_sql_takes_a_name_wherever_it_takes_a_path(spark: SparkSession, tmp_path: Path) -> None:
    def sql(text: str, args: object = None) -> list[tuple[object, ...]]:
        return [tuple(row) for row in delta_pyds.sql(spark, text, args).collect()]

    path = tmp_path / "t"
    sql(f"CREATE TABLE t (id BIGINT NOT NULL, p STRING) USING deltapy PARTITIONED BY (p) LOCATION '{path}'")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    sql(f"INSERT INTO {SCHEMA}.t (p, id) SELECT 'c', 3")
    sql("UPDATE t SET p = 'z' WHERE t.id = (SELECT max(id) FROM t)")
    sql("DELETE FROM t AS x WHERE x.id IN (SELECT y.id FROM t VERSION AS OF 1 AS y WHERE y.id = 1)")
    source = "SELECT 2L AS id, 'B' AS p UNION ALL SELECT 9L, 'n'"
    sql(f"MERGE INTO t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert sorted(sql("SELECT * FROM t")) == [(2, "B"), (3, "z"), (9, "n")]
    # a column is called by its table's name at a version, too
    assert sql("SELECT t.id FROM t VERSION AS OF 1 WHERE t.p = 'a'") == [(1,)]
    assert sql("SELECT t.id, u.id FROM t JOIN t@v1 u ON t.id = u.id WHERE u.p = :p", {"p": "b"}) == [(2, 2)]
    sql("MERGE INTO t USING t VERSION AS OF 1 AS old ON t.id = old.id WHEN NOT MATCHED THEN INSERT *")
    assert sorted(row[0] for row in sql("SELECT id FROM t")) == [1, 2, 3, 9]
    sql("CREATE TEMPORARY VIEW first AS SELECT * FROM t VERSION AS OF 1")
    assert spark.table("first").count() == 2
    spark.catalog.dropTempView("first")
    version = DeltaTable.forName(spark, "t").history(1).first().version
    sql(f"RESTORE TABLE t TO VERSION AS OF {version - 1}")
    assert sql("SELECT count(*) FROM t") == [(3,)]
    assert [row[2] for row in delta_pyds.sql(spark, "SELECT * FROM t ORDER BY id").collect() if len(row) > 2] == []

    sql("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true')")
    sql("ALTER TABLE t ADD COLUMNS (n INT COMMENT 'new' FIRST)")
    sql("ALTER TABLE t RENAME COLUMN p TO q")
    sql("ALTER TABLE t ADD CONSTRAINT few CHECK (id < 100)")
    sql(f"COMMENT ON COLUMN {SCHEMA}.t.q IS 'a part'")
    assert spark.table("t").columns == ["n", "id", "q"]
    assert spark.table("t").schema["q"].metadata["comment"] == "a part"
    assert sorted(sql("SHOW COLUMNS IN t")) == [("id",), ("n",), ("q",)]
    assert ("delta.constraints.few", "id < 100") in sql("SHOW TBLPROPERTIES t")
    assert sql("DESCRIBE DETAIL t")[0][0] == "delta"
    sql("ALTER TABLE t ALTER COLUMN n AFTER id, id COMMENT 'number', q COMMENT 'a part'")
    assert (
        spark.table("t").columns == ["id", "n", "q"] and spark.table("t").schema["id"].metadata["comment"] == "number"
    )
    described = sql("DESCRIBE EXTENDED t")
    assert ("id", "bigint", "number") in described and ("Location", f"file:{path}", "") in described
    before = sql("DESCRIBE HISTORY t LIMIT 1")[0][0]
    sql("INSERT INTO t BY NAME SELECT 7L AS id, 'q7' AS q")
    changes = sql(f"SELECT id, _change_type FROM table_changes('{SCHEMA}.t', {before + 1})")
    assert changes == [(7, "insert")]
    sql("OPTIMIZE t")
    sql("VACUUM t DRY RUN")
    sql("TRUNCATE TABLE t")
    assert spark.table("t").count() == 0

    # other tables made out of it, and names changed and taken
    sql("CREATE TABLE alike LIKE t")
    sql("CREATE TABLE selected USING deltapy AS SELECT id FROM t@v1")
    sql("CREATE OR REPLACE TABLE selected USING deltapy AS SELECT id, 'x' AS x FROM t@v1")
    sql("CREATE TABLE IF NOT EXISTS selected USING deltapy AS SELECT 1 AS other")
    sql(f"CREATE TABLE cloned SHALLOW CLONE selected LOCATION '{tmp_path / 'cloned'}'")
    sql("ALTER TABLE cloned RENAME TO copied")
    assert spark.table("alike").columns == ["id", "n", "q"]
    assert [find(spark, name).managed for name in ("t", "alike", "selected", "copied")] == [False, True, True, False]
    assert sorted(sql("SELECT * FROM copied")) == sorted(sql("SELECT * FROM selected")) == [(1, "x"), (2, "x")]
    sql("EXECUTE IMMEDIATE 'ALTER TABLE t SET TBLPROPERTIES (a = 1)'")
    for statement, code in (
        ("CREATE TABLE t USING deltapy AS SELECT 1 AS a", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("REPLACE TABLE nothing USING deltapy AS SELECT 1 AS a", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE t SHALLOW CLONE copied", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("OPTIMIZE nothing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("ALTER TABLE t RENAME TO copied", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("ALTER TABLE t REPLACE COLUMNS (a INT)", "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"),
        ("DROP VIEW t", "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE"),
        ("SHOW CREATE TABLE t", "DELTA_OPERATION_NOT_ALLOWED"),
    ):
        with pytest.raises(UserError) as refused:
            sql(statement)
        assert refused.value.code == code, statement
    managed = find(spark, "selected")
    assert managed is not None
    sql("DROP TABLE copied")
    sql("DROP TABLE selected")
    sql("DROP TABLE IF EXISTS selected")
    assert (tmp_path / "cloned" / "_delta_log").exists()
    assert not Path(managed.location).exists()
    sql("DROP TABLE alike")
    sql("DROP TABLE t")
    assert entries(spark) == []

    # what is not ours is Spark's
    sql("CREATE TABLE others (id BIGINT) USING parquet")
    sql("INSERT INTO others VALUES (1)")
    sql("ALTER TABLE others ADD COLUMNS (a INT)")
    sql("CREATE TEMPORARY VIEW passing AS SELECT * FROM others")
    assert sql("SELECT * FROM passing") == [(1, None)]
    spark.catalog.dropTempView("passing")
    with pytest.raises(UnsupportedOperationError, match="others"):
        sql("OPTIMIZE others")
    sql("DROP TABLE others")
    assert entries(spark) == []
    _a_name_is_converted(spark, sql, tmp_path / "converted")


def _a_name_is_converted(spark: SparkSession, sql: Callable[[str], list[Any]], place: Path) -> None:
    for name in ("p q", "unknown"):
        text = (
            f"(id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{place / name}' TBLPROPERTIES (my = 'own')"
        )
        spark.sql(f"CREATE TABLE {name.replace(' ', '')} {text}")
    spark.sql("INSERT INTO pq VALUES (1, 1), (2, NULL)")
    spark.sql("CREATE TABLE managed (id INT) USING parquet")
    # a directory that the catalog knows nothing of
    spark.range(1).write.parquet(f"{place}/unknown/p=1")
    spark.sql("CREATE VIEW seen AS SELECT 1 AS id")
    for text, code in (
        ("unknown", "DELTA_OPERATION_NOT_ALLOWED"),
        ("managed", "DELTA_OPERATION_NOT_ALLOWED"),
        ("seen", "DELTA_OPERATION_NOT_ALLOWED_DETAIL"),
        ("nothing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("pq PARTITIONED BY (id BIGINT)", "DELTA_CONVERSION_UNSUPPORTED_PARTITION_SCHEMA"),
    ):
        with pytest.raises(UserError) as refused:
            sql(f"CONVERT TO DELTA {text}")
        assert refused.value.code == code, refused.value
    assert not list(place.rglob("_delta_log"))
    spark.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "true")
    try:
        sql(f"CONVERT TO DELTA {SCHEMA}.pq")
    finally:
        spark.conf.unset("spark.databricks.delta.properties.defaults.appendOnly")
    sql("CONVERT TO DELTA pq")  # it is one
    sql("INSERT INTO pq VALUES (3, 3)")
    assert sorted(sql("SELECT id, p FROM pq"), key=str) == [(1, 1), (2, None), (3, 3)]
    assert {("delta.appendOnly", "true"), ("my", "own")} <= set(sql("SHOW TBLPROPERTIES pq"))
    assert find(spark, "pq").location == str(place / "p q")
    assert [name for name in entries(spark) if "pq" in name and not name.startswith("_")] == ["pq"]
    sql("DROP TABLE pq")
    assert list(place.glob("p q/p=1/*.parquet"))
    # a star and an INSERT go by the catalog's order, whatever that of the files is
    spark.sql("SELECT 1 AS b, 2 AS a").write.parquet(f"{place}/turned")
    spark.sql(f"CREATE TABLE turned (a INT, b INT) USING parquet LOCATION '{place}/turned'")
    sql("CONVERT TO DELTA turned")
    sql("INSERT INTO turned VALUES (3, 4)")
    assert sorted(sql("SELECT * FROM turned")) == [(2, 1), (3, 4)]
    sql("DROP TABLE turned")


def test_a_table_that_is_there_gets_a_name_only_as_what_it_is(spark: SparkSession, tmp_path: Path) -> None:
    def create(clauses: str, columns: str = "(id INT, p INT)") -> str | None:
        try:
            delta_pyds.sql(spark, f"CREATE TABLE other {columns} USING deltapy {clauses} LOCATION '{tmp_path}/t'")
        except UserError as error:
            return error.code
        delta_pyds.sql(spark, "DROP TABLE other")
        return None

    made = "CLUSTER BY (id) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', my = 'own')"
    delta_pyds.sql(spark, f"CREATE TABLE first (id INT, p INT) USING deltapy OPTIONS (path '{tmp_path}/t') {made}")
    said = [
        "CLUSTER BY (p)",
        "CLUSTER BY (id) TBLPROPERTIES (my = 'own')",
        "CLUSTER BY (ID)",
        "PARTITIONED BY (p)",
        made,
    ]
    code = "DELTA_CREATE_TABLE_WITH_DIFFERENT_"
    assert [create(clauses) for clauses in said] == [
        f"{code}CLUSTERING", f"{code}PROPERTY", None, f"{code}PARTITIONING", None,
    ]  # fmt: skip
    assert create("CLUSTER BY (id)", "(id INT NOT NULL, p INT)") == "DELTA_CREATE_TABLE_SCHEME_MISMATCH"
    assert create("TBLPROPERTIES (my = 'other')", "") == f"{code}PROPERTY" and create("", "") is None
    with pytest.raises(UnsupportedOperationError, match="OPTIONS of a Delta table"):
        delta_pyds.sql(spark, "CREATE TABLE other (id INT) USING deltapy OPTIONS (compression 'none')")


def test_a_view_is_no_table_to_be_changed_and_gives_its_columns(spark: SparkSession) -> None:
    def sql(text: str) -> list[Any]:
        return delta_pyds.sql(spark, text).collect()

    sql("CREATE TABLE t USING deltapy AS SELECT 1 AS id, 'a' AS v")
    sql("CREATE VIEW few AS SELECT * FROM t WHERE id = 1")
    for text in (
        "UPDATE few SET v = 'b'",
        "DELETE FROM few",
        "MERGE INTO few USING t ON true WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(UnsupportedOperationError, match="'few', which is a view") as refused:
            sql(text)
        assert refused.value.code == "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"
    assert "Execute DELETE by delta_pyds\n   +- Delta[version=0, " in sql("EXPLAIN DELETE FROM t WHERE id = 1")[0][0]
    sql("WITH s AS (SELECT 2 AS id) INSERT INTO t SELECT id, 'b' FROM s")
    sql("EXECUTE IMMEDIATE 'DELETE FROM t WHERE id = ?' USING 3")
    with pytest.raises(UnsupportedOperationError, match="FROM before INSERT"):
        sql("FROM t INSERT INTO t SELECT id, v")
    assert sorted(map(tuple, sql("SELECT * FROM t"))) == [(1, "a"), (2, "b")]

    spark.sql("CREATE TABLE plain (a INT COMMENT 'one', p STRING) USING parquet PARTITIONED BY (p)")
    for name, like in (("u", "few"), ("w", "plain")):
        sql(f"CREATE TABLE {name} LIKE {like} USING deltapy")
    assert [row[0] for row in sql("SHOW COLUMNS IN u")] == ["id", "v"]
    assert [tuple(row) for row in sql("DESCRIBE w")][:2] == [("a", "int", "one"), ("p", "string", None)]
    assert sql("DESCRIBE DETAIL w")[0].partitionColumns == ["p"]


def test_a_view_of_the_catalog_reads_tables_by_path(spark: SparkSession, tmp_path: Path) -> None:
    def sql(text: str) -> DataFrame:
        return delta_pyds.sql(spark, text.replace("<T>", f"delta.`{tmp_path}/t`"))

    def holders() -> list[str]:
        return [name for name in entries(spark) if name.startswith("_deltapy_")]

    sql("CREATE TABLE <T> USING delta AS SELECT 1 AS id, 'a' AS v")
    sql("INSERT INTO <T> VALUES (2, 'b')")
    sql("CREATE VIEW seen AS SELECT n.id, o.v FROM <T> AS n LEFT JOIN <T> VERSION AS OF 0 o ON n.id = o.id")
    sql("INSERT INTO <T> VALUES (3, 'c')")
    # any session reads the rows of now, with the columns of each version
    assert sorted(map(tuple, spark.sql("SELECT * FROM seen").collect())) == [(1, "a"), (2, None), (3, None)]
    assert delta_pyds.remove_orphaned_holders(spark, wait_seconds=0) == [] and len(holders()) == 2
    # what makes no view leaves nothing
    sql("CREATE VIEW IF NOT EXISTS seen AS SELECT * FROM <T>")
    for text in ("CREATE VIEW seen AS SELECT id FROM <T>", "CREATE VIEW other AS SELECT nowhere FROM <T>"):
        with pytest.raises(AnalysisException):
            sql(text)
    assert len(holders()) == 2
    with pytest.raises(UnsupportedOperationError, match=r"cannot read .table_changes"):
        sql(f"CREATE VIEW other AS SELECT * FROM table_changes('delta.`{tmp_path}/t`', 0)")
    # a view that shows a whole table is not a name of the table
    sql("CREATE OR REPLACE VIEW seen (k, w) AS SELECT * FROM <T>")
    assert sql("SELECT count(*), max(k) FROM seen").collect()[0][:] == (3, 3)
    with pytest.raises(UnsupportedOperationError, match="'seen', which is a view"):
        sql("DELETE FROM seen")
    sql("DROP VIEW seen")
    assert len(delta_pyds.remove_orphaned_holders(spark, wait_seconds=0)) == 3 and not holders()
    assert sql("SELECT * FROM <T>").count() == 3
