"""MERGE, UPDATE, DELETE, TRUNCATE and INSERT: clauses, and expressions cut where Spark cuts them."""

from __future__ import annotations

import pytest

from delta_pyds.errors import SqlSyntaxError, UnsupportedOperationError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.statements.default_values import default_values
from delta_pyds.statements.kinds import (
    CachedView,
    Delete,
    Insert,
    Merge,
    SqlText,
    TableChanges,
    TableReference,
    Truncate,
    Update,
)
from delta_pyds.statements.parse import parse_statement
from tests.unit.statements.parsed import PATH, parsed

# each is one expression, whatever stands in it
EXPRESSIONS = [
    "id = 1",
    "a = ';' AND b = ')'",
    "a /* ) */ = 1 -- no ' end\n AND b",
    "CASE WHEN a THEN 1 ELSE 2 END = 1",
    "CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END = 'x'",
    "CASE WHEN a THEN CASE WHEN b THEN 1 END ELSE 2 END > 0",
    "end > 5 AND case = 2 AND t.when = 1",
    "`a``b` = 'it''s' AND r'\\' <> \"x\"",
    "EXISTS (SELECT 1 FROM b WHERE b.x = t.x AND b.y IN (1, 2))",
    "a IN (SELECT max(x) OVER (PARTITION BY y ORDER BY z) FROM u)",
    "filter(items, (x, i) -> x > i AND i < 3)[0].y IS NOT NULL",
    "x::map<string,array<array<int>>>['a'][0] = 1",
    "v:a.b::string = 'x'",
    "a IS DISTINCT FROM b",
    "d > DATE '2020-01-01' - INTERVAL 1 DAY + INTERVAL '1-2' YEAR TO MONTH",
    "t.values.set.where = 1",
    "a LIKE ANY ('%x', '_y') AND b LIKE 'c/%' ESCAPE '/'",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_cut_exactly_in_every_place(text: str) -> None:
    condition = parsed(f"DELETE FROM {PATH} WHERE {text}", Delete).condition
    assert condition is not None and condition.text == text
    changed = parsed(f"UPDATE {PATH} SET a = {text}, b.c = {text} WHERE {text} ;", Update)
    assert [one.value.text for one in changed.assignments] == [text, text]
    assert changed.condition is not None and changed.condition.text == text
    merged = parsed(
        f"MERGE INTO {PATH} USING s ON {text} WHEN MATCHED AND {text} THEN UPDATE SET a = {text}, b = {text} "
        f"WHEN NOT MATCHED AND {text} THEN INSERT (a, b) VALUES ({text}, {text}) "
        f"WHEN NOT MATCHED BY SOURCE AND {text} THEN DELETE",
        Merge,
    )
    assert merged.condition.text == text
    assert [clause.condition.text for clause in merged.clauses if clause.condition] == [text] * 3
    assert [one.value.text for clause in merged.clauses for one in clause.assignments or ()] == [text] * 4
    replaced = parsed(f"INSERT INTO {PATH} REPLACE WHERE {text} SELECT 1", Insert).replace_where
    assert replaced is not None and replaced.text == text


def test_tables_may_be_named_in_every_way() -> None:
    for name, wanted in (
        ("delta.`/data/t`", "/data/t"),
        ("`DeltaPy` . /* c */ `s3://b/a``b`", "s3://b/a`b"),
        ("IDENTIFIER('delta.`/data/t`')", "/data/t"),
    ):
        assert parsed(f"delete from {name}", Delete).target.path == wanted
    for name in ("t", "db.t", "delta.t", "delta.`t`", "c.delta.`/x`"):
        assert parsed(f"DELETE FROM {name}", Delete).target.path is None


def test_delete_and_update_have_aliases() -> None:
    assert parsed(f"DELETE FROM {PATH}", Delete) == Delete(TableReference(("delta", "/data/t"), PATH, 12), None, None)
    for alias in ("AS t", "t", "`t`"):
        assert parsed(f"DELETE FROM {PATH} {alias} WHERE x", Delete).alias == "t"
        assert parsed(f"UPDATE {PATH} {alias} SET x.`y z` = 1", Update).assignments[0].column == "x.`y z`"
    assert parsed(f"TRUNCATE TABLE {PATH}", Truncate).target.path == "/data/t"


def test_merge_has_every_clause() -> None:
    found = parsed(
        f"""MERGE WITH SCHEMA EVOLUTION INTO {PATH} AS t
        USING (SELECT *, ')' AS q FROM delta.`/s`) AS s
        ON t.id = s.id
        WHEN MATCHED AND s.gone THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED BY TARGET THEN INSERT *
        WHEN ! MATCHED BY SOURCE THEN UPDATE SET t.a = 1""",
        Merge,
    )
    assert (found.evolves, found.alias, found.source_alias) == (True, "t", "s")
    assert isinstance(found.source, SqlText) and found.source.text == "SELECT *, ')' AS q FROM delta.`/s`"
    assert [(clause.kind, clause.action, clause.assignments is None) for clause in found.clauses] == [
        ("matched", "delete", True),
        ("matched", "update", True),
        ("not_matched", "insert", True),
        ("not_matched_by_source", "update", False),
    ]
    end = "ON a = b WHEN MATCHED THEN DELETE"
    at = parsed(f"MERGE INTO {PATH} USING delta.`/s`@v3 AS s {end}", Merge).source
    assert isinstance(at, TableReference) and (at.path, at.version) == ("/s", 3)
    changes = parsed(f"MERGE INTO {PATH} USING table_changes('/s', 2) s {end}", Merge).source
    assert isinstance(changes, TableChanges) and changes.name == "/s"


def test_every_word_may_be_an_alias() -> None:
    for text, named in (
        ("AS where WHERE a", "where"),
        ("AS WHERE a", "AS"),
        ("`x y`", "x y"),
    ):
        found = parsed(f"DELETE FROM {PATH} {text}", Delete)
        assert (found.alias, found.condition is None) == (named, named == "x y")


def test_insert_has_every_form() -> None:
    found = parsed(f"INSERT INTO TABLE {PATH} (a, `b c`) VALUES (1, 2), (3, 4)", Insert)
    assert found.columns == ("a", "b c") and found.query.text == "VALUES (1, 2), (3, 4)" and not found.overwrite
    found = parsed(f"INSERT OVERWRITE {PATH} PARTITION (p = 'x', q) BY NAME SELECT 1", Insert)
    assert found.overwrite and found.by_name and found.partition is not None
    assert [(name, value and value.text) for name, value in found.partition] == [("p", "'x'"), ("q", None)]
    assert parsed(f"INSERT INTO {PATH} (SELECT 1)", Insert).query.text == "(SELECT 1)"
    assert parsed(f"INSERT INTO {PATH} (map, values) TABLE x", Insert).columns == ("map", "values")
    assert parsed(f"INSERT INTO {PATH} WITH a AS (SELECT 1) SELECT * FROM a;", Insert).query.text.endswith("a")
    assert parsed(f"INSERT INTO {PATH} REPLACE USING (a, b) SELECT 1", Insert).replace_using == ("a", "b")
    named = parsed(f"INSERT INTO {PATH} t BY NAME REPLACE USING (a) SELECT 1 AS a", Insert)
    assert (named.by_name, named.replace_using) == (True, ("a",))
    assert parsed(f"INSERT INTO {PATH} AS t REPLACE USING (a) SELECT /*+ x */ 1", Insert).replace_using == ("a",)
    found = parsed(f"INSERT INTO {PATH} REPLACE WHERE table > 1 SELECT 1", Insert)
    assert found.replace_where is not None and found.replace_where.text == "table > 1"
    found = parsed(f"INSERT INTO {PATH} REPLACE WHERE a IN (SELECT 1) (SELECT 2)", Insert)
    assert found.replace_where is not None and found.replace_where.text == "a IN (SELECT 1)"


_MERGE = f"MERGE INTO {PATH} t USING s ON a = b"
_GONE = " WHEN NOT MATCHED BY SOURCE THEN DELETE"


# codes are Spark's; what its grammar does not take goes first, wherever it stands
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (_MERGE, "MERGE_WITHOUT_WHEN"),
        (f"{_MERGE})", "PARSE_SYNTAX_ERROR"),
        (_MERGE + " WHEN MATCHED THEN DELETE" * 2, "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
        (_MERGE + " WHEN NOT MATCHED THEN INSERT *" * 2, "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION"),
        (_MERGE + _GONE * 2, "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION"),
        (_MERGE + _GONE * 2 + " )", "PARSE_SYNTAX_ERROR"),
        (f"{_MERGE}{_GONE} WHEN MATCHED THEN DELETE", "PARSE_SYNTAX_ERROR"),
        (f"{_MERGE} WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)", "MERGE_INSERT_VALUE_COUNT_MISMATCH"),
        (f"DELETE /*+ COALESCE(1) */ FROM {PATH}", "PARSE_SYNTAX_ERROR"),
        (f"INSERT INTO {PATH} t REPLACE WHERE a SELECT 1", "INSERT_REPLACE_WHERE_TABLE_ALIAS_NOT_ALLOWED"),
        (f"{_MERGE} WHEN NOT THEN DELETE", "PARSE_SYNTAX_ERROR"),
        (f"DELETE FROM {PATH} t (a)", "COLUMN_ALIASES_NOT_ALLOWED"),
        (f"INSERT INTO {PATH} PARTITION (p = 1, P = 2) SELECT 1", "DUPLICATE_KEY"),
        (f"CREATE TABLE {PATH} (a INT NOT NULL NOT NULL)", "CREATE_TABLE_COLUMN_DESCRIPTOR_DUPLICATE"),
        (f"CREATE TABLE {PATH} (a INT) COMMENT 'a' COMMENT 'b'", "DUPLICATE_CLAUSES"),
        (f"ALTER TABLE {PATH} SET TBLPROPERTIES (a = 1, a = 2)", "DUPLICATE_KEY"),
    ],
)
def test_what_makes_no_sense_has_the_code_that_spark_gives_it(text: str, code: str) -> None:
    with pytest.raises(SqlSyntaxError) as found:
        parse_statement(text)
    assert found.value.code == code


