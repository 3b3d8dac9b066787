"""Expressions of a table that only Spark knows: it computes them, and our tasks enforce them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

import delta_pyds
from delta_pyds.errors import ColumnNotFoundError, ConstraintViolationError, DeltaError, ExpressionError, OptionError
from delta_pyds.table.definition.session_expressions import parse_session_expression
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

COLUMNS = {
    "id": "long",
    "s": "string",
    "ts": "timestamp",
    "day": "date",
    "dot.ted": "integer",
    "st": {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "integer", "nullable": True, "metadata": {}},
            {"name": "odd.name", "type": "string", "nullable": True, "metadata": {}},
        ],
    },
    "xs": {"type": "array", "elementType": "long", "containsNull": True},
}
ROWS = """
    SELECT id, concat('a', id, '-b', id + 1) AS s, timestamp_seconds(1700000000 + id * 86400 * 40) AS ts,
      date_add(DATE '2024-01-30', CAST(id AS INT)) AS day, CAST(id * 3 AS INT) AS `dot.ted`,
      named_struct('a', CAST(id AS INT), 'odd.name', '{"k": 7}') AS st, array(id, NULL, 5) AS xs
    FROM range(0, 4, 1, 1)
"""
TEXTS = {"type": "array", "elementType": "string", "containsNull": True}
# what our own evaluator does not know, by family: the text and its type
FAMILIES = {
    "regular expressions": ("regexp_extract_all(s, '([ab])', 1)", TEXTS),
    "odd formats": ("date_format(ts, 'QQQ E')", "string"),
    "dates": ("next_day(day, 'MON')", "date"),
    "higher-order functions": ("aggregate(xs, 0L, (acc, x) -> acc + coalesce(x, 1))", "long"),
    "lambda named as a column": ("exists(xs, id -> id = 5)", "boolean"),
    "json": ("from_json(st.`odd.name`, 'k INT').k", "integer"),
    "encryption": ("base64(aes_encrypt(s, '0000111122223333', 'ECB'))", "string"),
    "names with dots": ("bit_count(`dot.ted`) + width_bucket(St.A, 0, 10, 5)", "long"),
    "intervals": ("make_timestamp(2024, 1, CAST(id + 1 AS INT), 0, 0, 0) - INTERVAL '1-2' YEAR TO MONTH", "timestamp"),
    "comment": ("soundex(s) -- s, not zz", "string"),
}  # fmt: skip


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    dotted = {k.replace("delta__", "delta."): v for k, v in metadata.items()}
    return {"name": name, "type": kind, "nullable": True, "metadata": dotted}


def generated(name: str, kind: Any, sql: str) -> dict[str, Any]:
    return field(name, kind, delta__generationExpression=sql)


def table(
    path: Path,
    fields: Sequence[Mapping[str, Any]] = (),
    checks: Mapping[str, str] | None = None,
    columns: Mapping[str, Any] = COLUMNS,
    **more: Any,
) -> Path:
    schema = {"type": "struct", "fields": [*(field(n, k) for n, k in columns.items()), *fields]}
    properties = {f"delta.constraints.{name}": sql for name, sql in (checks or {}).items()}
    features = ["appendOnly", "invariants", "checkConstraints", "generatedColumns"]
    features += ["allowColumnDefaults", "identityColumns"]
    builder = TableBuilder(path, schema, properties=properties, features=([], features), **more)
    builder.create()
    return path


def rows(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    read = delta_pyds.read(spark, str(path)).collect()
    return sorted((row.asDict(True) for row in read), key=lambda row: row["id"])


def append(df: DataFrame, path: Path, **more: Any) -> int | None:
    return delta_pyds.write(df, str(path), mode="append", **more).version


def refused(df: DataFrame, path: Path, error: type[DeltaError], **more: Any) -> str:
    with pytest.raises(error) as caught:
        append(df, path, **more)
    assert type(caught.value) is error
    assert not list(path.rglob("*.parquet"))
    return str(caught.value)


def refused_again(df: DataFrame, path: Path) -> str:
    with pytest.raises(ConstraintViolationError) as caught:
        append(df, path)
    return str(caught.value)


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, before or "")


def test_generated_columns_of_every_family_have_sparks_values(spark: SparkSession, tmp_path: Path) -> None:
    names = {f"g{n}": family for n, family in enumerate(FAMILIES.values())}
    path = table(tmp_path, [generated(name, kind, sql) for name, (sql, kind) in names.items()])
    schema = load_snapshot(str(path)).schema
    for sql, _ in names.values():
        with pytest.raises(DeltaError):
            parse_session_expression(sql, schema, time_zone="UTC")
    with pytest.raises(PySparkException, match="nothing can be written"):
        spark.sql(ROWS).write.format("deltapy").mode("append").save(str(path))

    assert append(spark.sql(ROWS), path) == 1

    own = spark.sql(ROWS).select("*", *(expr(sql).alias(name) for name, (sql, _) in names.items()))
    assert rows(spark, path) == sorted((row.asDict(True) for row in own.collect()), key=lambda row: row["id"])
    # given values are compared with the expression
    assert append(own, path) == 2
    wrong = own.withColumn("g5", expr("CAST(IF(id = 1, 8, g5) AS INT)"))
    with pytest.raises(ConstraintViolationError) as caught:
        append(wrong, path)
    assert str(caught.value).startswith(
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint Generated Column "
        f"(g5 <=> from_json(st.`odd.name`, 'k INT').k) of table {path} violated by row with values:\n"
        " - g5 : 8\n - st : "
    )


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("size(regexp_extract_all(s, '([ab])', 1)) = 2 AND ID < 3", ["id", "s"]),
        ("forall(xs, x -> x IS NULL OR x <> 3)", ["xs"]),
        ("isnotnull(from_json(St.`odd.name`, 'k INT')) AND try_add(`Dot.ted`, 0) < 9", ["dot.ted", "st"]),
    ],
)
def test_rows_that_break_a_rule_that_only_spark_knows_stop_the_write(
    spark: SparkSession, tmp_path: Path, sql: str, named: list[str]
) -> None:
    path = table(tmp_path / "t", checks={"odd": sql})

    message = refused(spark.sql(ROWS), path, ConstraintViolationError)

    assert message.startswith(
        f"[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint 'odd' ({sql}) of table {path} violated by row with "
        "values:\n - "
    )
    assert [line.split(" : ")[0] for line in message.splitlines()[1:]] == [f" - {name}" for name in named]
    assert append(spark.sql(ROWS).where("id < 3"), path) == 1
    assert [row["id"] for row in rows(spark, path)] == [0, 1, 2]


def test_our_own_rules_give_the_same_errors(spark: SparkSession, tmp_path: Path) -> None:
    """A rule that both know, once by each: the text of the other rule alone is Spark's."""
    both, message = "id < 3", []
    for name, other in (("ours", "id >= 0"), ("sparks", "forall(xs, x -> true)")):
        path = table(tmp_path / name, checks={"both": both, "other": other})
        message.append(refused(spark.sql(ROWS), path, ConstraintViolationError).replace(str(path), "it"))
    path = table(tmp_path / "spark", checks={"both": f"{both} AND forall(array(1), x -> true)"})
    text = refused(spark.sql(ROWS), path, ConstraintViolationError)
    message.append(text.replace(str(path), "it").replace(" AND forall(array(1), x -> true)", ""))

    assert message[0] == message[1] == message[2]


