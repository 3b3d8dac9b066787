"""Changed rows with what Spark computes of them: the columns that a command's tasks take."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from delta_pyds.errors import ColumnNotFoundError
from delta_pyds.protocol.schema import INTEGER, LONG, STRING, StructField, StructType
from delta_pyds.spark.row_changes.computed import CompletedChanges, complete_changes
from delta_pyds.table.definition.ingest_plan import plan_ingest
from delta_pyds.tasks.changed_rows import ACTION_COLUMN, CHECK_PREFIX, NEW_PREFIX, Action
from delta_pyds.tasks.write_state import WriteState

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

GENERATED = "delta.generationExpression"
# what only Spark knows and what our evaluator knows, of each kind
SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("Odd.name", STRING),
        StructField("bits", INTEGER, metadata={GENERATED: "bit_count(id)"}),
        StructField("next", LONG, metadata={GENERATED: "id + 1"}),
        StructField("code", STRING, metadata={"CURRENT_DEFAULT": "soundex('Robert')"}),
        StructField("plain", STRING, metadata={"CURRENT_DEFAULT": "'x'"}),
        StructField("maybe", LONG),
    )
)
RULES = {
    "delta.constraints.odd": "try_divide(1, id) IS NOT NULL AND bits + 0 > 0",
    "delta.constraints.known": "id <> 9",
}
UPDATE, INSERT, DELETE = int(Action.UPDATE), int(Action.INSERT), int(Action.DELETE)


def written() -> Any:
    return col(ACTION_COLUMN).isin(UPDATE, INSERT)


def state(*incoming: str, rules: dict[str, str] = RULES, schema: StructType = SCHEMA) -> WriteState:
    fields = tuple(f for f in schema if f.name in incoming)
    planned = plan_ingest(
        schema,
        configuration=dict(rules),
        incoming=StructType(fields),
        time_zone="UTC",
        supports=bool,
        table="/t",
        spark=True,
    )
    return WriteState("/t", {}, schema, planned.columns, checks=planned.checks)


def frame(spark: SparkSession, rows: list[tuple[Any, ...]], **columns: str) -> DataFrame:
    """``columns``: the table's name for each, a position for NEW_PREFIX."""
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    return spark.createDataFrame(rows, f"{ACTION_COLUMN} TINYINT, {ddl}")


def new(name: str) -> str:
    return f"{NEW_PREFIX}{SCHEMA.names.index(name)}"


def collected(completed: CompletedChanges, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in completed.frame.select(*names).collect()]


def test_an_update_makes_generated_columns_and_says_whether_rules_are_kept(spark: SparkSession) -> None:
    write = state("id", "Odd.name", "code", "plain", "maybe")
    kinds = {new("id"): "BIGINT", new("Odd.name"): "STRING", new("code"): "STRING", new("plain"): "STRING",
             new("maybe"): "BIGINT", "_deltapy_old_0": "BIGINT"}  # fmt: skip
    rows = [(UPDATE, 3, "a", "c", "p", 1, 1), (UPDATE, 0, "a", "c", "p", 1, 2), (DELETE, 5, "a", "c", "p", 1, 3)]

    completed = complete_changes(frame(spark, rows, **kinds), write, written=written())

    assert completed.frame.columns == [ACTION_COLUMN, *kinds, new("bits"), f"{CHECK_PREFIX}1"]
    assert completed.write == write and completed.insert_columns is None
    assert collected(completed, "_deltapy_old_0", new("id"), new("bits"), f"{CHECK_PREFIX}1") == [
        (1, 3, 2, True), (2, 0, 0, False), (3, 5, None, None)
    ]  # fmt: skip


def test_rows_of_a_merge_bring_different_columns(spark: SparkSession) -> None:
    """Updated rows bring all but what is generated, or that as well; inserted ones the id alone."""
    write = state("id")
    updated = col(ACTION_COLUMN) == UPDATE
    kinds = {new("id"): "BIGINT", new("Odd.name"): "STRING", new("bits"): "INT", new("next"): "BIGINT",
             new("code"): "STRING", new("plain"): "STRING", new("maybe"): "BIGINT", "brings": "BOOLEAN"}  # fmt: skip
    rows = [
        (UPDATE, 3, "a", 2, 4, "c", "p", 1, True),
        (UPDATE, 3, "a", 7, 7, "c", None, 1, True),
        (UPDATE, 7, None, None, None, "c", "p", 1, False),
        (INSERT, 1, None, None, None, None, None, None, None),
    ]
    positions = {name: SCHEMA.names.index(name) for name in SCHEMA.names}
    given = {positions[n]: updated for n in ("Odd.name", "code", "plain", "maybe")}
    given |= {positions[n]: col("brings") for n in ("bits", "next")}

    completed = complete_changes(frame(spark, rows, **kinds), write, written=written(), given=given)

    checks = [(c.kind, c.name) for c in completed.write.checks]
    assert checks == [("check", "known"), ("check", "odd"), ("generated", "bits")]
    wanted = [new(n) for n in SCHEMA.names] + [f"{CHECK_PREFIX}1", f"{CHECK_PREFIX}2"]
    assert collected(completed, *wanted) == [
        (3, "a", 2, 4, "c", "p", 1, True, True),
        (3, "a", 7, 7, "c", None, 1, True, False),
        (7, None, 3, 8, "c", "p", 1, True, True),
        (1, None, 1, 2, "R163", "x", None, True, True),
    ]
    # our own evaluator holds the known one against its expression, of all rows
    for columns in (completed.write.columns, completed.insert_columns or ()):
        assert [(c.source, c.input is None, c.expression is None) for c in columns] == [
            ("input", False, True), ("input", False, True), ("generated", False, True), ("generated", False, False),
            ("input", False, True), ("input", False, True), ("input", False, True),
        ]  # fmt: skip


def test_identity_values_are_numbered_for_inserted_rows_alone(spark: SparkSession) -> None:
    numbered = {f"delta.identity.{k}": v for k, v in (("start", 1), ("step", 1), ("allowExplicitInsert", False))}
    schema = StructType((StructField("id", LONG), StructField("n", LONG, metadata=numbered)))
    rows = [(UPDATE, 3, 7), (INSERT, 4, None)]
    kinds = {f"{NEW_PREFIX}0": "BIGINT", f"{NEW_PREFIX}1": "BIGINT"}
    write = state("id", rules={"delta.constraints.c": "bit_count(id) > 1"}, schema=schema)

    completed = complete_changes(
        frame(spark, rows, **kinds), write, written=lit(True), given={1: col(ACTION_COLUMN) == UPDATE}
    )

    assert collected(completed, f"{NEW_PREFIX}1", f"{CHECK_PREFIX}0") == [(7, True), (None, False)]
    assert [c.source for c in completed.write.columns] == ["input", "input"]
    assert [c.source for c in completed.insert_columns or ()] == ["input", "identity"]
    rule = state("id", rules={"delta.constraints.c": "bit_count(n) > 1"}, schema=schema)
    with pytest.raises(ColumnNotFoundError, match="the CHECK constraint 'c'"):
        complete_changes(frame(spark, rows, **kinds), rule, written=lit(True), given={1: lit(True)})


def test_a_frame_of_which_nothing_is_computed_stays_as_it_is(spark: SparkSession) -> None:
    write = state(*SCHEMA.names, rules={}, schema=StructType((SCHEMA.fields[0],)))
    rows = frame(spark, [(UPDATE, 1)], **{new("id"): "BIGINT"})

    completed = complete_changes(rows, write, written=written())

    assert completed == CompletedChanges(rows, write, None)