# where the mark stands, something else should
@pytest.mark.parametrize(
    ("marked", "reason"),
    [
        (f"DELETE FROM {PATH} t ¦(a) WHERE x", "cannot have column aliases"),
        (f"DELETE FROM {PATH} WHERE¦", "an expression is missing"),
        (f"DELETE FROM {PATH} ¦VERSION AS OF 3", "leave the version out"),
        (f"DELETE FROM {PATH} WHERE ¦(a = 1", "not closed"),
        (f"DELETE FROM {PATH} WHERE a = 1¦)", "should end"),
        (f"DELETE FROM {PATH} WHERE a[1¦) = 1", "not balanced"),
        (f"DELETE FROM {PATH} WHERE a = ¦'x", "not closed"),
        (f"UPDATE {PATH} WHERE ¦x", "expected SET"),
        (f"UPDATE {PATH} SET a ¦> 1", "expected ="),
        (f"UPDATE {PATH} SET a = 1 WHERE x; ¦SELECT 1", "should end"),
        (f"MERGE INTO {PATH} USING s ON a = b¦", "expected WHEN"),
        (f"MERGE INTO {PATH} USING s ON a WHEN MATCHED THEN ¦INSERT *", "expected UPDATE"),
        (f"MERGE INTO {PATH} USING s ON a WHEN NOT MATCHED THEN INSERT ¦(a) VALUES (1, 2)", "1 columns"),
        (f"MERGE INTO {PATH} USING s ON a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET ¦*", "needs assignments"),
        (f"MERGE INTO {PATH} USING s ON a WHEN NOT MATCHED THEN INSERT * ¦WHEN MATCHED THEN DELETE", "order must be"),
        (f"INSERT INTO {PATH} (a, b)¦", "expected a query"),
        (f"INSERT INTO {PATH} ¦BY SELECT 1", "expected a query"),
    ],
)
def test_an_error_points_at_its_place(marked: str, reason: str) -> None:
    place = marked.index("¦")
    with pytest.raises(SqlSyntaxError, match=reason) as found:
        parsed(marked.replace("¦", ""), Delete)

    assert found.value.parameters["position"] == place
    assert found.value.message.split("\n")[-1] == "-" * place + "^^^"


