"""``delta_pyds.sql`` on a classic session: what statements do, and that tables by path stand wherever Spark has tables.

What a statement says is tested without Spark in ``tests/unit/statements``.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, ParseException

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import (
    ColumnNotFoundError,
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConflictError,
    DeltaError,
    SqlSyntaxError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.spark.sql import insert
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.sql.frames import Frames
from delta_pyds.statements.kinds import SqlText, TableReference, TableSpan
from delta_pyds.statements.parse import parse_statement
from delta_pyds.table.snapshot import load_snapshot
from tests.spark.test_frames_are_only_read import contents
from tests.support.frames import physical, rows

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Callable[..., DataFrame]:
    """Runs a statement in which T, U and V are tables by path."""

    def run(text: str, args: Any = None) -> DataFrame:
        for name in "TUV":
            text = text.replace(f"<{name}>", f"delta.`{tmp_path}/{name.lower()}`")
        return delta_pyds.sql(spark, text, args)

    return run


def people(sql: Callable[..., DataFrame]) -> None:
    """Three rows at version 1; with change feed and deletion vectors."""
    sql(
        "CREATE TABLE <T> (id BIGINT NOT NULL, name STRING DEFAULT 'nobody', p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true, "
        "'delta.feature.allowColumnDefaults' = 'supported')"
    )
    sql("INSERT INTO <T> VALUES (1, 'a', 0), (2, 'b', 1), (3, 'c', 1)")


@pytest.mark.parametrize(
    ("level", "other", "conflict"),
    [
        ("WriteSerializable", "INSERT INTO <T> VALUES (9, 'z', 9)", None),
        ("Serializable", "INSERT INTO <T> VALUES (9, 'z', 9)", ConcurrentAppendError),
        ("WriteSerializable", "INSERT INTO <T> SELECT id + 5, name, p FROM <T>", ConcurrentAppendError),
        ("WriteSerializable", "DELETE FROM <T> WHERE id = 1", ConcurrentDeleteReadError),
    ],
)
def test_an_insert_that_reads_its_table_fails_if_others_change_it_meanwhile(
    sql: Callable[..., DataFrame],
    monkeypatch: pytest.MonkeyPatch,
    level: str,
    other: str,
    conflict: type[ConflictError] | None,
) -> None:
    people(sql)
    sql(f"ALTER TABLE <T> SET TBLPROPERTIES (delta.isolationLevel = '{level}')")
    write = insert.write

    def late(*args: Any, **options: Any) -> Any:
        monkeypatch.undo()
        sql(other)
        return write(*args, **options)

    monkeypatch.setattr(insert, "write", late)
    new = "INSERT INTO <T> SELECT 4, 'd', 4 WHERE 9 NOT IN (SELECT id FROM <T>)"
    if conflict is None:
        sql(new)
        assert (4, "d", 4) in rows(sql("SELECT * FROM <T>"))
        return
    with pytest.raises(conflict):
        sql(new)
    assert (4, "d", 4) not in rows(sql("SELECT * FROM <T>"))


def is_blind(table: Path, version: int) -> object:
    log = table / "_delta_log" / f"{version:020}.json"
    return next(e["commitInfo"]["isBlindAppend"] for e in map(json.loads, log.open()) if "commitInfo" in e)


def test_an_insert_that_reads_its_table_through_views_is_no_blind_append(
    sql: Callable[..., DataFrame], spark: SparkSession, tmp_path: Path
) -> None:
    people(sql)
    table = tmp_path / "t"
    spark.sql("CREATE SCHEMA own_rows")
    try:
        spark.sql("CREATE TABLE own_rows.other (id BIGINT) USING parquet")
        delta_pyds.create_table(spark, "own_rows.t", str(table))
        spark.sql("CREATE VIEW own_rows.of_name AS SELECT id + 1 AS id FROM own_rows.t")
        spark.sql("CREATE VIEW own_rows.of_view AS SELECT id FROM own_rows.of_name")
        spark.sql("CREATE VIEW own_rows.of_other AS SELECT id FROM own_rows.other")
        sql("CREATE VIEW own_rows.of_path AS SELECT id FROM <T>")
        found = {}
        for source in ("t", "of_name", "of_view", "of_path", "other", "of_other"):
            sql(f"INSERT INTO own_rows.t (id) SELECT id + 100 FROM own_rows.{source} WHERE id < 0 UNION ALL SELECT 1")
            version = load_snapshot(str(table)).version
            sql(f"INSERT INTO <T> (id) SELECT id + 100 FROM own_rows.{source} WHERE id < 0 UNION ALL SELECT 2")
            found[source] = [is_blind(table, version), is_blind(table, version + 1)]
    finally:
        spark.sql("DROP SCHEMA own_rows CASCADE")
    blind = {"other": [True] * 2, "of_other": [True] * 2}
    assert found == {"t": [False] * 2, "of_name": [False] * 2, "of_view": [False] * 2, "of_path": [False] * 2, **blind}


def test_rows_are_inserted_changed_and_read_at_every_version(sql: Callable[..., DataFrame], tmp_path: Path) -> None:
    people(sql)
    assert sql("INSERT INTO <T> (p, id) SELECT '7', 4 WHERE :x = 1", {"x": 1}).columns == []
    assert rows(sql("UPDATE <T> AS t SET t.name = DEFAULT, p = p + ? WHERE id = ?", [1, 2])) == [(1,)]
    assert rows(sql("SELECT id, name, p FROM <T>")) == [(1, "a", 0), (2, "nobody", 2), (3, "c", 1), (4, "nobody", 7)]
    sql("CREATE TABLE <U> AS SELECT id, id = 3 AS gone FROM <T> VERSION AS OF 1")
    deleted = sql("DELETE FROM <T> t WHERE EXISTS (SELECT 1 FROM <U>@v0 u WHERE u.id = t.id AND u.gone) -- all")
    assert deleted.columns == ["num_affected_rows"] and rows(deleted) == [(1,)]
    assert rows(sql("SELECT count(*) FROM <T> VERSION AS OF ? WHERE id > ?", [1, 0])) == [(3,)]
    joined = sql(
        "WITH few AS (SELECT * FROM <U> WHERE id IN (SELECT id FROM <T>)) "
        "SELECT t.id, few.gone, '{' || t.name AS n FROM <T> t JOIN few ON t.id = few.id WHERE t.id < :most",
        {"most": 2},
    )
    assert rows(joined) == [(1, False, "{a")]
    changes = sql("SELECT id, _change_type FROM table_changes(:path, 4)", {"path": f"{tmp_path}/t"})
    assert rows(changes) == [(3, "delete")]
    sql("INSERT OVERWRITE <T> PARTITION (p = 7) SELECT 5, 'five'")
    sql("INSERT INTO <T> REPLACE WHERE p = 0 SELECT 6, 'six', 0 ORDER BY 1")
    assert rows(sql("SELECT id, p FROM <T>")) == [(2, 2), (5, 7), (6, 0)]
    sql("TRUNCATE TABLE <T>")
    assert rows(sql("SELECT * FROM <T>")) == []
    delta_pyds.verify(f"{tmp_path}/t").raise_for_errors()


def test_nothing_is_written_past_the_log(sql: Callable[..., DataFrame], spark: SparkSession, tmp_path: Path) -> None:
    """Each guard alone keeps the files of a table as they are: our parser, Spark's, and the frame."""
    sql("CREATE TABLE <T> AS SELECT /*+ COALESCE(1) */ id FROM range(3)")
    sql("CREATE TABLE <U> AS SELECT 1 AS id")
    before = contents(tmp_path)
    name = f"delta.`{tmp_path}/t`"
    for text in (
        "FROM <U> INSERT OVERWRITE TABLE <T> SELECT *",
        "INSERT INTO <U> FROM <U> INSERT OVERWRITE <T> SELECT *",
    ):
        with pytest.raises(DeltaError):
            sql(text)
    insert = f"INSERT OVERWRITE TABLE {name} SELECT 9L"
    place = insert.index(name)
    span = TableSpan(TableReference(("delta", f"{tmp_path}/t"), name), place, place + len(name))
    with pytest.raises(AnalysisException):
        Frames(spark, None, lambda table: table).run(insert, [span])
    context = StatementContext(spark, "", parse_statement(""), None)
    with pytest.raises(ParseException):
        context.query(SqlText(f"FROM range(1) INSERT OVERWRITE DIRECTORY '{tmp_path}/u' USING parquet SELECT *", 0))
    assert contents(tmp_path) == before