def test_defaults_come_first_then_generated_columns_then_rules(spark: SparkSession, tmp_path: Path) -> None:
    path = table(
        tmp_path,
        [
            field("d", "string", CURRENT_DEFAULT="soundex('Robert')"),
            field("c", "string", CURRENT_DEFAULT="'ab'", __CHAR_VARCHAR_TYPE_STRING="char(4)"),
            field("at", "timestamp", CURRENT_DEFAULT="current_timestamp()"),
            generated("g", "string", "concat_ws('-', regexp_extract_all(d, '([0-9])', 1))"),
            generated("later", "long", "unix_micros(at) + bit_count(0)"),
            generated("known", "long", "id + 1"),
        ],
        {
            "all": "d || '|' || g || '|' || c || '|' = 'R163|1-6-3|ab|' AND bit_count(known) < 3",
            "clock": "at <= current_timestamp() AND forall(xs, x -> true)",
        },
    )

    assert append(spark.sql(ROWS).where("id < 2"), path) == 1

    for row in rows(spark, path):
        assert (row["d"], row["g"], row["c"], row["known"]) == ("R163", "1-6-3", "ab  ", row["id"] + 1)
        assert row["later"] == round(row["at"].timestamp() * 1_000_000)
    text = refused_again(spark.sql(ROWS).withColumn("id", expr("id + 6")), path)
    assert "CHECK constraint 'all'" in text and " - known : 7" in text


