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
    called_functions,
    named_columns,
    possible_names,
    spark_expression,
)
from delta_pyds.tasks.changed_rows import CHECK_PREFIX
from delta_pyds.tasks.write_state import SessionExpression, SparkExpression, WriteState

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
    with pytest.raises(DeltaError, match="came without what Spark computes of the CHECK constraint 'odd'"):
        Ingest(state, TaskSession(0)).apply(batch([True, True]).drop_columns([f"{CHECK_PREFIX}1"]))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("REFLECT ('java.lang.Math', 'abs', 1)", "calls reflect"),
        ("x + `java_method`('a', 'b')", "calls java_method"),
        ("a.b.reflect(1)", "calls reflect"),
        ("identifier/* */('x')", "calls identifier"),
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


def test_names_in_a_text_are_found_also_where_it_is_read_in_another_way() -> None:
    assert named_columns("Id * (s) -- two.words", SCHEMA) == ("id", "s")
    assert named_columns("concat(`Two.Words`, 'id')", SCHEMA) == ("id", "two.words")
    assert {"foo", "' || foo || '"} <= possible_names("'`' || foo || '`'")
    assert {"a`b", "c d"} <= possible_names('`a``b` + "c d"')
    assert called_functions("f (x) + a.`B`(y) - 'g(' || h -- i(") == {("f",), ("a", "B"), ("B",), ("g",), ("i",)}