def test_values_of_partitions_are_texts_first(sql: Callable[..., DataFrame]) -> None:
    sql("CREATE TABLE <T> (id INT, year STRING, day DATE) PARTITIONED BY (year, day)")
    sql("INSERT INTO <T> PARTITION (year = 2026, day = '2026-01-31') SELECT 1")
    sql("INSERT INTO <T> PARTITION (year = '', day) SELECT 2, NULL")
    sql("INSERT OVERWRITE <T> PARTITION (year = :y, day = DATE'2026-01-31') SELECT 3", {"y": 2026})
    sql("INSERT OVERWRITE <T> PARTITION (year = '', day = NULL) SELECT 4")
    assert rows(sql("SELECT * FROM <T>")) == [(3, "2026", dt.date(2026, 1, 31)), (4, None, None)]


def test_values_that_are_left_out_are_defaults(sql: Callable[..., DataFrame]) -> None:
    people(sql)
    sql("INSERT INTO <T> (id) VALUES (4)")  # a column that files lie by, too
    sql("INSERT INTO <T> (p, id, name) VALUES (5, 5, DEFAULT), (DEFAULT, 6, 'six')")
    sql("INSERT INTO <T> SELECT 7, DEFAULT, 7")
    sql("INSERT INTO <T> BY NAME SELECT 8 AS id")
    assert rows(sql("SELECT id, name, p FROM <T> WHERE id > 3")) == [
        (4, "nobody", None),
        (5, "nobody", 5),
        (6, "six", None),
        (7, "nobody", 7),
        (8, "nobody", None),
    ]
    sql("INSERT INTO <T> SELECT id + 10, DEFAULT, p FROM <T> WHERE id = 6")
    sql("INSERT INTO <T> SELECT id + 10, DEFAULT, p FROM (SELECT 7 AS id, 'own' AS default, 7 AS p)")
    assert rows(sql("SELECT id, name FROM <T> WHERE id > 10")) == [(16, "nobody"), (17, "own")]
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        sql("INSERT INTO <T> SELECT DISTINCT id, DEFAULT, p FROM <T>")
    with pytest.raises(UnsupportedOperationError, match="beside a star"):
        sql("INSERT INTO <T> SELECT x.*, DEFAULT FROM (SELECT 1) x")
    sql("DELETE FROM <T> WHERE id > 10")
    sql("CACHE LAZY TABLE kept AS SELECT id FROM <T> WHERE id > 3")
    try:
        sql("REFRESH TABLE <T>")
        sql("DELETE FROM <T>")
        assert rows(sql("SELECT count(*) FROM kept")) == [(5,)]
    finally:
        sql("UNCACHE TABLE kept")
        sql("DROP VIEW kept")