def test_rules_see_what_is_stored(spark: SparkSession, tmp_path: Path) -> None:
    """Empty texts of partitions are null, numbers and structs have the table's types and order."""
    inside = {"type": "struct", "fields": [field("b", "long"), field("a", "long")]}
    path = table(
        tmp_path,
        [generated("was", "integer", "levenshtein(p, 'x')")],
        {"stored": "levenshtein(p, 'x') IS NULL AND bit_count(n) = 2 AND s.a = 2 AND typeof(s.a) = 'bigint'"},
        {"id": "long", "p": "string", "n": "long", "s": inside},
        partition_columns=["p"],
    )
    df = spark.sql("SELECT 1S AS ID, '' AS P, 3 AS n, named_struct('A', 2, 'b', 1S) AS S")

    assert append(df, path) == 1

    [row] = rows(spark, path)
    assert row == {"id": 1, "p": None, "n": 3, "s": {"b": 1, "a": 2}, "was": 1}


def test_an_invariant_and_a_rule_of_a_nested_field(spark: SparkSession, tmp_path: Path) -> None:
    text = json.dumps({"expression": {"expression": "try_add(id, 0) < 3"}})
    columns = {name: kind for name, kind in COLUMNS.items() if name != "id"}
    path = table(tmp_path / "t", [field("id", "long", delta__invariants=text)], columns=columns)

    message = refused(spark.sql(ROWS), path, ConstraintViolationError)

    assert "invariant of column 'id' (try_add(id, 0) < 3) of table" in message and message.endswith(" - id : 3")
    assert append(spark.sql(ROWS).where("id < 3"), path) == 1


def test_an_expression_that_is_known_under_one_setting_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Which holds is the session's to say, so Spark computes it under both."""
    path = table(tmp_path, [generated("g", "integer", "st.a + 2147483647 + bit_count(0)")])
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        append(spark.sql(ROWS), path)
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        assert append(spark.sql(ROWS), path) == 1
    assert [row["g"] for row in rows(spark, path)] == [(2**31 - 1 + n + 2**31) % 2**32 - 2**31 for n in range(4)]


