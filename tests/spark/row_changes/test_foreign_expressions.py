"""A table's expressions run nothing in the writer's session: in any position, in any spelling.

What Spark ran is asked of Spark: each call would set a property of its JVM.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import DeltaError, ExpressionError
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

MARK = "delta_pyds.foreign"
CALL = f"('java.lang.System', 'setProperty', '{MARK}', 'ran')"
SPELLINGS = [
    f"reflect/*/**/*/{CALL}",
    f"`java_method`{CALL}",
    f"try_reflect -- \\\n x\n {CALL}",
    f"system.builtin.reflect/*/**/*/{CALL}",
    f"IDENTIFIER/*/**/*/('reflect'){CALL}",
    "secret/*/**/*/()",
    "spark_catalog.default.persisted_secret ()",
    "(SELECT secret FROM of_victim)",
]


@pytest.fixture(scope="module")
def victim(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with functions and a view of its user, which say that they ran."""
    body = f"RETURNS STRING RETURN reflect{CALL}"
    spark.sql(f"CREATE TEMPORARY FUNCTION secret() {body}")
    spark.sql(f"CREATE OR REPLACE FUNCTION spark_catalog.default.persisted_secret() {body}")
    spark.sql("CREATE TEMPORARY VIEW of_victim AS SELECT secret() AS secret")
    yield spark
    spark.catalog.dropTempView("of_victim")
    spark.sql("DROP TEMPORARY FUNCTION secret")
    spark.sql("DROP FUNCTION spark_catalog.default.persisted_secret")


def ran(spark: SparkSession) -> bool:
    system = spark._jvm.System
    found = system.getProperty(MARK)
    system.clearProperty(MARK)
    return found is not None


def table(path: Path, **expressions: str) -> str:
    """``expressions``: of a check, an invariant, a generated column, a default."""

    def field(name: str, **metadata: str) -> dict[str, Any]:
        return {"name": name, "type": "string", "nullable": True, "metadata": metadata}

    keys = {"generated": "delta.generationExpression", "default": "CURRENT_DEFAULT", "exists": "EXISTS_DEFAULT"}
    made = {"generated": "'g'", "default": "'d'"} | expressions
    rule = {"expression": {"expression": made.get("invariant")}}
    rules = {"delta.invariants": json.dumps(rule)} if "invariant" in made else {}
    fields = [
        field("s", **rules),
        *(field(name, **{keys[name]: made[name]}) for name in keys if name in made),
    ]
    properties = {"delta.constraints.rule": made["check"]} if "check" in made else {}
    features = ["appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults"]
    builder = TableBuilder(path, {"type": "struct", "fields": fields}, properties=properties, features=([], features))
    builder.create()
    row = {"s": "a", "generated": "g", "default": "d"} | ({"exists": None} if "exists" in made else {})
    builder.append([row])
    return str(path)


def append(spark: SparkSession, path: str) -> None:
    delta_pyds.write(spark.sql("SELECT 'b' AS s"), path, mode="append")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("place", ["check", "invariant", "generated", "default"])
def test_nothing_is_run_for_a_row_that_is_written(
    victim: SparkSession, tmp_path: Path, place: str, spelling: str
) -> None:
    text = f"{spelling} IS NULL" if place in ("check", "invariant") else spelling
    path = table(tmp_path / "t", **{place: text})

    with pytest.raises(ExpressionError) as caught:
        append(victim, path)

    assert not ran(victim)
    assert "DELTA_UNSUPPORTED_EXPRESSION" in str(caught.value) and "drop the constraint" in str(caught.value)