def test_a_time_is_an_instant(spark: SparkSession) -> None:
    """In the hour that comes twice a time of the wall clock would be the one before."""
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "America/New_York")
    try:
        for hour in (5, 6):
            when = SqlText(f"TIMESTAMP'2026-11-01 {hour:02d}:30:00.25Z' + INTERVAL 0 DAY", 0)
            assert Frames(spark, None, lambda table: table).time(when) == f"2026-11-01 {hour:02d}:30:00.250000Z"
    finally:
        spark.conf.set(zone, str(before))


def test_what_the_log_says_is_answered_by_it(sql: Callable[..., DataFrame]) -> None:
    people(sql)
    sql("DELETE FROM <T> WHERE id = 2")
    text = "SELECT count(*), max(p) AS most FROM <T>"
    counted = sql(text)
    scanned = sql(f"{text} WHERE true")
    assert [physical(frame).startswith("LocalTableScan") for frame in (counted, scanned)] == [True, False]
    assert rows(counted) == rows(scanned) == [(2, 1)]
    assert counted.columns == scanned.columns
    assert [f.dataType for f in counted.schema.fields] == [f.dataType for f in scanned.schema.fields]
    assert rows(sql("SELECT count(1) FROM <T> VERSION AS OF 1")) == [(3,)]
    assert rows(sql("SELECT min(id) FROM <T>")) == [(1,)]  # some row of a file is gone: Spark looks


