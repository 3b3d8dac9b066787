"""What a plan leaves to a Spark session, and what no session is asked for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.data.write.ingest import Ingest
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import UNKNOWN_EXPRESSION, ConstraintViolationError, DeltaError, ExpressionError
from delta_pyds.protocol.schema import LONG, STRING, TIMESTAMP, ArrayType, StructField, StructType
from delta_pyds.table.definition.ingest_plan import IngestPlan, plan_ingest
from delta_pyds.table.definition.spark_expressions import (
    function_names,
    named_columns,
    possible_names,
    spark_expression,
)
from delta_pyds.tasks.changed_rows import CHECK_PREFIX
from delta_pyds.tasks.write_state import SessionExpression, SparkExpression, WriteState
from tests.support.expressions import FAMILIES

TABLE = "/tables/t"
SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("s", STRING),
        StructField("bits", LONG, metadata={"delta.generationExpression": "bit_count(id)"}),
        StructField("next", LONG, metadata={"delta.generationExpression": "id + 1"}),
        StructField("code", STRING, metadata={"CURRENT_DEFAULT": "soundex('x')"}),
        StructField("at", TIMESTAMP, metadata={"CURRENT_DEFAULT": "current_timestamp()"}),
        StructField("two.words", STRING, metadata={"CURRENT_DEFAULT": "'x'"}),
    )
)
RULES = {"delta.constraints.known": "id < 9", "delta.constraints.odd": "forall(array(`ID`, bits), x -> x > 0)"}


def plan(*incoming: str, spark: bool = True, schema: StructType = SCHEMA, **more: Any) -> IngestPlan:
    options: dict[str, Any] = {"configuration": RULES, "time_zone": "UTC", **more}
    given = StructType(tuple(f for f in schema if f.name in incoming))
    return plan_ingest(schema, incoming=given, supports=bool, table=TABLE, spark=spark, **options)


def test_a_session_computes_what_our_evaluator_does_not_know_and_what_reads_the_clock() -> None:
    found = plan("id", "s")

    assert {c.field.name: (c.source, c.input, type(c.computed), type(c.expression)) for c in found.columns} == {
        "id": ("input", 0, type(None), type(None)),
        "s": ("input", 1, type(None), type(None)),
        "bits": ("generated", 2, SparkExpression, type(None)),
        "next": ("generated", None, type(None), SessionExpression),
        "code": ("default", 3, SparkExpression, type(None)),
        "at": ("default", 4, SparkExpression, type(None)),
        "two.words": ("default", None, type(None), SessionExpression),
    }
    assert [(c.name, type(c.expression)) for c in found.checks] == [
        ("known", SessionExpression),
        ("odd", SparkExpression),
    ]
    assert found.checks[1].expression == SparkExpression(RULES["delta.constraints.odd"], ("id", "bits"))


def test_a_given_generated_column_is_a_rule_that_the_session_evaluates() -> None:
    found = plan("id", "bits", "next", configuration={})

    assert [(c.kind, c.name, c.expression) for c in found.checks] == [
        ("generated", "bits", SparkExpression("bit_count(id)", ("id",)))
    ]
    bits, following = found.columns[2], found.columns[3]
    assert (bits.source, bits.input, bits.computed, bits.expression) == ("generated", 1, None, None)
    assert isinstance(following.expression, SessionExpression)


def test_what_cannot_be_compared_here_is_compared_there() -> None:
    listed = StructField("l", ArrayType(LONG), metadata={"delta.generationExpression": "array(id)"})
    schema = StructType((SCHEMA.fields[0], listed))

    assert plan("id", "l", schema=schema, configuration={}).checks[0].kind == "generated"
    with pytest.raises(ExpressionError) as caught:
        plan("id", "l", schema=schema, configuration={}, spark=False)
    assert caught.value.parameters[UNKNOWN_EXPRESSION] == "array(id)"


def test_without_a_session_the_error_says_that_one_could_help() -> None:
    with pytest.raises(ExpressionError) as caught:
        plan("id", "s", spark=False)
    assert caught.value.parameters[UNKNOWN_EXPRESSION] == "bit_count(id)"
    # and where everything is known, a session changes nothing but what reads the clock
    known = StructType((SCHEMA.fields[0], SCHEMA.fields[3], SCHEMA.fields[6]))
    rules = {"delta.constraints.known": "id < 9"}
    assert plan("id", schema=known, configuration=rules) == plan("id", schema=known, configuration=rules, spark=False)


def test_the_rows_bring_what_was_computed_and_the_errors_are_the_same() -> None:
    found = plan("id")
    state = WriteState(TABLE, {}, SCHEMA, found.columns, checks=found.checks)
    assert state.needs_spark
    times = pa.array([0, 0], pa.timestamp("us", "UTC"))

    def batch(verdicts: list[bool | None]) -> pa.RecordBatch:
        arrays = [pa.array([1, 2]), pa.array([1, 1]), pa.array(["c", "d"]), times, pa.array(verdicts)]
        return pa.RecordBatch.from_arrays(arrays, ["id", "bits", "code", "at", f"{CHECK_PREFIX}1"])

    rows = Ingest(state, TaskSession(0)).apply(batch([True, True])).to_pydict()
    assert (rows["bits"], rows["next"], rows["code"], rows["two.words"]) == ([1, 1], [2, 3], ["c", "d"], ["x", "x"])
    for failed in (False, None):
        with pytest.raises(ConstraintViolationError) as caught:
            Ingest(state, TaskSession(0)).apply(batch([True, failed]))
        assert caught.value.message == (
            "CHECK constraint 'odd' (forall(array(`ID`, bits), x -> x > 0)) of table /tables/t violated by row with "
            "values:\n - id : 2\n - bits : 1"
        )
    with pytest.raises(DeltaError, match="lack the column that Spark computes for the CHECK constraint 'odd'"):
        Ingest(state, TaskSession(0)).apply(batch([True, True]).drop_columns([f"{CHECK_PREFIX}1"]))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("REFLECT ('java.lang.Math', 'abs', 1)", "calls REFLECT"),
        ("x + `java_method`('a', 'b')", "calls java_method"),
        ("a.b.reflect(1)", "calls a.b.reflect"),
        ("identifier/* */('x')", "calls identifier"),
        # spellings that a session's parser reads in the same way
        ("reflect/*/**/*/('a', 'b')", "calls reflect"),
        ("reflect -- \\\n ('a'\n ('a', 'b')", "calls reflect"),
        ("try_reflect\u2003('a', 'b')", "calls try_reflect"),
        ("builtin.reflect('a', 'b')", "calls builtin.reflect"),
        ("system . builtin /**/ . `reflect`('a', 'b')", "calls system.builtin.reflect"),
        ("IDENTIFIER/*/**/*/('reflect')('a', 'b')", "a call of something other than a function"),
        ("st.IDENTIFIER('a')", "calls st.IDENTIFIER"),
        ("CAST(id AS STRUCT<IDENTIFIER('a'): INT>)", "is not an expression of a row"),
        ("\"reflect\"('a', 'b')", "a call of something other than a function"),
        ("'' || '\\'' || reflect('a', 'b') || ''", "calls reflect"),
        ("r'\\' || reflect('a', 'b') || '\\''", "calls reflect"),
        ("re\ufb02ect('a', 'b')", "calls re\ufb02ect"),
        ("\u212aurtosis(id)", "calls \u212aurtosis"),
        ("CASE WHEN(TRUE) WHEN TRUE THEN 1 END", "is not an expression of a row"),
        ("timestampadd(DAY, id)", "calls timestampadd"),
        ("timestampadd(DAY, id, id AND id)", "calls timestampadd"),
        ("when.then(id)", "calls when.then"),
        ("secret()", "calls secret, which is not one of Spark's functions"),
        ("from_xml(s, 'a INT', map('rowValidationXSDPath', '/etc/passwd'))", "calls from_xml"),
        ("xpath_string('<!DOCTYPE a SYSTEM \"http://there/\"><a/>', 'a')", "calls xpath_string"),
        ("input_file_name()", "calls input_file_name"),
        ("raise_error('call this number')", "calls raise_error"),
        ("monotonically_increasing_id()", "calls monotonically_increasing_id"),
        ("(SELECT id FROM t)", "the word id after a value"),
        ("EXISTS (TABLE t)", "the word t after a value"),
        ("id IN (VALUES 1)", "an operator is expected between two values"),
        ("(FROM t |> SELECT id)", "the word t after a value"),
        ("(MAP(id) USING 'sh' FROM t)", "the word USING after a value"),
        ("(WITH t AS (SELECT 1) SELECT * FROM t)", "the word t after a value"),
        ("sum(id) OVER ()", "the word OVER after a value"),
        ("max(id)", "calls max"),
        ("explode(xs)", "calls explode"),
        ("id > :p", "a parameter marker"),
        ("id > ?", "a parameter marker"),
        ("id /*+ BROADCAST(t) */ + 1", "only a query can have a hint"),
        ("id); DROP TABLE t", "is not an expression of a row"),
        ("id) OR (id", "is not an expression of a row"),
        ("id /* to the end", "the comment is not closed"),
        ("", "the expression is not complete"),
        ("s = '${env:HOME}'", r"\$\{\.\.\.\}"),
        ("struct( /* all */ *)", r"a \* that stands"),
        ("coalesce(id, *)", r"a \* that stands"),
        ("st.*", r"a \* that stands"),
        ("*", r"a \* that stands"),
    ],
)
def test_what_no_session_is_asked_for(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError, match=f"nothing can be written: the rule.*{problem}"):
        spark_expression(text, SCHEMA, "the rule")


@pytest.mark.parametrize(
    "text",
    [
        "upper/*/**/*/(s)",
        "`upper` -- reflect(\\\n reflect(\n (s)",
        "'reflect(1)' || \"secret()\" || r'\\' || `reflect`",
        "CAST(id AS STRUCT<a: INT NOT NULL COMMENT 'x', b: MAP<STRING, ARRAY<DECIMAL(10, 2)>>>).b['x'][0]",
        "id::STRING COLLATE UTF8_LCASE || s",
        "v:a.b[0]['c']::INT > 0",
        "aggregate(xs, 0, (a, x) -> a + x) !> 3 AND exists(xs, x -> x IS NOT DISTINCT FROM id)",
        "CASE id WHEN (1) THEN (2) ELSE CASE WHEN NOT (s = 'a') THEN - (3) END END >>> 1",
        "EXTRACT(YEAR FROM ts) BETWEEN 1 AND (2) OR POSITION('a' IN s) NOT IN (1, (2)) OR (id, 1) IN ((1, 1))",
        "TRIM(BOTH FROM s) || trim(LEADING 'x' FROM s) || substring(s FROM 1 FOR 2) || OVERLAY(s PLACING 'a' FROM 1)",
        "s LIKE ANY ('a', 'b') AND s NOT ILIKE ALL ('c') AND s LIKE 'd' ESCAPE '!' AND s NOT RLIKE 'e'",
        "INTERVAL '1-2' YEAR TO MONTH + INTERVAL -1 DAY 2 HOURS - INTERVAL '1' DAY > x",
        "timestampadd(DAY, id + 1, ts) > current_timestamp AND dateadd(MONTH, 1, day) < current_date()",
        "struct(id AS b, s).b = mask(s, upperChar => 'Q')",
        "X'1F' || DATE '2020-01-01' || TIME '10:00:00' || 'a' 'b'",
        "trim(both) || left(s, 1) || if(TRUE, a.case, b.end)",
        "gs://bucket/day=1 || uuid()",
    ],
)
def test_what_computes_a_value_from_a_row_is_for_a_session(text: str) -> None:
    assert spark_expression(text, SCHEMA, "the rule").sql == text


def test_the_names_that_could_be_columns() -> None:
    assert named_columns("Id * (s) -- two.words", SCHEMA) == ("id", "s")
    assert named_columns("concat(`Two.Words`, 'id', \"S\")", SCHEMA) == ("s", "two.words")
    assert {"a`b", "c d"} <= (possible_names('`a``b` + "c d"') or set())
    assert function_names("Upper (x) + `B`(y) - 'g(' || h -- i(") == {"upper", "b"}


@pytest.mark.parametrize("text", ["IDENTIFIER('i' || 'd')", "'${env:HOME}'", "id = '", "id /* s"])
def test_a_text_that_may_name_anything_names_all(text: str) -> None:
    assert possible_names(text) is None
    assert named_columns(text, SCHEMA) == tuple(SCHEMA.names)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_our_own_evaluator_knows_may_be_computed_by_a_session_too(family: str) -> None:
    assert FAMILIES[family]
    for text in FAMILIES[family]:
        assert spark_expression(text, SCHEMA, "the rule").sql == text
