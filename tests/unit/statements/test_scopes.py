"""The scopes of a statement: tables with their roles, names of WITH, stars, subqueries, brackets."""

from __future__ import annotations

import re

import pytest

from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.statements.scopes import ScopeTree
from tests.unit.statements.parsed import PATH


def tree(text: str) -> ScopeTree:
    return ScopeTree(tokenize(text, statement=True))


def marked(text: str) -> tuple[str, list[int]]:
    """A text with a mark ^ before some tokens: without the marks, and the numbers of these tokens."""
    plain, starts = "", []
    for number, piece in enumerate(text.split("^")):
        if number:
            starts.append(len(plain))
        plain += piece
    tokens = tokenize(plain, statement=True)
    return plain, [number for number, token in enumerate(tokens) if token.start in starts]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM ^t AS x, ^s.u (a, b) JOIN ^`v` USING (a, b) WHERE c IN (d, e)",
        "SELECT a, b FROM ^t, (^u JOIN (^v) ON f(a, b)), (SELECT c, d FROM ^w, ^x) y, ^z",
        f"SELECT * FROM ^{PATH} VERSION AS OF 3 a, ^delta.`/x`@v3, ^deltapy.`/y`",
        "FROM ^t SELECT a, b",
        "SELECT * FROM ^t |> WHERE a, b |> JOIN ^u ON c |> SELECT d, e",
        # subqueries, correlated or not
        "SELECT (SELECT max(a), b FROM ^t u WHERE u.a = v.a) FROM ^v WHERE EXISTS (FROM ^w) AND a IN (TABLE ^x)",
        # functions of tables, lateral tables, rows
        "SELECT * FROM range(3), f(TABLE ^t), g(TABLE(^u), a => b), LATERAL explode(m) AS v(a, b), ^w",
        "SELECT * FROM ^table_changes('/a', 1, 2), ^IDENTIFIER('t'), ^STREAM t, ^STREAM (u), VALUES (1, 2) AS v(a, b)",
        "SELECT * FROM ^t, LATERAL (SELECT * FROM ^u WHERE u.a = t.a), ^v",
        "SELECT * FROM ^t LATERAL VIEW OUTER explode(m) u AS a, b LATERAL VIEW explode(n) v AS c, d",
        "SELECT * FROM ^t PIVOT (sum(a), max(b) FOR c IN (1, 2)), ^u UNPIVOT (v FOR n IN (a, b)), ^w TABLESAMPLE (1)",
        # set operations
        "(SELECT a, b FROM ^t) UNION ALL (SELECT a, b FROM ^u EXCEPT TABLE ^v) ORDER BY a, b",
        "VALUES (1, 2), (3, 4) INTERSECT SELECT a, b FROM ^t LIMIT 1",
        # FROM that begins no list
        "SELECT extract(DAY FROM a), trim(BOTH 'x' FROM b), a IS DISTINCT FROM c FROM ^t",
        "SELECT * FROM ^t JOIN ^u ON a IS NOT DISTINCT FROM b, ^v",
        "SELECT 'FROM t' AS `FROM`, a.from, b /* FROM u */ FROM ^t -- , v",
        # a word that may be a table
        "SELECT * FROM ^group, ^limit.t JOIN ^offset WHERE a, b",
        # brackets
        "SELECT a[b, c], d FROM ^t WHERE m[(SELECT max(k), 1 FROM ^u)] > 1 GROUP BY a, b",
        # commands
        "MERGE INTO ^t AS a USING (WITH b AS (TABLE ^u) SELECT * FROM ^b, ^v) AS c ON a.d WHEN MATCHED THEN DELETE",
        "MERGE INTO ^t USING ^s.u ON a IN (SELECT b FROM ^v) WHEN NOT MATCHED THEN INSERT (a, b) VALUES (c, d)",
        "INSERT INTO ^t VALUES (1, DEFAULT), (c, d)",
        "INSERT OVERWRITE TABLE ^t PARTITION (p, q = 1) SELECT a, b FROM ^u",
        "FROM ^t INSERT INTO ^u SELECT a, b INSERT INTO ^v SELECT c, d",
        "UPDATE ^t SET a = (SELECT max(b) FROM ^u), c = d WHERE e",
        "EXPLAIN UPDATE ^t SET a = 1, b = 2",
        "DELETE FROM ^t WHERE a = b",
        "CREATE TABLE IF NOT EXISTS ^t LIKE ^u",
        "CREATE TABLE ^t USING delta AS SELECT a, b FROM ^u WHERE a LIKE b",
        "DESCRIBE TABLE EXTENDED ^t a",
        "DESC ^t",
        "DROP VIEW IF EXISTS ^t",
        "SHOW COLUMNS IN ^t",
        "TABLE ^t",
    ],
)
def test_tables_are_expected_where_spark_takes_one(text: str) -> None:
    plain, wanted = marked(text)
    assert [position.first for position in tree(plain).tables] == wanted


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("SELECT * FROM t, (u JOIN ((v)))", ["from"] * 3),
        ("DELETE FROM t WHERE a IN (SELECT b FROM u)", ["other", "from"]),
        ("TABLE t", ["query"]),
        ("INSERT INTO TABLE t TABLE u", ["other", "query"]),
        ("TRUNCATE TABLE t", ["other"]),
        ("MERGE INTO t USING u ON a", ["other", "source"]),
        ("CREATE TABLE t LIKE u", ["other", "other"]),
        ("DESCRIBE EXTENDED t", ["described"]),
        ("DROP TABLE IF EXISTS t", ["other"]),
        ("ANALYZE TABLE t COMPUTE STATISTICS", ["other"]),
    ],
)
def test_each_table_has_its_role(text: str, roles: list[str]) -> None:
    assert [position.role for position in tree(text).tables] == roles


