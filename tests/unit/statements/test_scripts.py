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
        ("BEGIN INSERT INTO t VALUES (1); SELECT :a, :b; END", ("INSERT INTO t VALUES (1)", "SELECT :a, :b")),
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
            ("MERGE INTO t USING s ON b WHEN MATCHED THEN DELETE", "DELETE", "DELETE FROM u"),
            "IF",
        ),
        ("BEGIN one: LOOP UPDATE t SET a = 1; LEAVE one; END LOOP; END", ("UPDATE t SET a = 1",), "a label"),
        (
            "BEGIN SELECT 1; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO l TABLE a; END; DROP TABLE t; END",
            ("SELECT 1", "INSERT INTO l TABLE a", "DROP TABLE t"),
            "DECLARE",
        ),
        # a handler may have one statement without BEGIN
        (
            "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION INSERT INTO t VALUES (1); SELECT 1; END",
            ("INSERT INTO t VALUES (1)", "SELECT 1"),
            "DECLARE",
        ),
        (
            "BEGIN DECLARE CONTINUE HANDLER FOR SQLSTATE VALUE '22012', SQLSTATE '2', a.b, insert DELETE FROM t; END",
            ("DELETE FROM t",),
            "DECLARE",
        ),
        ("BEGIN DECLARE EXIT HANDLER FOR NOT FOUND SET x = 1; END", (), "DECLARE"),
        ("BEGIN DECLARE EXIT HANDLER FOR value TRUNCATE TABLE t; END", ("TRUNCATE TABLE t",), "DECLARE"),
        (
            "BEGIN DECLARE EXIT HANDLER FOR a BEGIN DECLARE EXIT HANDLER FOR NOT FOUND DROP TABLE t; END; END",
            ("DROP TABLE t",),
            "DECLARE",
        ),
        ("BEGIN DECLARE EXIT HANDLER FOR a l: BEGIN UPDATE t SET a = 1; END; END", ("UPDATE t SET a = 1",), "DECLARE"),
        # these words come before INSERT
        ("BEGIN IF a THEN FROM s INSERT INTO t SELECT *; END IF; END", ("FROM s INSERT INTO t SELECT *",), "IF"),
        (
            "BEGIN CASE WHEN x THEN WITH a AS (TABLE s) INSERT INTO t TABLE a; ELSE LOAD DATA; END CASE; END",
            ("WITH a AS (TABLE s) INSERT INTO t TABLE a", "LOAD DATA"),
            "CASE",
        ),
        # each loop, one within the other
        (
            "BEGIN a: FOR r AS TABLE s DO WHILE x DO REPEAT DELETE FROM t; UNTIL y END REPEAT; END WHILE; END FOR; END",
            ("DELETE FROM t",),
            "a label",
        ),
        ("BEGIN IF x THEN BEGIN NOT ATOMIC OPTIMIZE t; END; END IF; END", ("OPTIMIZE t",), "IF"),
        # a column with the name of a verb does not hide the statement
        (
            "BEGIN IF CASE WHEN a THEN update ELSE b END THEN INSERT INTO t VALUES (1); END IF; END",
            ("update ELSE b END THEN INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)"),
            "IF",
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
