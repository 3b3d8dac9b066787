"""Scripts and EXECUTE IMMEDIATE over Delta tables, by ``delta_pyds.sql`` and after ``install`` by ``spark.sql``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import delta_pyds
from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.sql import scripts
from tests.support.frames import rows

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Sql = Callable[..., Any]


@pytest.fixture(params=["sql", "install"])
def sql(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Sql]:
    if request.param == "install":
        delta_pyds.install(spark, delta=True)
    run: Sql = spark.sql if request.param == "install" else lambda *args: delta_pyds.sql(spark, *args)
    run("CREATE TABLE script_t (id INT, s STRING) USING deltapy")
    yield run
    run("DROP TABLE script_t")
    delta_pyds.uninstall()


def test_statements_of_a_script_run_in_order(sql: Sql, tmp_path: Path) -> None:
    by_path = f"delta.`{tmp_path}/t`"
    answer = sql(
        f"""BEGIN
        CREATE TABLE {by_path} USING delta AS SELECT 1 AS id, 'a;b' AS s;
        INSERT INTO script_t VALUES (2, 'b'), (3, :last);
        MERGE INTO script_t t USING {by_path} p ON t.id = p.id
          WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
        SELECT * FROM script_t WHERE id < 3;
        DELETE FROM script_t WHERE id = 2;
        END""",
        {"last": "c"},
    )
    assert rows(answer) == [(1, "a;b"), (2, "b")]
    assert rows(sql("SELECT * FROM script_t")) == [(1, "a;b"), (3, "c")]
    assert sql("DESCRIBE HISTORY script_t").count() == 4
    assert sql("BEGIN UPDATE script_t SET s = 'z'; END").columns == []
    assert sql("BEGIN SELECT 1 AS one; SELECT max(s) AS s FROM script_t; END").collect() == [("z",)]


def test_a_statement_that_fails_ends_the_script(sql: Sql) -> None:
    """Those before it stay: a script is not a transaction."""
    with pytest.raises(PySparkException, match="nobody"):
        sql("BEGIN INSERT INTO script_t VALUES (1, 'a'); SELECT * FROM nobody; INSERT INTO script_t SELECT 2, 'b'; END")
    assert rows(sql("SELECT * FROM script_t")) == [(1, "a")]


@pytest.mark.parametrize(
    ("script", "control"),
    [
        ("BEGIN DECLARE x INT DEFAULT 1; INSERT INTO script_t VALUES (x, 'a'); END", "DECLARE"),
        ("BEGIN INSERT INTO script_t VALUES (0, 'a'); WHILE true DO DELETE FROM script_t; END WHILE; END", "WHILE"),
        ("BEGIN IF 1 = 1 THEN UPDATE script_t SET id = 1; END IF; END", "IF"),
        ("BEGIN l: LOOP OPTIMIZE script_t; LEAVE l; END LOOP; END", "a label"),
        ("BEGIN FOR r AS SELECT 1 AS a DO INSERT INTO script_t VALUES (r.a, 'x'); END FOR; END", "FOR"),
        ("BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION INSERT INTO script_t VALUES (1, 'a'); SELECT 1; END", "DECLARE"),
        ("BEGIN DECLARE EXIT HANDLER FOR NOT FOUND DROP TABLE script_t; SELECT 1; END", "DECLARE"),
        ("BEGIN IF 1 = 1 THEN FROM range(1) INSERT INTO script_t SELECT 1, 'a'; END IF; END", "IF"),
        ("BEGIN IF 1 = 1 THEN LOAD DATA INPATH '/nowhere' INTO TABLE script_t; END IF; END", "IF"),
        ("BEGIN DECLARE x INT; SELECT count(*) FROM delta.`/nowhere`; END", "DECLARE"),
    ],
)
def test_the_scripting_language_is_refused_before_anything_runs(sql: Sql, script: str, control: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=f"^.*{control} in a script that changes Delta tables") as found:
        sql(script)
    assert found.value.code == "DELTA_OPERATION_NOT_ALLOWED"
    assert rows(sql("SELECT * FROM script_t")) == []
    with pytest.raises(UnsupportedOperationError, match="Give them names"):
        sql("BEGIN INSERT INTO script_t VALUES (?, 'a'); END", [1])


@pytest.mark.parametrize(
    "changes", ["INSERT INTO script_t VALUES (2, 'b')", "DELETE FROM script_t", "UPDATE script_t SET id = 2"]
)
def test_a_variable_of_a_script_whose_text_changes_a_delta_table_is_refused(sql: Sql, changes: str) -> None:
    """Only Spark knows the text, when the script runs. It never writes to the catalog entry."""
    sql("INSERT INTO script_t VALUES (1, 'a')")
    for into in ("", " INTO x"):
        with pytest.raises(UnsupportedOperationError, match=r"EXECUTE IMMEDIATE of a variable .* Give spark"):
            sql(f'BEGIN DECLARE x INT; DECLARE q STRING DEFAULT "{changes}"; EXECUTE IMMEDIATE q{into}; END')
    # with a text that is known, the statement itself decides
    with pytest.raises(PySparkException):
        sql(f'EXECUTE IMMEDIATE "{changes}" INTO x')
    assert rows(sql("SELECT * FROM script_t")) == [(1, "a")]


def test_variables_hold_texts_and_results_of_queries(sql: Sql) -> None:
    sql("INSERT INTO script_t VALUES (1, 'a')")
    counted = "DECLARE x INT; DECLARE q STRING DEFAULT 'SELECT max(id) FROM script_t'; EXECUTE IMMEDIATE q INTO x"
    assert sql(f"BEGIN {counted}; SELECT x AS x; END").collect() == [(1,)]


def test_a_control_script_that_reads_by_path_is_refused_by_name(sql: Sql) -> None:
    script = "BEGIN DECLARE x INT; IF x IS NULL THEN SELECT * FROM delta.`/nowhere`; END IF; END"
    with pytest.raises(UnsupportedOperationError, match=r"BEGIN does not support 'delta.`/nowhere`'"):
        sql(script)


def test_an_argument_after_the_first_word_is_no_label(sql: Sql) -> None:
    assert sql("BEGIN INSERT INTO script_t VALUES (:a, 'a'); SELECT :a AS a; END", {"a": 3}).collect() == [(3,)]


def test_scripts_that_change_no_delta_table_are_sparks(sql: Sql) -> None:
    sql("INSERT INTO script_t VALUES (1, 'a'), (2, 'b')")
    counted = "BEGIN DECLARE n BIGINT; SET n = (SELECT count(*) FROM script_t); SELECT n + 1 AS n; END"
    assert sql(counted).collect() == [(3,)]


def test_execute_immediate_runs_statements_about_delta_tables(sql: Sql, tmp_path: Path) -> None:
    sql("EXECUTE IMMEDIATE 'INSERT INTO script_t VALUES (?, ?)' USING 1, upper('a')")
    sql("EXECUTE IMMEDIATE 'INSERT INTO ' || 'script_t VALUES (:id, :s)' USING (2 AS id, 'b' AS s)")
    sql(f"EXECUTE IMMEDIATE 'CREATE TABLE delta.`{tmp_path}/t` USING delta AS SELECT * FROM script_t'")
    sql("EXECUTE IMMEDIATE :text", {"text": "UPDATE script_t SET s = 'z' WHERE id = 1"})
    assert rows(sql("EXECUTE IMMEDIATE 'SELECT * FROM script_t'")) == [(1, "z"), (2, "b")]
    assert rows(sql(f"EXECUTE IMMEDIATE 'SELECT * FROM delta.`{tmp_path}/t` WHERE id < ?' USING 2")) == [(1, "A")]
    assert rows(sql("BEGIN EXECUTE IMMEDIATE 'DELETE FROM script_t WHERE id = 1'; SELECT id FROM script_t; END")) == [
        (2,)
    ]


def test_the_text_of_execute_immediate_is_evaluated_once(sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []
    original = scripts.immediate

    def immediate(spark: SparkSession, text: str, args: Any) -> tuple[str, Any] | None:
        found = original(spark, text, args)
        evaluated.extend([text] if found is not None else [])
        return found

    monkeypatch.setattr(scripts, "immediate", immediate)
    sql("EXECUTE IMMEDIATE 'INSERT INTO script_t VALUES (1, ?)' USING 'a'")
    assert len(evaluated) == 1 and rows(sql("SELECT * FROM script_t")) == [(1, "a")]