@pytest.mark.parametrize(
    "text",
    [
        # > before a name of WITH
        "WITH t AS (SELECT 1), u (a, b) AS (SELECT * FROM >t, v) SELECT * FROM >T, >`u`, v",
        # one names what comes after it, and itself
        "WITH t AS (SELECT * FROM u, >t), u AS (TABLE >t) SELECT * FROM >u",
        "WITH RECURSIVE t MAX RECURSION LEVEL 3 AS (SELECT * FROM >t) TABLE >t",
        # no further than its parentheses
        "SELECT * FROM t, (WITH t AS (SELECT 1) SELECT * FROM >t, (SELECT * FROM >t)) u, t",
        "SELECT (WITH t AS (TABLE u), u AS (TABLE >t) SELECT a FROM >u) FROM u WHERE a IN (FROM t)",
        # an inner one hides an outer one, which comes back after it
        "WITH t AS (SELECT 1) SELECT * FROM (WITH t AS (SELECT 2) TABLE >t), >t",
        # an alias with columns after a function is not a name of WITH
        "SELECT * FROM f(a), t AS x, t (a), u",
        'WITH "t" AS (SELECT 1) SELECT * FROM >t',
        "WITH IDENTIFIER('t') AS (SELECT 1) SELECT * FROM >u, >t",
        "SELECT * FROM t WITH (a = 1), u AS v JOIN u",
        "INSERT INTO t WITH t AS (SELECT 1) TABLE >t",
        "SELECT a FROM t GROUP BY a WITH ROLLUP HAVING a IN (TABLE t)",
    ],
)
def test_a_name_of_with_is_visible_after_it_in_its_scope(text: str) -> None:
    names = re.findall(r">`?(\w+)", text)
    plain = text.replace(">", "")
    scopes, tokens = tree(plain), tokenize(plain, statement=True)

    found = [
        tokens[position.first].value
        for position in scopes.tables
        if scopes.is_of_with(tokens[position.first].value, position.first)
    ]

    assert found == names


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ^*, a * b, count(^*), f(a, ^*), t.^* EXCEPT (c) FROM t",
        "SELECT DISTINCT ^* FROM (SELECT ALL ^* FROM t) WHERE 2 * (a) * b[c] * 3",
        "MERGE INTO t USING (SELECT ^* FROM u) ON a WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_stars_are_no_products(text: str) -> None:
    plain, wanted = marked(text)
    assert [star.position for star in tree(plain).stars] == wanted


def test_a_star_knows_whether_a_query_is_in_its_scope() -> None:
    stars = tree("SELECT *, f(*), [*, (SELECT *), ((SELECT *) UNION SELECT *) FROM t").stars
    assert [star.scope.may_select for star in stars] == [True, False, True, True, True]


def test_a_piece_has_its_tables_and_stars() -> None:
    scopes = tree("UPDATE t SET a = (SELECT * FROM u) WHERE b IN (SELECT * FROM v)")
    assert [one.first for one in scopes.tables] == [1, 9, 18]
    assert [one.first for one in scopes.tables_between(5, 11)] == [9]
    assert [one.position for one in scopes.stars_between(11, 99)] == [16]


def test_qualifiers_stand_between_two_names() -> None:
    scopes = tree('SELECT sales.Orders.id, `a`.`b`.*, "c"."d".e, x.y, f.g FROM h.i WHERE \'${v}\' = 1.5')
    assert scopes.qualifiers == {"orders", "b", "d"} and not scopes.has_variable
    assert tree("SELECT ${v}").has_variable


def test_a_subquery_ends_with_its_parenthesis() -> None:
    plain, wanted = marked("a = f(b, (c)) AND d IN ^(^SELECT ^g^(^(^e^)^, ^h^) ^FROM ^t) OR i = (j)")
    scopes = tree(plain)
    assert [number for number in range(len(tokenize(plain))) if scopes.in_subquery(number)] == wanted
    assert scopes.has_query and not scopes.has_outer_query
    assert not tree("trim(BOTH a FROM b) IS DISTINCT FROM c").has_query
    # nobody knows where this one ends
    outer = tree("a IN (b) UNION SELECT c")
    assert outer.has_outer_query and outer.in_subquery(0)


def test_brackets_that_do_not_go_together_are_no_scopes() -> None:
    scopes = tree("(a [ b) c ] ) d (e [f] (g")
    assert {index: scopes.closing(index) for index in range(17) if scopes.closing(index)} == {0: 4, 11: 13}
    assert scopes.opening(4) == 0 and scopes.opening(7) is None
    assert list(tree("a (b, c[d]) e[f], g").own_tokens(0, 15)) == [0, 1, 8, 9, 10, 12, 13, 14]


def test_long_and_deep_texts_take_one_pass() -> None:
    many = 100_000
    for text in ("[" * many + ")" * many, "([" * many + ")" * many, "]" * many, "(WITH t AS (FROM t, " * many):
        scopes = tree(text)
        assert len(scopes.tables) in (0, many)
    assert scopes.is_of_with("t", scopes.tables[-1].first)
