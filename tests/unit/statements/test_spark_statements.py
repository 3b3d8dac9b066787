"""Statements that are passed on to Spark: tables by path that it only reads, and tables by name that it changes."""

from __future__ import annotations

import pytest

from delta_pyds.errors import DeltaError, SqlSyntaxError, UnsupportedOperationError
from delta_pyds.statements.kinds import (
    AlterColumn,
    CacheTable,
    Create,
    Delete,
    DropTable,
    PassThrough,
    SqlText,
    TableReference,
    TemporaryView,
)
from delta_pyds.statements.parse import parse_statement
from tests.unit.statements.parsed import PATH, parsed


@pytest.mark.parametrize(
    "text",
    [
        "FROM src INSERT OVERWRITE TABLE <T> SELECT *",
        "FROM src INSERT INTO TABLE <T> SELECT *",
        "FROM src INSERT INTO a SELECT * INSERT OVERWRITE TABLE <T> PARTITION (p = 1) SELECT *",
        "FROM src INSERT OVERWRITE TABLE IDENTIFIER('<T>') SELECT *",
        "WITH s AS (SELECT 1) DELETE FROM <T> WHERE a",
        "WITH s AS (SELECT 1) UPDATE <T> SET a = 1",
        "BEGIN INSERT OVERWRITE TABLE <T> SELECT 1; END",
        "CREATE TEMP VIEW v AS WITH q AS (SELECT 1) INSERT OVERWRITE <T> SELECT * FROM q",
        "CREATE TEMP VIEW v AS FROM q INSERT INTO <T> SELECT *",
        "INSERT INTO x FROM s INSERT OVERWRITE <T> SELECT *",
        "CREATE TABLE x LIKE <T> STORED AS PARQUET",
        "LOAD DATA INPATH '/x' INTO TABLE <T>",
    ],
)
def test_spark_gets_no_table_by_path_to_write_into(text: str) -> None:
    for named in (PATH, "spark_catalog.deltapy.`/data/t`"):
        with pytest.raises(UnsupportedOperationError, match="this version"):
            parse_statement(text.replace("<T>", named))


@pytest.mark.parametrize(
    "text",
    [
        "TABLE <T>",
        "(TABLE <T>)",
        "INSERT INTO x TABLE <T>",
        "INSERT INTO x (a, b) TABLE <T>",
        "WITH s AS (TABLE <T>) FROM s INSERT OVERWRITE TABLE x SELECT *",
        "FROM <T> INSERT INTO TABLE x SELECT * INSERT OVERWRITE TABLE y SELECT a",
        "SELECT 1 UNION ALL TABLE <T>",
        "SELECT * FROM ((<T> JOIN x))",
        "SELECT * FROM f(TABLE(<T>))",
        "MERGE INTO x USING <T> ON a WHEN MATCHED THEN DELETE",
        "DELETE FROM x WHERE EXISTS (SELECT 1 FROM <T>)",
        "DESCRIBE TABLE <T>",
    ],
)
def test_spark_gets_tables_by_path_to_read(text: str) -> None:
    found = parse_statement(text.replace("<T>", PATH))
    whole = found.statement if isinstance(found.statement, PassThrough) else found.as_pass_through()
    assert len(whole.tables) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"INSERT INTO {PATH} WITH q AS (SELECT 1) ¦INSERT OVERWRITE b SELECT * FROM q",
        f"INSERT INTO {PATH} FROM s ¦INSERT INTO b SELECT *",
        f"INSERT OVERWRITE {PATH} WITH q AS (SELECT 1) ¦DELETE FROM b WHERE a",
        f"INSERT INTO {PATH} WITH q AS (SELECT 1) ¦UPDATE x.b AS c SET a = 1",
        f"INSERT INTO {PATH} WITH q AS (SELECT 1) ¦MERGE INTO b USING q ON a WHEN MATCHED THEN DELETE",
        f"CREATE OR REPLACE TABLE {PATH} AS FROM s ¦INSERT OVERWRITE b SELECT *",
        f"MERGE INTO {PATH} t USING (FROM s ¦INSERT OVERWRITE b SELECT *) s ON a WHEN MATCHED THEN DELETE",
        f"VACUUM {PATH} USING INVENTORY (FROM a ¦INSERT INTO b SELECT *)",
    ],
)
def test_a_query_is_no_command(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="this is a command") as found:
        parse_statement(text.replace("¦", ""))
    assert found.value.parameters["position"] == text.index("¦")