def test_merge_has_every_clause(sql: Callable[..., DataFrame], spark: SparkSession) -> None:
    people(sql)
    done = sql(
        "MERGE WITH SCHEMA EVOLUTION INTO <T> t USING (SELECT id, name, vip, 0 AS p FROM "
        "VALUES (1L, 'A', true), (9L, 'n', false) AS s(id, name, vip)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 2 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = concat(t.name, '!')"
    )
    assert done.columns == ["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows"]
    assert rows(done) == [(4, 2, 1, 1)]
    assert rows(sql("SELECT id, name, p, vip FROM <T>")) == [
        (1, "A", 0, True),
        (2, "b!", 1, None),
        (9, "n", 0, False),
    ]
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("_")]


def test_tables_are_defined_and_altered(sql: Callable[..., DataFrame], tmp_path: Path) -> None:
    sql(
        "CREATE OR REPLACE TABLE <T> (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 10), at TIMESTAMP, "
        "day DATE GENERATED ALWAYS AS (CAST(at AS DATE)) COMMENT 'of at', s STRUCT<`a b`: INT>) "
        "USING delta PARTITIONED BY (day) COMMENT 'events' TBLPROPERTIES (delta.columnMapping.mode = 'name')"
    )
    sql("INSERT INTO <T> (at, s) VALUES (:at, named_struct('x', 1))", {"at": dt.datetime(2026, 1, 31, 12)})
    sql("ALTER TABLE <T> ADD COLUMNS (s.c STRING FIRST, city STRING COMMENT 'where' AFTER id)")
    sql("ALTER TABLE <T> RENAME COLUMN s.`a b` TO b")
    sql("ALTER TABLE <T> ALTER COLUMN city COMMENT 'town'")
    sql("ALTER TABLE <T> ADD CONSTRAINT positive CHECK (id > 0)")
    sql("ALTER TABLE <T> SET TBLPROPERTIES (team = 'me')")
    sql("COMMENT ON TABLE <T> IS 'all events'")
    assert [r.col_name for r in sql("SHOW COLUMNS IN <T>").collect()] == ["id", "city", "at", "day", "s"]
    properties = {r.key: r.value for r in sql("SHOW TBLPROPERTIES <T>").collect()}
    assert properties["team"] == "me" and properties["delta.constraints.positive"] == "id > 0"
    assert rows(sql("SELECT id >= 10, day, s.b, s.c FROM <T>")) == [(True, dt.date(2026, 1, 31), 1, None)]
    described = [tuple(row) for row in sql("DESC TABLE EXTENDED <T>").collect()]
    assert described[3] == ("day", "date", "of at") and described[5:8:2] == [
        ("# Partition Information", "", ""),
        ("day", "date", "of at"),
    ]
    assert ("Comment", "all events", "") in described
    assert rows(sql("DESCRIBE <T> city")) == [("col_name", "city"), ("comment", "town"), ("data_type", "string")]
    detail = sql("DESCRIBE DETAIL <T>").collect()[0]
    assert (detail.description, detail.partitionColumns) == ("all events", ["day"])
    operations = [r.operation for r in sql("DESCRIBE HISTORY <T> LIMIT 6").collect()]
    assert operations[-1] == "ADD COLUMNS" and len(operations) == 6
    sql("ALTER TABLE <T> DROP COLUMNS IF EXISTS (city, nothing)")
    sql("CREATE TABLE <U> LIKE <T>")
    assert sql("SELECT * FROM <U>").columns == ["id", "at", "day", "s"]
    sql("CREATE OR REPLACE TABLE <U> USING delta TBLPROPERTIES (own = 'u') COMMENT 'c' AS SELECT 1 AS a, 2 AS b")
    assert rows(sql("SELECT * FROM <U>")) == [(1, 2)]
    assert rows(sql("SHOW TBLPROPERTIES <U> (own)")) == [("own", "u")]
    delta_pyds.verify(f"{tmp_path}/u").raise_for_errors()
    with pytest.raises(ColumnNotFoundError):
        sql("INSERT INTO <T> (nothing) VALUES (1)")
    with pytest.raises(UserError, match="2 columns") as found:
        sql("INSERT INTO <T> VALUES (1, 2)")
    assert found.value.code == "DELTA_INSERT_COLUMN_ARITY_MISMATCH"


