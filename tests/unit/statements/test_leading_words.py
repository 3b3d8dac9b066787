"""Words before the verb of a command."""

from __future__ import annotations

from typing import Any

import pytest

from delta_pyds.errors import SqlSyntaxError
from delta_pyds.statements.kinds import Explain, Insert, Merge, PassThrough, SqlText
from delta_pyds.statements.parse import parse_statement

WITH = "WITH s AS (SELECT 1 AS a), u (b) AS (SELECT ')')"


@pytest.mark.parametrize("table", ["t", "delta.`/data/t`"])
@pytest.mark.parametrize(
    ("behind", "query"),
    [
        ("INSERT INTO <T> SELECT * FROM s", f"{WITH} SELECT * FROM s"),
        ("INSERT OVERWRITE TABLE <T> (a) TABLE s;", f"{WITH} TABLE s"),
        (
            "INSERT INTO <T> WITH v AS (SELECT 2) SELECT * FROM s, v",
            f"{WITH} (WITH v AS (SELECT 2) SELECT * FROM s, v)",
        ),
        ("INSERT INTO <T> REPLACE WHERE a = 1 SELECT * FROM s", f"{WITH} SELECT * FROM s"),
    ],
)
def test_a_with_goes_into_the_query_of_an_insert(table: str, behind: str, query: str) -> None:
    found = parse_statement(f"{WITH} {behind}".replace("<T>", table)).statement
    assert isinstance(found, Insert) and found.query.text == query and found.target.text == table


@pytest.mark.parametrize(
    ("source", "query", "alias"),
    [
        ("s", f"{WITH} SELECT * FROM s", "s"),
        ("s AS x", f"{WITH} SELECT * FROM s", "x"),
        ("a.b x", f"{WITH} SELECT * FROM a.b", "x"),
        ("(SELECT * FROM s) x", f"{WITH} SELECT * FROM s", "x"),
        ("( WITH v AS (SELECT 2) SELECT * FROM s) x", f"{WITH} (WITH v AS (SELECT 2) SELECT * FROM s)", "x"),
    ],
)
def test_a_with_goes_into_the_source_of_a_merge(source: str, query: str, alias: str) -> None:
    text = f"{WITH} MERGE INTO delta.`/data/t` t USING {source} ON t.a = 1 WHEN MATCHED THEN DELETE"
    found = parse_statement(text).statement
    assert isinstance(found, Merge) and isinstance(found.source, SqlText)
    assert (found.source.text, found.source_alias, found.condition.text) == (query, alias, "t.a = 1")
    assert text[found.condition.position :].startswith("t.a = 1 WHEN")


def test_errors_behind_a_with_have_their_place_in_the_users_text() -> None:
    text = "WITH s AS (SELECT :x) INSERT INTO delta.`/t` SELECT * FROM s; nonsense"
    with pytest.raises(SqlSyntaxError) as caught:
        parse_statement(text, {"x": "a long value"})
    assert caught.value.parameters["position"] == text.index("nonsense")
    found = parse_statement("WITH s AS (SELECT :x) INSERT INTO delta.`/t` SELECT * FROM s", {"x": 5})
    assert isinstance(found.statement, Insert)
    assert found.position_of(found.statement.query.text, len("WITH s AS (SELECT 5) SEL")) == text.index("ECT * FROM s;")


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("WITH s AS (SELECT 1) UPDATE a.t SET x = 1", "a.t"),
        ("WITH s AS (SELECT 1) DELETE FROM t", "t"),
        ("WITH s AS (SELECT 1) MERGE INTO t USING a.b ON true WHEN MATCHED THEN DELETE", "t"),
        ("FROM u INSERT INTO TABLE t SELECT a", "t"),
        ("FROM (SELECT 1) INSERT OVERWRITE t SELECT a INSERT INTO v SELECT b", "t"),
    ],
)
def test_what_is_not_taken_is_refused_of_a_table_of_ours(text: str, table: str) -> None:
    found = parse_statement(text)
    assert isinstance(found.statement, PassThrough) and found.refused is not None
    assert found.refused[0].text == table and "this version" in str(found.refused[1])


@pytest.mark.parametrize(
    "text", ["WITH s AS (SELECT 1) SELECT * FROM s", "FROM s SELECT a", "EXPLAIN SELECT 1", "WITH"]
)
def test_a_query_stays_as_it_is(text: str) -> None:
    found = parse_statement(text)
    assert isinstance(found.statement, PassThrough) and found.refused is None


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("EXPLAIN UPDATE t SET a = 1", ("UPDATE", "t", "UPDATE t SET a = 1")),
        ("EXPLAIN EXTENDED DELETE FROM delta.`/t`", ("DELETE", "delta.`/t`", "DELETE FROM delta.`/t`")),
        ("EXPLAIN TRUNCATE TABLE t", ("TRUNCATE", "t", "TRUNCATE TABLE t")),
        (
            "EXPLAIN WITH s AS (SELECT 1) INSERT INTO t TABLE s",
            ("INSERT", "t", "INSERT INTO t WITH s AS (SELECT 1) TABLE s"),
        ),
    ],
)
def test_a_command_is_explained_without_being_run(text: str, about: tuple[Any, ...]) -> None:
    found = parse_statement(text).statement
    assert isinstance(found, Explain) and (found.verb, found.target.text, found.command) == about