COMMANDS: dict[str, Callable[[SparkSession, str], object]] = {
    "update": lambda spark, path: DeltaTable.forPath(spark, path).update("s = 'a'", {"default": "DEFAULT"}),
    "sql update": lambda spark, path: delta_pyds.sql(spark, f"UPDATE delta.`{path}` SET `default` = DEFAULT"),
    "sql update of others": lambda spark, path: delta_pyds.sql(spark, f"UPDATE delta.`{path}` SET s = upper(s)"),
    "delete": lambda spark, path: DeltaTable.forPath(spark, path).delete("s = upper('a')"),
    "insert a default": lambda spark, path: delta_pyds.sql(
        spark, f"INSERT INTO delta.`{path}` (s, `default`) VALUES ('c', DEFAULT)"
    ),
    "insert a default of a query": lambda spark, path: delta_pyds.sql(
        spark, f"INSERT INTO delta.`{path}` (s, `default`) SELECT 'c', DEFAULT"
    ),
    "insert": lambda spark, path: delta_pyds.sql(spark, f"INSERT INTO delta.`{path}` (s) VALUES ('c')"),
    "merge": lambda spark, path: delta_pyds.sql(
        spark,
        f"MERGE INTO delta.`{path}` t USING (SELECT 'c' AS s UNION SELECT 'a') u ON t.s = u.s "
        "WHEN MATCHED THEN UPDATE SET `default` = DEFAULT "
        "WHEN NOT MATCHED THEN INSERT (s, `default`) VALUES (u.s, DEFAULT)",
    ),
    "merge without": lambda spark, path: (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(spark.sql("SELECT soundex('c') AS s").alias("u"), "t.s = u.s")
        .whenNotMatchedInsert(values={"s": "u.s"})
        .execute()
    ),
    "read": lambda spark, path: delta_pyds.read(spark, path).collect(),
    "read by the source": lambda spark, path: spark.read.format("deltapy").load(path).collect(),
    "add a column": lambda spark, path: delta_pyds.write(
        spark.sql("SELECT 'b' AS s, 1 AS more"), path, mode="append", merge_schema=True
    ),
    "optimize": lambda spark, path: DeltaTable.forPath(spark, path).optimize().executeCompaction(),
    "add a constraint": lambda spark, path: delta_pyds.sql(
        spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (s IS NOT NULL)"
    ),
    "restore": lambda spark, path: DeltaTable.forPath(spark, path).restoreToVersion(0),
    "clone": lambda spark, path: DeltaTable.forPath(spark, path).clone(path + "-copy", isShallow=True),
    "detail": lambda spark, path: DeltaTable.forPath(spark, path).detail().collect(),
}


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize("places", ["default", "generated", "default exists generated check"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_a_tables_expression(victim: SparkSession, tmp_path: Path, command: str, places: str) -> None:
    expressions = {place: f"{SPELLINGS[0]} IS NULL" if place == "check" else SPELLINGS[0] for place in places.split()}
    path = table(tmp_path / "t", **expressions)
    try:
        COMMANDS[command](victim, path)
    except DeltaError as e:
        assert "Traceback" not in str(e)
    assert not ran(victim)


def test_a_default_is_not_the_users_text(victim: SparkSession, tmp_path: Path) -> None:
    """With DEFAULT, the table's text stands in the statement: it may not end what it stands in, nor name columns."""
    for text in ("'x') AS STRING), secret(), ('y'", "'x' -- ", "s", "`s`", "upper('x') -- \\"):
        path = table(tmp_path / str(abs(hash(text))), default=text)
        for command in ("update", "insert a default", "merge"):
            try:
                COMMANDS[command](victim, path)
            except DeltaError:
                continue
            found = {row["default"] for row in delta_pyds.read(victim, path).collect()}
            assert found <= {"d", "x", "X"}, (text, command)
        assert not ran(victim)


def test_a_function_of_the_session_in_the_place_of_sparks_is_not_called(victim: SparkSession, tmp_path: Path) -> None:
    """If the session's functions come first, so do its operators."""
    for name in ("soundex", "between(x STRING, y STRING, z STRING)", "extract(x STRING, y DATE)"):
        signature = name if "(" in name else f"{name}(x STRING)"
        victim.sql(f"CREATE TEMPORARY FUNCTION {signature} RETURNS STRING RETURN reflect{CALL}")
    order = "spark.sql.functionResolution.sessionOrder"
    try:
        for first in (False, True):
            if first:
                victim.conf.set(order, "first")
            for n, text in enumerate(("soundex(s) <> 'x'", "lcase(s) BETWEEN soundex('a') AND 'zz'")):
                path = table(tmp_path / f"{first}-{n}", check=text)
                if first:
                    with pytest.raises(ExpressionError, match=r"system.session.* before Spark's own"):
                        append(victim, path)
                else:
                    append(victim, path)
                assert not ran(victim)
        # and the user's own text is the user's
        DeltaTable.forPath(victim, table(tmp_path / "own")).delete("soundex(s) = 'b'")
        assert ran(victim)
    finally:
        victim.conf.unset(order)
        for name in ("soundex", "between", "extract"):
            victim.sql(f"DROP TEMPORARY FUNCTION {name}")


def test_a_path_of_functions_is_heeded(victim: SparkSession, tmp_path: Path) -> None:
    victim.sql(
        f"CREATE OR REPLACE FUNCTION spark_catalog.default.soundex(x STRING) RETURNS STRING RETURN reflect{CALL}"
    )
    victim.conf.set("spark.sql.path.enabled", "true")
    try:
        path = table(tmp_path / "t", check="soundex(s) <> 'x'")
        victim.sql("SET PATH = spark_catalog.default, system.builtin")
        with pytest.raises(ExpressionError, match=r"spark_catalog.default.* before Spark's own"):
            append(victim, path)
        assert not ran(victim)
        victim.sql("SET PATH = system.builtin, spark_catalog.default")
        append(victim, path)
        assert not ran(victim)
    finally:
        victim.sql("SET PATH = DEFAULT_PATH")
        victim.conf.unset("spark.sql.path.enabled")
        victim.sql("DROP FUNCTION spark_catalog.default.soundex")


def test_settings_that_change_how_a_text_is_read(victim: SparkSession, tmp_path: Path) -> None:
    """A text in double quotes may be a name, a name in backticks a pattern; a text escapes nothing."""
    texts = {
        "spark.sql.ansi.doubleQuotedIdentifiers": [f'"reflect"{CALL} IS NULL', 'soundex("s") <> "of_victim"'],
        "spark.sql.parser.escapedStringLiterals": [f"soundex(s) <> '\\' || reflect{CALL} || '\\'"],
        "spark.sql.parser.quotedRegexColumnNames": ["soundex(concat(`(s|x).*`)) <> 'x'"],
    }
    for setting, found in texts.items():
        victim.conf.set(setting, "true")
        try:
            for n, text in enumerate(found):
                with pytest.raises(DeltaError):
                    append(victim, table(tmp_path / f"{setting}{n}", check=text))
                assert not ran(victim)
        finally:
            victim.conf.unset(setting)