def test_numbers_go_on_behind_the_values_that_users_gave(sql: Callable[..., DataFrame], tmp_path: Path) -> None:
    sql(
        "CREATE TABLE <T> (up BIGINT GENERATED BY DEFAULT AS IDENTITY, v INT, "
        "down BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH -1 INCREMENT BY -3)) USING delta"
    )
    sql("INSERT INTO <T> VALUES (41, 1, -5), (7, 2, 100)")
    for column in ("up", "DOWN"):
        sql(f"ALTER TABLE <T> ALTER COLUMN {column} SYNC IDENTITY")
    sql("INSERT INTO <T> (v) VALUES (3)")
    assert rows(sql("SELECT up, down FROM <T> WHERE v = 3")) == [(42, -10)]
    sql("DELETE FROM <T> WHERE v = 3")  # some row of a file is gone: its values are looked at
    DeltaTable.forPath(sql("SELECT 1").sparkSession, f"{tmp_path}/t").syncIdentity("up")
    sql("INSERT INTO <T> (v) VALUES (4)")
    assert rows(sql("SELECT up, down FROM <T> WHERE v = 4")) == [(43, -13)]
    with pytest.raises(UserError) as found:
        sql("ALTER TABLE <T> ALTER COLUMN v SYNC IDENTITY")
    assert found.value.code == "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"
    delta_pyds.verify(f"{tmp_path}/t").raise_for_errors()


def test_columns_come_with_rows_and_partitions_are_shown(sql: Callable[..., DataFrame], spark: SparkSession) -> None:
    append_only = "spark.databricks.delta.properties.defaults.appendOnly"
    spark.conf.set(append_only, "true")
    try:
        sql("CREATE TABLE <T> (a INT, p DATE) USING delta PARTITIONED BY (p)")
        sql("CREATE TABLE <U> USING delta TBLPROPERTIES (delta.appendOnly = false) AS SELECT 1 AS a")
    finally:
        spark.conf.unset(append_only)
    assert [rows(sql(f"SHOW TBLPROPERTIES <{t}> (delta.appendOnly)"))[0][1] for t in "TU"] == ["true", "false"]
    sql("INSERT INTO <T> VALUES (1, DATE'2024-01-01'), (2, NULL)")
    sql("INSERT WITH SCHEMA EVOLUTION INTO <T> SELECT 3, DATE'2024-01-02', true AS more")
    assert rows(sql("SELECT a, more FROM <T>")) == [(1, None), (2, None), (3, True)]
    shown = sql("SHOW PARTITIONS <T>")
    assert shown.columns == ["p"] and len(shown.collect()) == 3
    day = dt.date(2024, 1, 2)
    assert rows(sql("SHOW PARTITIONS <T> PARTITION (P = '2024-01-02')")) == [(day,)]
    assert rows(sql("SHOW PARTITIONS <T> PARTITION (p = NULL)")) == [(None,)]
    for text, code in (("<T> PARTITION (a = 1)", "COLUMN"), ("<U>", "TABLE")):
        with pytest.raises(UserError) as found:
            sql(f"SHOW PARTITIONS {text}")
        assert found.value.code == f"DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_{code}"