def test_columns_may_be_called_like_commands() -> None:
    text = "SELECT insert, t.update, delete FROM merge t WHERE t.delete"
    parsed(f"CREATE TABLE {PATH} AS {text}", Create)


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE <T>",
        "DROP TABLE IF EXISTS <T>",
        "DROP TABLE IF EXISTS spark_catalog.<T>",
        "DROP TABLE delta.`events`",
        "DROP VIEW IF EXISTS <T>",
    ],
)
def test_a_table_by_path_is_not_dropped_in_silence(text: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="DROP of"):
        parse_statement(text.replace("<T>", PATH))


def test_other_tables_are_dropped_by_spark() -> None:
    for text in ("DROP DATABASE delta", "DROP TABLE", "DROP FUNCTION f"):
        assert parsed(text, PassThrough).tables == ()
    for text in ("DROP TABLE IF EXISTS delta.events", "DROP TABLE `a`.`b` PURGE", "DROP VIEW a"):
        found = parse_statement(text)
        assert isinstance(found.statement, DropTable) and found.statement.view == ("VIEW" in text)
        assert found.as_pass_through().tables == ()
    with pytest.raises(UnsupportedOperationError):
        parse_statement(f"ANALYZE TABLE {PATH} COMPUTE STATISTICS")


def test_whole_tables_are_kept() -> None:
    assert parsed("CACHE TABLE s.t;", CacheTable).level is None
    lazy = parsed(f"CACHE LAZY TABLE {PATH} OPTIONS ('storageLevel' 'DISK_ONLY', a.b = 1)", CacheTable)
    assert (lazy.target.path, lazy.lazy, lazy.level) == ("/data/t", True, "DISK_ONLY")
    assert lazy.keeps
    assert not parsed(f"UNCACHE TABLE IF EXISTS {PATH}", CacheTable).keeps
    # over a query the name is that of a new view
    for text in ("CACHE TABLE t AS SELECT 1", "CACHE TABLE t OPTIONS (a = 1) SELECT * FROM u", "CLEAR CACHE"):
        assert parsed(text, PassThrough).changed == ()
        assert parse_statement(text).refused is None


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * FROM {PATH} WITH (where = 'a = 1')",
        f"SELECT * FROM {PATH} VERSION AS OF 3 WITH ('columns' = 'a')",
        "SELECT * FROM table_changes('/a', 3) WITH (columns = 'a')",
        f"MERGE INTO {PATH} USING {PATH} WITH (where = 'x') s ON a WHEN MATCHED THEN DELETE",
        f"INSERT INTO {PATH} WITH ('replaceWhere' = 'a') SELECT 1",
    ],
)
def test_options_behind_a_table_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="options"):
        parse_statement(text)


def test_an_identifier_over_an_expression_is_sparks() -> None:
    for text in (
        "SELECT * FROM IDENTIFIER('db.' || 't'), delta.`/a`",
        "SELECT * FROM IDENTIFIER(:a || 't') JOIN delta.`/a`",
        "INSERT INTO t SELECT * FROM IDENTIFIER('a' || 'b') JOIN delta.`/a`",
    ):
        found = parse_statement(text)
        whole = found.statement if isinstance(found.statement, PassThrough) else found.as_pass_through()
        assert [text[span.start : span.end] for span in whole.tables] == ["delta.`/a`"]
    with pytest.raises(UnsupportedOperationError, match="IDENTIFIER"):
        parse_statement("OPTIMIZE IDENTIFIER('a' || 'b')")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ALTER TABLE `my-table` ADD COLUMN x INT", ["my-table"]),
        ("ALTER TABLE a.b RECOVER PARTITIONS", ["a.b"]),
        ("COMMENT ON TABLE a.b IS 'x'", ["a.b"]),
        ("COMMENT ON COLUMN a.b.c IS 'x'", ["a.b", "a"]),
        ("BEGIN DECLARE x INT; ALTER TABLE a ADD COLUMN x INT; COMMENT ON TABLE b IS 'x'; END", ["a", "b"]),
        ("CREATE OR REPLACE TABLE a (x INT) USING parquet", ["a"]),
        ("REPLACE TABLE a AS SELECT 1", ["a"]),
        ("DELETE FROM a WHERE x", ["a"]),
        ("CREATE TABLE a AS SELECT * FROM alter", []),
        ("SELECT alter, table FROM x", []),
        ("INSERT INTO a SELECT 1", []),
    ],
)
def test_tables_that_spark_would_change_by_name_are_named(text: str, names: list[str]) -> None:
    found = parse_statement(text)
    whole = found.statement if isinstance(found.statement, PassThrough) else found.as_pass_through()
    assert [".".join(one.parts) for one in whole.changed if isinstance(one, TableReference)] == names