def test_the_place_is_one_of_a_line() -> None:
    with pytest.raises(SqlSyntaxError) as found:
        parsed(f"DELETE FROM -- comment\n  {PATH}\n  WERE x = 1", Delete)
    # as in Spark, the word is an alias, and what follows it is wrong
    assert (found.value.parameters["line"], found.value.parameters["column"]) == (3, 7)
    assert found.value.message.endswith("(line 3, pos 7)\n  WERE x = 1\n-------^^^")


@pytest.mark.parametrize(
    ("value", "args"),
    [("1", None), ("-1.5", None), ("'a' 'b'", None), ("DATE'2026-01-31'", None), ("NULL", None), ("true", None),
     (":v", {"v": "it's"}), ("?", [1.5]), (":v", {"v": None})],
)  # fmt: skip
def test_the_value_of_a_partition_is_a_constant(value: str, args: object) -> None:
    text = f"INSERT INTO {PATH} PARTITION (p = {value}, q) SELECT 1"
    found = parsed(text, Insert, args).partition
    assert found is not None and found[0][1] is not None and found[1] == ("q", None)


@pytest.mark.parametrize("inside", ["p = c0", "p = rand()", "p = 1 + 1", "p = 1, P = 2", "p = 1, p", "p = (1)", "p ="])
def test_no_other_value_of_a_partition_is_taken(inside: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parsed(f"INSERT OVERWRITE {PATH} PARTITION ({inside}) SELECT 1", Insert)


@pytest.mark.parametrize(
    "text",
    [
        f"UPDATE {PATH} SET a = case - 1 WHERE id = 1",
        f"DELETE FROM {PATH} WHERE case IS NULL",
        f"MERGE INTO {PATH} USING s ON -case WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_a_case_without_end_takes_nothing_into_it(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="CASE has no END"):
        parsed(text, Delete)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("id = 1", True),
        ("a = b AND c", True),
        ("length(x) > f(y)", True),
        ("a IS NOT NULL", True),
        ("x IN (1, 2) AND y > (3)", True),
        ("history extra", False),
        ("a AS (x)", False),
        ("a = 1 (x)", False),
        ("a IS NULL (x)", False),
        ("a = 'x' b", False),
        ("a[0] b", False),
        ("x::array<int> b", False),
        ("a = 1 AS `b`", False),
    ],
)
def test_spark_reads_no_name_at_the_end_of_an_expression(text: str, bare: bool) -> None:
    whole = parse_statement(f"DELETE FROM {PATH} WHERE {text}")
    assert isinstance(whole.statement, Delete) and whole.statement.condition is not None
    assert whole.expression(whole.statement.condition) == (text if bare else f"({text})")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"TRUNCATE TABLE {PATH} PARTITION (p = 1)", "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED"),
        (f"INSERT OVERWRITE {PATH} PARTITION (p = 1) IF NOT EXISTS SELECT 1", "DELTA_OPERATION_NOT_ALLOWED"),
        (f"INSERT INTO {PATH} REPLACE ON a = b SELECT 1", "DELTA_OPERATION_NOT_ALLOWED"),
    ],
)
def test_what_is_not_there_yet_is_refused_by_its_name(text: str, code: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="this version") as caught:
        parsed(text, Delete)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("VALUES (1, DEFAULT), (default, 'x')", [(1, "DEFAULT"), (0, "default")]),
        ("VALUES 1, DEFAULT", [(0, "DEFAULT")]),
        ("VALUES (DEFAULT, (SELECT max(a) FROM b), DEFAULT)", [(0, "DEFAULT"), (2, "DEFAULT")]),
        ("VALUES (struct(1, 2), DEFAULT)", [(1, "DEFAULT")]),
        ("VALUES ('DEFAULT', `DEFAULT`)", []),
        ("SELECT 1 AS a, DEFAULT", [(1, "DEFAULT")]),
        ("SELECT DEFAULT, f(1, 2), array(1, 2)[0], DEFAULT;", [(0, "DEFAULT"), (3, "DEFAULT")]),
        ("SELECT a, DEFAULT FROM t WHERE DEFAULT = 1", [(1, "DEFAULT")]),
        ("SELECT t.group, DEFAULT FROM t ORDER BY a, b", [(1, "DEFAULT")]),
        ("SELECT DISTINCT DEFAULT, 1", []),
        ("SELECT max(a), DEFAULT FROM t GROUP BY b", []),
        ("SELECT 1, DEFAULT UNION ALL SELECT 2, 3", []),
        ("VALUES (struct(1, DEFAULT))", []),
        ("SELECT coalesce(DEFAULT, 1)", []),
        ("TABLE t", []),
    ],
)
def test_default_is_found_where_it_is_a_value(query: str, found: list[tuple[int, str]]) -> None:
    values = default_values(tokenize(query, statement=True))
    assert [(one.column, query[one.start : one.end]) for one in values] == found


def test_a_cached_query_over_a_path_is_a_view() -> None:
    found = parse_statement(f"CACHE LAZY TABLE `v x` OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT * FROM {PATH}")
    view = found.statement
    assert isinstance(view, CachedView) and view.name.parts == ("v x",) and view.lazy
    assert (view.options, view.query.text) == ("OPTIONS ('storageLevel' 'DISK_ONLY')", f"SELECT * FROM {PATH}")
    for text in ("CACHE TABLE v AS SELECT 1", "CACHE TABLE v", "CACHE LAZY TABLE a.b", "REFRESH TABLE a.b.c"):
        statement = parse_statement(text).statement
        assert not isinstance(statement, CachedView), text