def test_tables_are_kept_in_order(sql: Callable[..., DataFrame], spark: SparkSession, tmp_path: Path) -> None:
    people(sql)
    sql("INSERT INTO <T> VALUES (4, 'd', 1)")
    optimized = sql("OPTIMIZE <T> WHERE p = 1 ZORDER BY (id)")
    assert optimized.columns == ["path", "metrics"] and optimized.collect()[0].metrics.numFilesRemoved >= 2
    sql("DELETE FROM <T> WHERE id = 4")
    assert sql("REORG TABLE <T> APPLY (PURGE)").collect()[0].metrics.numFilesAdded == 1
    assert rows(sql("VACUUM <T> RETAIN 200 HOURS DRY RUN")) == []
    assert [r.path for r in sql(f"VACUUM '{tmp_path}/t'").collect()] == [f"file:{tmp_path}/t"]
    restored = sql("RESTORE TABLE <T> TO VERSION AS OF 1")
    assert "num_restored_files" in restored.columns and sql("SELECT * FROM <T>").count() == 3
    cloned = sql("CREATE TABLE <U> SHALLOW CLONE <T> VERSION AS OF 2")
    assert cloned.collect()[0].source_num_of_files >= 1 and sql("SELECT * FROM <U>").count() == 4
    spark.range(2).write.parquet(f"{tmp_path}/files")
    sql(f"CONVERT TO DELTA parquet.`{tmp_path}/files`")
    assert DeltaTable.isDeltaTable(spark, f"{tmp_path}/files")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("DELETE FROM <T>\nWHERE id > 1 AND |nowhere = 3", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("UPDATE <T> SET name = 'x', p = 1 + |nowhere WHERE id = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("DELETE FROM <T> WHERE id > 1\n  AND |array(1) + 1 = 2", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        (
            "MERGE INTO <T> t USING (SELECT 1 AS a) s ON t.id = |s.b WHEN MATCHED THEN DELETE",
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        ),
        ("INSERT INTO <T> SELECT id, |nowhere, 1 FROM range(3)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("CREATE TABLE <U> USING delta AS SELECT |nowhere FROM <T>", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ],
)
def test_what_cannot_be_resolved_has_its_place_in_the_statement(
    sql: Callable[..., DataFrame], text: str, code: str
) -> None:
    people(sql)
    with pytest.raises(AnalysisException) as found:
        sql(text.replace("|", ""))
    error = found.value
    assert isinstance(error, UserError) and error.code == error.getCondition() == code
    line, mark = error.message.split("\n")[-2:]
    wrong = text[text.index("|") + 1 :].split(" ")[0]
    assert mark.endswith("-^^^") and line[len(mark) - 3 :].startswith(wrong)
    # neither the plan nor the columns of our own frames
    assert "_deltapy" not in error.message and "Project" not in error.message and "Relation" not in error.message


def test_a_command_of_the_table_api_tells_no_column_of_ours(sql: Callable[..., DataFrame], tmp_path: Path) -> None:
    people(sql)
    table = DeltaTable.forPath(sql("SELECT 1").sparkSession, f"{tmp_path}/t")
    names = r"\[(`(id|name|p)`(, |\]\.$)){3}"
    with pytest.raises(AnalysisException, match=f"`nowhere` cannot be resolved.*{names}") as found:
        table.delete("nowhere = 1")
    assert "_deltapy" not in found.value.getMessageParameters()["proposal"]
    assert found.value.getSqlState() == "42703"


def test_all_else_is_of_spark(sql: Callable[..., DataFrame], spark: SparkSession, tmp_path: Path) -> None:
    people(sql)
    assert "Scan" in sql("EXPLAIN SELECT * FROM <T>").collect()[0][0]
    sql(f"INSERT OVERWRITE DIRECTORY '{tmp_path}/out' USING parquet SELECT id FROM <T> WHERE id < 3")
    assert spark.read.parquet(f"{tmp_path}/out").count() == 2
    sql("CREATE OR REPLACE TEMP VIEW seen (i) AS SELECT id FROM <T>")
    try:
        assert rows(sql("SELECT max(i) FROM seen")) == [(3,)]
    finally:
        spark.catalog.dropTempView("seen")
    assert rows(sql("SELECT :a + 1", {"a": 1})) == [(2,)]
    spark.sql("CREATE TABLE deltapy_by_name (id BIGINT) USING deltapy")
    spark.sql("CREATE TABLE of_spark (id BIGINT) USING parquet")
    try:
        for text in (
            "ALTER TABLE deltapy_by_name SET TBLPROPERTIES (a = 'b')",
            "COMMENT ON COLUMN default.deltapy_by_name.id IS 'x'",
            "ALTER TABLE IDENTIFIER('deltapy_' || :rest) SET TBLPROPERTIES (a = 'b')",
            "EXECUTE IMMEDIATE 'ALTER TABLE deltapy_by_name ADD COLUMN ' || 'x INT'",
            "BEGIN ALTER TABLE deltapy_by_name ADD COLUMN x INT; END",
        ):
            with pytest.raises(UnsupportedOperationError, match="Spark would"):
                sql(text, {"rest": "by_name"})
        for text in (
            "OPTIMIZE deltapy_by_name",
            "DESCRIBE HISTORY deltapy_by_name",
        ):
            with pytest.raises(UnsupportedOperationError, match="create_table"):
                sql(text)
        sql("EXECUTE IMMEDIATE 'CREATE TABLE another (a INT) ' || 'USING deltapy'")
        assert sql("DESCRIBE DETAIL another").count() == 1
        sql("DROP TABLE another")
        sql("ALTER TABLE of_spark ADD COLUMN x INT")
        assert spark.table("of_spark").columns == ["id", "x"]
    finally:
        sql("DROP TABLE deltapy_by_name")
        sql("DROP TABLE of_spark")
    assert rows(sql("DESC FUNCTION max"))
    with pytest.raises(UnsupportedOperationError, match="CREATE TEMPORARY VIEW has no such limit"):
        sql("CREATE VIEW v AS SELECT * FROM <T> TIMESTAMP AS OF current_timestamp()")
    with pytest.raises(SqlSyntaxError, match="expected SET") as found:
        sql("UPDATE <T> WHERE id = 1")
    assert isinstance(found.value, ParseException)
    # an expression alone would take the last word for its name
    with pytest.raises(SqlSyntaxError, match="any_name") as found:
        sql("DELETE FROM <T>\nWHERE id = 1 any_name")
    assert isinstance(found.value, ParseException)
    assert found.value.message.endswith("any_name\n---------------------^^^")
    assert rows(sql("SELECT count(*) FROM <T>")) == [(3,)]


def test_fields_go_by_place_where_columns_do(sql: Callable[..., DataFrame]) -> None:
    sql("CREATE TABLE <T> (s STRUCT<x: INT, y: INT>, a ARRAY<STRUCT<x: INT, y: INT>>) USING delta")
    sql("INSERT INTO <T> SELECT named_struct('y', 1L, 'x', 2), array(named_struct('y', 3, 'other', 4L))")
    sql("INSERT INTO <T> BY NAME SELECT named_struct('y', 5, 'x', 6) AS s")
    sql("UPDATE <T> SET a = array(named_struct('y', 7, 'x', 8)) WHERE s.x = 6")
    assert rows(sql("SELECT s.x, s.y, a[0].x, a[0].y FROM <T>")) == [(1, 2, 3, 4), (6, 5, 8, 7)]
    # called as the table calls them
    sql("INSERT INTO <T> SELECT named_struct('y', 9, 'x', 10) AS s, array(named_struct('y', 0, 'x', 0)) AS a")
    sql("INSERT INTO <T> (a, s) SELECT array(named_struct('y', 11, 'x', 12)), named_struct('y', 13, 'x', 14)")
    assert rows(sql("SELECT s.x, s.y, a[0].x FROM <T> WHERE s.x > 8")) == [(10, 9, 0), (13, 14, 12)]
    sql("INSERT WITH SCHEMA EVOLUTION INTO <T> SELECT named_struct('y', 15, 'x', 16, 'z', 17), null")
    sql("INSERT WITH SCHEMA EVOLUTION INTO <T> BY NAME SELECT named_struct('w', 0, 'z', 1, 'y', 2, 'x', 18) AS s")
    assert rows(sql("SELECT s.* FROM <T> WHERE s.x > 14")) == [(15, 16, 17, None), (18, 2, 1, 0)]
    for fields, code in (
        ("'x', 1", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("'x', 1, 'y', 2, 'z', 3, 'w', 4, 'v', 5", "DELTA_METADATA_MISMATCH"),
    ):
        with pytest.raises(UserError) as refused:
            sql(f"INSERT INTO <T> (s) SELECT named_struct({fields})")
        assert refused.value.code == code


def test_an_update_takes_one_row_at_a_time(sql: Callable[..., DataFrame]) -> None:
    people(sql)
    for value in ("max(p) OVER ()", "max(p)", "explode(array(1, 2))"):
        with pytest.raises(UserError, match="one row at a time") as refused:
            sql(f"UPDATE <T> SET p = {value} WHERE id = 1")
        assert refused.value.code == "UNSUPPORTED_EXPR_FOR_OPERATOR"
    assert rows(sql("UPDATE <T> SET p = (SELECT max(p) FROM <T>) WHERE id = 1")) == [(1,)]
