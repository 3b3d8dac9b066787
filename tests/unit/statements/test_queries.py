"""Tables by path in the statements that are passed on to Spark, and arguments."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.errors import OptionError, SqlSyntaxError, UnsupportedOperationError, UserError
from delta_pyds.spark.catalog_names.managed import may_name_managed
from delta_pyds.statements.arguments import sql_literal
from delta_pyds.statements.kinds import (
    ChangesBound,
    ChangesClause,
    Delete,
    PassThrough,
    SqlText,
    TableChanges,
    TableReference,
    TemporaryView,
    Update,
)
from delta_pyds.statements.parse import parse_statement
from delta_pyds.statements.spark_statements import name_of, takes_frames
from tests.unit.statements.parsed import PATH, parsed


def spans(text: str, args: Any = None) -> list[str]:
    found = parse_statement(text, args).statement
    if not isinstance(found, PassThrough):
        found = parse_statement(text, args).as_pass_through()  # about a table by name
    return [text[span.start : span.end] for span in found.tables]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT * FROM <delta.`/a`>", 1),
        ("SELECT a.x FROM <delta.`/a`> AS a, <deltapy.`/b`> b JOIN <delta . `/c`> ON a.x = delta.`/b`", 3),
        ("SELECT * FROM <delta.`/a` VERSION AS OF 3> x WHERE y", 1),
        ("SELECT * FROM <delta.`/a` FOR SYSTEM_VERSION AS OF '3'> x", 1),
        ("SELECT * FROM <delta.`/a` TIMESTAMP AS OF '2020-01-01'> x", 1),
        ("SELECT * FROM <delta.`/a` FOR SYSTEM_TIME AS OF date_sub(current_date(), 1) - INTERVAL 2 HOURS> AS x", 1),
        ("SELECT * FROM <delta.`/a` TIMESTAMP AS OF now() - INTERVAL '1 day'>", 1),
        ("SELECT * FROM <delta.`/a` TIMESTAMP AS OF now() - INTERVAL '1 day'> WHERE a = 1", 1),
        ("SELECT * FROM <delta.`/a` TIMESTAMP AS OF now() - INTERVAL '1' DAY> d JOIN <delta.`/b`>", 2),
        ("SELECT * FROM <spark_catalog.delta.`/a`>, spark_catalog.x.`/b`", 1),
        ("SELECT * FROM <delta.`/a`@v12> LIMIT 5", 1),
        ("SELECT * FROM <delta.`/a`@20200131180000000>", 1),
        ("SELECT * FROM <table_changes('/a', 2, 10)> WHERE x", 1),
        ("SELECT * FROM <table_changes_by_path('/a', '2020-01-01')> x", 1),
        ("WITH a AS (SELECT * FROM <delta.`/a`>) SELECT * FROM a, LATERAL explode(x), <delta.`/b`>", 2),
        ("SELECT (SELECT max(x) FROM <delta.`/a`>) FROM (<delta.`/b`> JOIN <delta.`/c`> USING (x)), <delta.`/d`>", 4),
        ("SELECT 1 FROM t WHERE x IN (SELECT y FROM <delta.`/a`>) AND delta.`/b` > 1", 1),
        ("SELECT * FROM <delta.`/a`> a JOIN u ON u.x IS DISTINCT FROM a.x, <delta.`/b`>", 2),
        ("SELECT extract(day FROM delta.`/a`), x IS NOT DISTINCT FROM delta.`/b`, trim(BOTH 'x' FROM delta.`/c`)", 0),
        ("SELECT '<delta.`/a`>' AS x -- FROM delta.`/a`\n/* FROM delta.`/b` */", 0),
        ("SELECT 1 FROM <delta.`/a`> UNION SELECT 2 FROM <delta.`/b`> ORDER BY 1, delta.`/c`", 2),
        ("EXPLAIN EXTENDED SELECT * FROM <delta.`/a`>", 1),
        (
            "SELECT * FROM <STREAM t> x, <stream(a.b)> JOIN <STREAM delta.`/a` WITH (a.b = 'c', 'd' 1)> AS z USING (x)",
            3,
        ),
        ("SELECT t.x FROM (<STREAM t>) WHERE stream > 1 -- FROM stream u", 1),
        ("SELECT 1 FROM <delta.`/a` CHANGES FROM VERSION 1 EXCLUSIVE TO SYSTEM_VERSION '2' INCLUSIVE> x, <a.b@v1>", 2),
        ("SELECT 1 FROM u JOIN <a.b CHANGES FROM TIMESTAMP now() - INTERVAL 1 DAY EXCLUSIVE> USING (x)", 1),
        ("SELECT 1 FROM (<t CHANGES FROM SYSTEM_TIME '2026' TO TIMESTAMP '2027' WITH (a = 'b', 'c' 1)> AS x)", 1),
        ("SELECT 1 FROM <a.b CHANGES FROM TIMESTAMP now() - INTERVAL 1 DAY TO TIMESTAMP now()>, u", 1),
        ("SELECT 1 FROM <a.b TIMESTAMP AS OF now() - INTERVAL '1 2' DAY TO HOUR>, u", 1),
        ("FROM <STREAM t CHANGES WITH (a = 'b')> x SELECT 1", 1),
        ("SELECT * FROM <STREAM delta.`/a` CHANGES FROM VERSION 1> WHERE changes > 1", 1),
        # an alias, a table and a column of this name
        ("SELECT changes, * FROM t CHANGES, changes, u AS changes WHERE changes.x IS DISTINCT FROM version", 0),
        ("SELECT stream.x FROM stream AS s, stream JOIN stream ON y UNION SELECT * FROM stream WHERE x", 0),
        ("SELECT stream(1), * FROM `stream` t, STREAM range(3), STREAM f(x => 1) WHERE stream.t.x = stream", 0),
        ("INSERT INTO stream (x) SELECT 1 FROM stream", 0),
        ("FROM <delta.`/a`> SELECT x", 1),
        ("TABLE <delta.`/a`>", 1),
        ("SELECT * FROM f(TABLE(<delta.`/a`>), x => delta.`/b`)", 1),
        ("CREATE TABLE t USING parquet AS SELECT * FROM <delta.`/a`>", 1),
        ("INSERT INTO parquet.`/x` SELECT * FROM <delta.`/a`>", 1),
        ("INSERT OVERWRITE DIRECTORY '/x' SELECT * FROM <delta.`/a`>", 1),
        ("DESCRIBE TABLE <delta.`/a`>", 1),
        ("SHOW PARTITIONS delta.`/a`", 0),
        ("SELECT * FROM delta.t, delta.`t`, db.delta.`/x`, `delta.``/x```", 0),
        ("SELECT * FROM <delta.`/a b/``c`` {x} %20`> x", 1),
        ("SELECT * FROM <t VERSION AS OF 3>", 1),
        ("SELECT * FROM <delta.`/a`> |> WHERE x |> JOIN <delta.`/b`> ON y", 2),
        ("SELECT * FROM VALUES (1), (2) AS t(a), delta.`/a`", 0),
        ("SELECT * FROM <delta.`/a`> TABLESAMPLE (5 PERCENT), <delta.`/b`> PIVOT (sum(x) FOR y IN (1, 2))", 2),
    ],
)
def test_tables_are_found_where_spark_takes_one(text: str, wanted: int) -> None:
    plain = text if wanted == 0 else text.replace("<", "").replace(">", "")
    named = [piece.split(">")[0] for piece in text.split("<")[1:]] if wanted else []

    assert len(named) == wanted
    assert spans(plain) == named


def test_names_of_catalogs_are_found_where_there_are_any(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "SELECT prod.main.db.t.x FROM prod.main.db.t JOIN `prod`.a.b u, prod.t, spark_catalog.a.b, c -- prod.a.b"
    monkeypatch.setenv("DELTA_PYDS_CATALOGS", str(tmp_path / "catalogs.json"))
    assert spans(text) == [] and not may_name_managed(text)
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_URL", "sqlite:///c.db")
    assert spans(text) == ["prod.main.db.t", "`prod`.a.b"]
    assert spans("EXPLAIN SELECT count(*) FROM IDENTIFIER('prod.a.b')@v3") == ["IDENTIFIER('prod.a.b')@v3"]
    for said in (text, "DELETE FROM `prod` . `a b` . `c.d`", "TABLE prod.a.b", "SELECT * FROM(prod.a.b)"):
        assert may_name_managed(said)
    for said in ("SELECT * FROM prod.t", "SELECT x.prod.a.b FROM t", "SELECT prod_a.b.c", "SELECT 'prod'.a.b"):
        assert not may_name_managed(said)
    (tmp_path / "catalogs.json").write_text('{"prod": {"url": "sqlite:///')
    with pytest.raises(OptionError, match="must be JSON"):
        parse_statement("SELECT * FROM other.a.b")
    parse_statement("SELECT * FROM a.b")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM <t>",
        "SELECT t FROM <`t`> AS x, <s.t> y JOIN <spark_catalog.s.`T`> ON x.t = t",
        "SELECT * FROM (<t> JOIN (<u>) USING (t, u)), LATERAL explode(a) AS t(u), <v>",
        "SELECT * FROM <IDENTIFIER('s.t')> WHERE id IN (SELECT u FROM <u> WHERE EXISTS (FROM <v>))",
        "SELECT (SELECT max(x) FROM <t>) UNION ALL SELECT t FROM <u> ORDER BY 1, u",
        "EXPLAIN FORMATTED SELECT * FROM <t>",
        "FROM <t> |> WHERE x |> EXTEND 1 AS a, t AS b |> JOIN <u> ON y |> SELECT a, u",
        "FROM <t> SELECT x",
        "TABLE <t>",
        "INSERT INTO t SELECT * FROM <t>",
        "CREATE OR REPLACE TABLE t USING parquet AS SELECT * FROM <t>",
        "UPDATE parquet.`/a` SET a = (SELECT max(t) FROM <t>)",
        # read at a version: taken in any case
        "SELECT * FROM t VERSION AS OF 3, <u>",
        # another meaning: of WITH, of a part of a name, of words that belong to the name
        "WITH t AS (SELECT 1), u (SELECT * FROM <v>) SELECT * FROM T, `u`, <s.t>",
        "WITH RECURSIVE t MAX RECURSION LEVEL 3 AS (SELECT 1) SELECT * FROM t JOIN <u>",
        # which has it in its scope alone, and after it alone
        "SELECT * FROM <t> JOIN (WITH t AS (SELECT 1 AS a) SELECT * FROM t) u USING (a)",
        "WITH t AS (SELECT * FROM <u>), u AS (SELECT * FROM t) SELECT * FROM u",
        "WITH IDENTIFIER('t') AS (SELECT 1) SELECT * FROM t",
        'WITH "t" AS (SELECT 1) SELECT * FROM t, <u>',
        "WITH ${names} SELECT * FROM t",
        "SELECT s.t.id, u.x FROM s.t JOIN <u>",
        "SELECT s.T.* FROM t, <u>",
        "FROM t INSERT INTO u SELECT t INSERT INTO v SELECT u",
        "SELECT * FROM t TABLESAMPLE (5 PERCENT), u WITH (a = 1), <v>",
        # no tables
        "SELECT t, extract(day FROM t), x IS NOT DISTINCT FROM u, trim(BOTH 'x' FROM v) FROM <w>",
        "SELECT * FROM <s> JOIN <u> ON s.a IS NOT DISTINCT FROM b, <v> WHERE a IS DISTINCT FROM b, c",
        "SELECT * FROM <s> LATERAL VIEW OUTER explode(m) t AS k, t LATERAL VIEW explode(n) u AS v WHERE k IN (t, u)",
        "SELECT extended t, f(t), t.u FROM <v> GROUP BY t, u WINDOW t AS (ORDER BY u)",
        "SELECT * FROM t(1), `t`(2), VALUES (1), u",
        # what keeps the name, writes it, or says something of it
        "CREATE VIEW v AS SELECT * FROM t",
        "EXPLAIN CREATE VIEW v AS SELECT * FROM t",
        "CREATE FUNCTION f() RETURN SELECT max(id) FROM t",
        "ALTER VIEW v AS SELECT * FROM t",
        "EXPLAIN DELETE FROM t",
        "WITH u AS (SELECT 1) DELETE FROM t WHERE id IN (TABLE u)",
        "EXPLAIN UPDATE t SET a = 1",
        "INSERT INTO TABLE t TABLE u",
        "CREATE TABLE t LIKE u",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "CACHE TABLE t",
        "SHOW COLUMNS FROM t",
        "DESCRIBE QUERY SELECT * FROM t",
        "BEGIN SELECT * FROM t; END",
    ],
)
def test_names_are_read_where_only_the_table_can_be_meant(text: str) -> None:
    plain = text.replace("<", "").replace(">", "") if "|>" not in text else re.sub(r"<(\w+)>", r"\1", text)
    found = parse_statement(plain).statement
    statement = found if isinstance(found, PassThrough) else parse_statement(plain).as_pass_through()

    named = [plain[span.start : span.end] for span in statement.named]

    assert named == re.findall(r"<([^<>]+)>", text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"SELECT count(*) FROM {PATH}", [("count", None)]),
        (f"select COUNT(1) n, min(id), MAX(`a b`) AS m FROM {PATH} VERSION AS OF 3 t;", ["count", "id", "a b"]),
        (f"SELECT count(*) FROM {PATH} WHERE a", []),
        (f"SELECT count(*) FROM {PATH} JOIN x", []),
        (f"SELECT count(*) FROM {PATH}, x", []),
        (f"SELECT count(id) FROM {PATH}", []),
        (f"SELECT count(DISTINCT id) FROM {PATH}", []),
        (f"SELECT count(*) + 1 FROM {PATH}", []),
        (f"SELECT max(id) FILTER (WHERE a) FROM {PATH}", []),
        (f"SELECT max(id) OVER () FROM {PATH}", []),
        (f"SELECT max(a.b) FROM {PATH}", []),
        (f"SELECT count(*) FROM {PATH} TABLESAMPLE (5 ROWS)", []),
        (f"SELECT count(*) FROM {PATH} GROUP BY ALL", []),
        (f"SELECT count(*) FROM {PATH} LIMIT 0", []),
        (f"SELECT count(*) FROM {PATH} t (a, b)", []),
        ("SELECT count(*) FROM x", [("count", None)]),
        ("WITH x AS (SELECT 1) SELECT count(*) FROM x", []),
        ("SELECT count(*) FROM table_changes('/a', 1)", []),
        (f"EXPLAIN SELECT count(*) FROM {PATH}", []),
    ],
)
def test_what_is_asked_of_a_whole_table_is_known(text: str, wanted: list[object]) -> None:
    found = parsed(text, PassThrough).aggregates
    assert [one.column or one.kind for one in found] == [one[0] if isinstance(one, tuple) else one for one in wanted]


def test_a_table_says_when_it_is_read() -> None:
    found = parsed("SELECT * FROM delta.`/a`@V3, delta.`/b` TIMESTAMP AS OF current_date() - 1 c", PassThrough).tables
    first, second = (span.table for span in found)
    assert isinstance(first, TableReference) and isinstance(second, TableReference)
    assert (first.path, first.version) == ("/a", 3)
    assert second.timestamp is not None and second.timestamp.text == "current_date() - 1"
    [span] = parsed("SELECT * FROM table_changes('delta.`/a`', '2020-01-01')", PassThrough).tables
    assert isinstance(span.table, TableChanges)
    assert (span.table.name, [b.text for b in span.table.bounds]) == ("delta.`/a`", ["'2020-01-01'"])


def test_tables_in_a_piece_have_places_in_the_piece() -> None:
    whole = parse_statement(f"DELETE FROM {PATH} t WHERE x = :x AND EXISTS (SELECT 1 FROM delta.`/b` b)", {"x": "long"})
    assert isinstance(whole.statement, Delete) and whole.statement.condition is not None
    piece = whole.statement.condition
    assert [piece.text[s.start : s.end] for s in whole.tables_in(piece)] == ["delta.`/b`"]


def test_a_place_in_a_piece_is_one_in_the_statement() -> None:
    text = f"UPDATE {PATH} SET a = :x + b c WHERE d"
    whole = parse_statement(text, {"x": 12345})
    assert isinstance(whole.statement, Update)
    query = f"INSERT INTO {PATH} SELECT 1 WHERE a b c"
    inner = "SELECT * FROM (SELECT 1 WHERE a b c)"
    assert parse_statement(query).position_of(inner, inner.index("b")) == query.index("b c")
    given = whole.expression(whole.statement.assignments[0].value)
    assert given == "(12345 + b c)"  # alone, c would be a name
    assert whole.position_of(given, given.index("c")) == text.index("c WHERE")
    assert whole.expression(SqlText("d", 0)) == "d" and whole.position_of("d2", 0) is None


def test_what_spark_quotes_of_a_piece_is_found_in_the_statement() -> None:
    text = f"UPDATE {PATH} SET a = 'b + 1', c = :x || b, d = 2 * b WHERE b > 1"
    whole = parse_statement(text, {"x": "'long value'"})
    assert whole.position_of_fragment("b", 4) == text.index("b WHERE")
    assert whole.position_of_fragment("b", 0) == text.index("b > 1")
    # three tokens begin so, and none of them stands there in its piece
    assert whole.position_of_fragment("b", 7) is None
    # one alone is certain, wherever Spark saw it
    assert whole.position_of_fragment("2 * b", 100) == text.index("2 * b")
    assert whole.position_of_fragment("b + 1", 1) is None and whole.position_of_fragment("", 0) is None
    query = parse_statement(f"INSERT INTO {PATH} SELECT id, id FROM x")
    assert query.position_of_fragment("id", len("SELECT * FROM (SELECT id, ")) == len(f"INSERT INTO {PATH} SELECT id, ")


def test_a_view_over_a_path_is_ours() -> None:
    found = parsed("CREATE OR REPLACE TEMP VIEW v (a, b) AS SELECT * FROM delta.`/a`", TemporaryView)
    assert (found.name.parts, found.columns, found.replace, found.is_global) == (("v",), ("a", "b"), True, False)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM delta.`/a`@x3",
        "SELECT * FROM delta.`/a` VERSION AS OF x",
        "SELECT * FROM delta.`/a` TIMESTAMP AS OF",
        "SELECT * FROM table_changes('/a')",
        "SELECT * FROM table_changes(a, 1)",
        "SELECT 'x FROM delta.`/a`",
    ],
)
def test_what_is_wrong_with_a_table_is_an_error(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_statement(text)


# --- arguments


def test_arguments_are_values_and_places_stay_the_users() -> None:
    text = "DELETE FROM delta.`/a` WHERE a = :a AND b IN(:b,? , :c) AND v:x = ':a' AND t.v:a = :long_name x)"
    args = {"a": "text", "b": -1, "c": None, "long_name": 1}
    with pytest.raises(SqlSyntaxError) as found:
        parse_statement(text, args)
    assert found.value.parameters["position"] == len(text) - 1
    with pytest.raises(UserError, match=f"position {text.index('?')} ") as lacks:
        parse_statement(text[:-2], args)
    assert lacks.value.code == "UNBOUND_SQL_PARAMETER"
    bound = parsed("DELETE FROM delta.`/a` WHERE a = ? AND b-? = v:x", Delete, ["it's", -1]).condition
    assert bound is not None and bound.text == "a = CAST(X'69742773' AS STRING) AND b- -1 = v:x"


@pytest.mark.parametrize("name", ["location", "comment", "values", "history", "detail", "filter", "all", "default"])
def test_a_field_of_a_variant_is_no_argument(name: str) -> None:
    for text in (f"{name}:n = 1", f"v:{name}:n = 1", f"t.{name} :n = 1"):
        found = parsed(f"DELETE FROM {PATH} t WHERE {text}", Delete, {"n": 5}).condition
        assert found is not None and found.text == text
    found = parsed(f"DELETE FROM {PATH} WHERE a = {name} AND b IN (:n) AND:n", Delete, {"n": 5}).condition
    assert found is not None and found.text == f"a = {name} AND b IN (5) AND 5"


def test_arguments_may_name_a_table_and_a_version() -> None:
    assert parsed("DELETE FROM IDENTIFIER(:t)", Delete, {"t": PATH}).target.path == "/data/t"
    text = "SELECT * FROM delta.`/a` VERSION AS OF :v WHERE x = :x AND y = :y"
    found = parsed(text, PassThrough, {"v": 3, "x": 1})
    [span] = found.tables
    assert isinstance(span.table, TableReference) and span.table.version == 3
    assert text[span.start : span.end] == "delta.`/a` VERSION AS OF :v"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (5, "5"),
        (-5, " -5"),
        (1.5, "CAST('1.5' AS DOUBLE)"),
        ("a b", "'a b'"),
        ("a\\", "CAST(X'615c' AS STRING)"),
        ("${x}", "CAST(X'247b787d' AS STRING)"),
        (b"\x00", "X'00'"),
        (Decimal("-1.50"), " -1.50BD"),
        (dt.date(2020, 1, 31), "DATE'2020-01-31'"),
        (dt.datetime(2020, 1, 31, 18, tzinfo=dt.timezone.utc), "TIMESTAMP_LTZ'2020-01-31 18:00:00Z'"),
        ([1], None),
        (1 << 63, None),
        ("\ud800'", None),
    ],
)
def test_literals(value: Any, text: str | None) -> None:
    assert sql_literal(value) == text


@pytest.mark.parametrize(
    "text",
    [
        f"DELETE FROM {PATH} WHERE a = ${{x}}",
        f"DELETE FROM {PATH} WHERE a = '${{x}}'",
        "DELETE FROM delta.`/${x}`",
        "OPTIMIZE ${x}",
        "SELECT * FROM delta.`/${x}`",
    ],
)
def test_variables_of_the_session_are_refused_in_commands(text: str) -> None:
    with pytest.raises(UserError, match="holds a variable") as caught:
        parse_statement(text)
    assert caught.value.code == "DELTA_UNSUPPORTED_VARIABLE_IN_COMMAND"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT *|, _metadata.file_path FROM t",
        "SELECT DISTINCT t.*|, 2 * a, count(*), count(t.a), x.*| FROM (SELECT *|, _metadata.row_index FROM t) t, x",
        "SELECT a * _metadata.row_index, (SELECT count(*) FROM u) FROM t",
        "INSERT INTO u SELECT a.*|, `_METADATA` FROM t a",
        "SELECT a FROM t",
    ],
)
def test_stars_are_found_that_would_show_the_files(text: str) -> None:
    plain = text.replace("|", "")
    found = parse_statement(plain)
    assert found.asks_for_files == ("metadata" in text.lower())
    places = found.stars_in(None)
    assert [plain[place - 1] for place in places] == ["*"] * text.count("|")
    assert [plain[:place] for place in places] == [
        "".join(text.split("|")[: number + 1]) for number in range(text.count("|"))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT struct(*), _metadata FROM t",
        "SELECT * EXCEPT (a), _metadata FROM t",
        "SELECT _metadata.file_name, * FROM t NATURAL JOIN u",
        "SELECT * FROM t PIVOT (max(_metadata.row_index) FOR p IN (1, 2))",
        "FROM t |> WHERE _metadata.row_index > 1",
        "SELECT _metadata.row_id, _metadata.file_name FROM t",
        "SELECT t._metadata.`ROW_COMMIT_VERSION`, _metadata FROM t",
        "SELECT _metadata.base_row_id FROM t",
    ],
)
def test_what_would_show_the_files_in_another_way_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="_metadata"):
        parse_statement(text).stars_in(None)


def test_row_ids_are_asked_for_where_nothing_else_of_the_column_is() -> None:
    alone = parse_statement("SELECT *, _metadata.row_id FROM t WHERE t._metadata.`ROW_COMMIT_VERSION` > 1")
    assert alone.asks_for_row_ids and len(alone.stars_in(None)) == 1
    for text in ("SELECT _metadata FROM t", "SELECT id FROM t", "SELECT _metadata.row_id, _metadata.row_index FROM t"):
        assert not parse_statement(text).asks_for_row_ids


def test_letters_beyond_ascii_stand_in_backticks_in_sql_alone() -> None:
    with pytest.raises(SqlSyntaxError) as found:
        parse_statement("OPTIMIZE delta.`/x` ZORDER BY (größe)")
    assert found.value.code == "INVALID_IDENTIFIER"
    assert parse_statement("OPTIMIZE delta.`/x` ZORDER BY (`größe`)").statement is not None
    assert name_of("schön.größe") == ("schön", "größe")


def test_a_stream_is_another_table_than_what_is_read_once() -> None:
    found = parse_statement("SELECT count(*) FROM STREAM delta.`/a` WITH (startingVersion = 3, 'x' = 'y')").statement
    assert isinstance(found, PassThrough)
    [span] = found.tables
    assert isinstance(span.table, TableReference)
    assert (span.table.path, span.table.stream) == ("/a", (("startingVersion", "3"), ("x", "y")))
    assert found.aggregates == ()  # the log does not answer for what comes
    assert parse_statement("SELECT 1 FROM STREAM t").names_in(None)[0].parts == ("t",)
    assert spans("SELECT 1 FROM STREAM t IDENTIFIED BY x") == []
    with pytest.raises(UnsupportedOperationError, match="IDENTIFIED BY"):
        parse_statement("SELECT 1 FROM STREAM delta.`/a` IDENTIFIED BY x")


def test_changes_are_another_table_than_the_rows() -> None:
    clause = "CHANGES FROM VERSION 1 EXCLUSIVE TO VERSION '3' WITH (computeUpdates = true)"
    found = parse_statement(f"SELECT count(*) FROM delta.`/a` {clause}").statement
    assert isinstance(found, PassThrough)
    [span] = found.tables
    assert isinstance(span.table, TableReference)
    bounds = (ChangesBound("1", False), ChangesBound("3", True))
    assert span.table.changes == ChangesClause(True, bounds, (("computeUpdates", "true"),))
    assert found.aggregates == ()  # the log has no number of changes
    streamed = parse_statement("SELECT 1 FROM STREAM delta.`/a` CHANGES WITH (x = 'y') u").statement
    assert isinstance(streamed, PassThrough) and isinstance(streamed.tables[0].table, TableReference)
    assert streamed.tables[0].table.changes == ChangesClause(True, ())
    assert streamed.tables[0].table.stream == (("x", "y"),)
    # the numbers of versions may be arguments
    asked = parse_statement("SELECT 1 FROM delta.`/a` CHANGES FROM VERSION :v", {"v": 7}).statement
    assert isinstance(asked, PassThrough) and isinstance(asked.tables[0].table, TableReference)
    assert asked.tables[0].table.changes == ChangesClause(True, (ChangesBound("7", True),))


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        ("delta.`/a` CHANGES FROM VERSION -1", "expected the number of a version"),
        ("delta.`/a` CHANGES FROM VERSION 1L", "expected the number of a version"),
        ("delta.`/a` CHANGES FROM VERSION AS OF 1", "expected the number of a version"),
        ("delta.`/a` CHANGES FROM TIMESTAMP (SELECT 1)", "must not contain a query"),
    ],
)
def test_changes_that_spark_would_not_parse_are_an_error(clause: str, words: str) -> None:
    with pytest.raises(SqlSyntaxError, match=words):
        parse_statement(f"SELECT * FROM {clause}")
    # of another table it is Spark's error
    assert spans(f"SELECT * FROM {clause.replace('delta.`/a`', 'a.b')}") == []
    assert spans("SELECT * FROM STREAM a.b CHANGES FROM VERSION 1 TO VERSION 2") == []


def test_spark_sets_a_variable_to_what_a_table_by_path_has() -> None:
    found = parse_statement(f"SET VAR x = (SELECT max(a) FROM {PATH})").statement
    assert isinstance(found, PassThrough)
    assert takes_frames(found.verb)
    assert not takes_frames("SET x")