def test_names_and_statements_that_only_spark_knows_are_expressions() -> None:
    [named] = parsed("ALTER TABLE IDENTIFIER('a' || :b) ADD COLUMN x INT", PassThrough).changed
    assert isinstance(named, SqlText) and named.text == "'a' || :b"
    [text] = parsed("EXECUTE IMMEDIATE 'ALTER TABLE a ' || x INTO y USING 1", PassThrough).immediate
    assert text.text == "'ALTER TABLE a ' || x"


def test_a_column_by_path_gets_a_comment() -> None:
    found = parsed("COMMENT ON COLUMN delta.`/data/t`.s.`a b` IS 'x'", AlterColumn)
    assert (found.target.path, found.column, found.comment) == ("/data/t", "s.`a b`", "x")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t USING deltapy OPTIONS (path '/x', a 'b')",
        "CREATE OR REPLACE TABLE t USING `DeltaPy` LOCATION '/x' OPTIONS (a 1)",
        "CREATE TABLE t (a INT CHECK (a > 0)) USING deltapy LOCATION '/x'",
        "CREATE TABLE t USING deltapy LOCATION '/x' TBLPROPERTIES (a = 1, a = 2)",
        "BEGIN CREATE TABLE t (a INT) USING deltapy LOCATION '/x'; END",
        "ALTER TABLE ${t} ADD COLUMN x INT",
        "CREATE TABLE ${t} (a INT) USING deltapy",
        "ALTER TABLE t \x01 ADD COLUMN x INT",
    ],
)
def test_a_table_of_ours_is_not_created_by_spark_alone(text: str) -> None:
    with pytest.raises(DeltaError):
        parse_statement(text)


@pytest.mark.parametrize("blank", ["\u00a0", "\u1680", "\u2000", "\u200a", "\u2028", "\u202f", "\u205f", "\u3000"])
def test_blanks_are_those_of_spark(blank: str) -> None:
    [changed] = parse_statement(f"ALTER TABLE t{blank}ADD COLUMN x INT").as_pass_through().changed
    assert isinstance(changed, TableReference) and changed.parts == ("t",)
    with pytest.raises(UnsupportedOperationError, match="DROP of"):
        parse_statement(f"DROP TABLE IF EXISTS `delta`.`/x`{blank}")


def test_what_other_formats_have_too_is_left_to_spark() -> None:
    view = parse_statement("CREATE TEMP VIEW v AS SELECT * FROM cat.t VERSION AS OF 1")
    assert isinstance(view.statement, TemporaryView) and view.tables_in(view.statement.query) == ()
    [span] = view.tables_in(view.statement.query, lambda table: table.parts == ("cat", "t"))
    assert isinstance(span.table, TableReference) and span.table.version == 1
    tables = view.as_pass_through().tables
    assert all(isinstance(one.table, TableReference) and one.table.path is None for one in tables)
    parsed("CREATE TEMP VIEW IDENTIFIER('a' || 'b') AS SELECT 1", PassThrough)
    found = parse_statement(f"DELETE FROM {PATH} WHERE id IN (SELECT id FROM t VERSION AS OF 1)")
    assert isinstance(found.statement, Delete) and found.statement.condition is not None
    assert found.tables_in(found.statement.condition) == ()


@pytest.mark.parametrize(
    "time", ["current_timestamp - INTERVAL 1 HOUR", "current_date() - INTERVAL '1 day'", "a.b - c"]
)
def test_a_time_may_be_a_difference(time: str) -> None:
    [span] = parsed(f"SELECT * FROM {PATH} TIMESTAMP AS OF {time} WHERE a = 1", PassThrough).tables
    assert isinstance(span.table, TableReference) and span.table.timestamp is not None
    assert span.table.timestamp.text == time


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SHOW TABLES", None),
        ("SHOW TABLES LIKE 'x IN other.db'", None),
        ("SHOW TABLES /* IN other.db */ -- FROM other.db", None),
        ("show tables in `a b`.`c``d` LIKE 'x'", ("a b", "c`d")),
        ("SHOW TABLE EXTENDED /* FROM x.y */ FROM db LIKE 'a'", ("db",)),
        ("SHOW VIEWS FROM other . db", ("other", "db")),
        ("SHOW TABLES IN IDENTIFIER('other.db')", ("other", "db")),
        ("SHOW TABLES IN IDENTIFIER(concat('a', 'b'))", None),
        ("SHOW TABLES IN 1", None),
    ],
)
def test_where_tables_are_listed(text: str, found: tuple[str, ...] | None) -> None:
    assert parse_statement(text).listed_in == found
