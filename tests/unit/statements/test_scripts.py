"""Scripts of SQL, taken apart."""

from __future__ import annotations

import pytest

from delta_pyds.statements.scripts import Immediate, Script, immediate_of, is_query, script_of


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("BEGIN INSERT INTO t VALUES (1, 'a;b'); SELECT 1; END", ("INSERT INTO t VALUES (1, 'a;b')", "SELECT 1")),
        ("-- first\nbegin not atomic /* ; */ DELETE FROM `a;b`;\nend;", ("DELETE FROM `a;b`",)),
        ("BEGIN SELECT CASE WHEN a THEN 1 ELSE 2 END FROM t; END", ("SELECT CASE WHEN a THEN 1 ELSE 2 END FROM t",)),
        ("BEGIN END", ()),
    ],
)
def test_plain_statements_are_those_of_the_text(text: str, statements: tuple[str, ...]) -> None:
    assert script_of(text) == Script(statements, None)


@pytest.mark.parametrize(
    ("text", "statements", "control"),
    [
        (
            "BEGIN DECLARE x INT; WHILE x < 3 DO INSERT INTO t VALUES (x); SET x = x + 1; END WHILE; END",
            ("INSERT INTO t VALUES (x)",),
            "DECLARE",
        ),
        (
            "BEGIN IF a THEN MERGE INTO t USING s ON b WHEN MATCHED THEN DELETE; ELSE DELETE FROM u; END IF; END",
            ("MERGE INTO t USING s ON b WHEN MATCHED THEN DELETE", "DELETE FROM u"),
            "IF",
        ),
        ("BEGIN one: LOOP UPDATE t SET a = 1; LEAVE one; END LOOP; END", ("UPDATE t SET a = 1",), "a label"),
        (
            "BEGIN SELECT 1; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO l TABLE a; END; DROP TABLE t; END",
            ("SELECT 1", "INSERT INTO l TABLE a", "DROP TABLE t"),
            "DECLARE",
        ),
    ],
)
def test_the_scripting_language_is_named(text: str, statements: tuple[str, ...], control: str) -> None:
    assert script_of(text) == Script(statements, control)


@pytest.mark.parametrize("text", ["BEGIN", "BEGIN SELECT 1", "BEGIN SELECT 1 END", "SELECT 'BEGIN'", "BEGIN 'a"])
def test_other_texts_are_no_scripts(text: str) -> None:
    assert script_of(text) is None


def test_execute_immediate_has_a_statement_and_arguments() -> None:
    assert immediate_of("EXECUTE IMMEDIATE 'UPDATE t SET a = ?' USING 1;") == Immediate(
        "'UPDATE t SET a = ?'", "1", False
    )
    named = immediate_of("execute immediate concat('a', x) using (1 AS a, 'x' AS b)")
    assert named == Immediate("concat('a', x)", "1 AS a, 'x' AS b", True)
    assert immediate_of("EXECUTE IMMEDIATE q") == Immediate("q", "", False)
    for text in ("EXECUTE IMMEDIATE 'SELECT 1' INTO x", "EXECUTE IMMEDIATE", "SELECT 'EXECUTE IMMEDIATE q'"):
        assert immediate_of(text) is None


def test_queries_return_rows() -> None:
    assert is_query(" (SELECT 1)") and is_query("WITH a AS (SELECT 1) SELECT * FROM a") and is_query("VALUES (1)")
    assert not is_query("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a") and not is_query("DESCRIBE t")