def test_what_is_refused_is_refused_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DECLARE OR REPLACE VARIABLE secret INT DEFAULT 5")
    try:
        for n, (sql, error) in enumerate(
            [
                ("forall(xs, x -> x < secret)", ColumnNotFoundError),
                ("reflect('java.lang.Math', 'abs', 1) = '1'", ExpressionError),
                ("id IN (SELECT 1)", ExpressionError),
                ("soundex(s)", ExpressionError),
            ]
        ):
            path = table(tmp_path / f"{n}", checks={"c": sql})
            message = refused(spark.sql(ROWS), path, error)
            assert "the CHECK constraint 'c'" in message and str(path) in message
    finally:
        spark.sql("DROP TEMPORARY VARIABLE secret")
    for kind, sql in {"generated": "bit_count(g0)", "default": "bit_count(id)"}.items():
        made = generated("g", "integer", sql) if kind == "generated" else field("g", "integer", CURRENT_DEFAULT=sql)
        path = table(tmp_path / kind, [generated("g0", "long", "id + 1"), made])
        assert "not one of the columns that it can use" in refused(spark.sql(ROWS), path, ColumnNotFoundError)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_query_finds_the_rows_that_are_replaced_where_only_spark_knows_the_predicate(
    spark: SparkSession, tmp_path: Path, vectors: str
) -> None:
    properties = {"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true"}
    old = spark.range(0, 20, 1, 2).selectExpr("id", "concat('x', id) AS `odd.name`", "id % 2 AS p")
    delta_pyds.write(old, tmp_path, partition_by="p", properties=properties)
    spark.udf.register("of_user", lambda number: number != 6, "boolean")
    predicate = "p = 0 AND forall(array(id), x -> x < 9) AND of_user(id) AND substr(`odd.name`, 1, 1) = 'x'"
    new = spark.sql("SELECT 4 AS id, 'x new' AS `odd.name`, 0 AS p")
    replaces: dict[str, Any] = {"mode": "overwrite", "replace_where": predicate}

    done = delta_pyds.write(new, tmp_path, **replaces)

    assert (done.version, done.rows) == (1, 1)
    left = [n for n in range(20) if n % 2 or n >= 9 or n == 6]
    assert rows(spark, tmp_path) == sorted(
        [{"id": n, "odd.name": f"x{n}", "p": n % 2} for n in left] + [{"id": 4, "odd.name": "x new", "p": 0}],
        key=lambda row: row["id"],
    )
    feed = spark.read.format("deltapy").option("readChangeFeed", "true").option("startingVersion", "1")
    told = sorted((row["_change_type"], row["id"]) for row in feed.load(str(tmp_path)).collect())
    assert told == [("delete", n) for n in (0, 2, 4, 8)] + [("insert", 4)]
    assert delta_pyds.verify(tmp_path).findings == ()
    with pytest.raises(ConstraintViolationError, match="DELTA_REPLACE_WHERE_MISMATCH") as caught:
        delta_pyds.write(new.withColumn("id", expr("6")), tmp_path, **replaces)
    assert str(caught.value).splitlines()[1:4] == [" - id : 6", " - odd.name : x new", " - p : 0"]
    with pytest.raises(ColumnNotFoundError, match="the option replaceWhere"):
        delta_pyds.write(new, tmp_path, mode="overwrite", replace_where="zz = 1")
    with pytest.raises(OptionError, match="a variable"):
        delta_pyds.write(new, tmp_path, mode="overwrite", replace_where=predicate + " AND `odd.name` <> '${a}'")
    assert delta_pyds.DeltaTable.forPath(spark, str(tmp_path)).history(1).collect()[0]["version"] == 1


def test_a_table_with_column_mapping_and_an_evolving_schema(spark: SparkSession, tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.constraints.c": "forall(array(`a.b`), x -> x > 0)"}
    delta_pyds.write(spark.sql("SELECT 1 AS `a.b`"), tmp_path, properties=properties)
    more = spark.sql("SELECT 2 AS `A.b`, named_struct('x y', 1) AS `new col`")

    assert append(more, tmp_path, merge_schema=True) == 1

    found = delta_pyds.read(spark, str(tmp_path)).collect()
    assert sorted(tuple(row) for row in found) == [(1, None), (2, (1,))]
    assert "CHECK constraint 'c'" in refused_again(spark.sql("SELECT 0 AS `a.b`"), tmp_path)


def test_changed_rows_keep_what_only_spark_knows(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"id": "long", "xs": {"type": "array", "elementType": "long", "containsNull": True}}
    made = [generated("bits", "integer", "bit_count(id)"), field("code", "string", CURRENT_DEFAULT="soundex('Robert')")]
    path = table(tmp_path, made, {"odd": "forall(xs, x -> x < 9)"}, columns)
    append(spark.sql("SELECT id, array(id) AS xs FROM range(1, 4, 1, 1)"), path)
    target = delta_pyds.DeltaTable.forPath(spark, str(path))

    target.update("id = 3", {"id": "8", "code": "'c'"})
    source = spark.sql("SELECT 2 AS id, array(7) AS xs UNION ALL SELECT 15, array(1)")
    merge = target.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"xs": "s.xs"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "xs": "s.xs"}).execute()

    wanted = [(1, [1], 1, "R163"), (2, [7], 1, "R163"), (8, [3], 1, "c"), (15, [1], 4, "R163")]
    assert [tuple(row.values()) for row in rows(spark, path)] == wanted
    with pytest.raises(ConstraintViolationError, match="CHECK constraint 'odd'") as caught:
        target.update("id = 8", {"xs": "array(9)"})
    assert str(caught.value).endswith(" - xs : [9]")
    assert [tuple(row.values()) for row in rows(spark, path)] == wanted
