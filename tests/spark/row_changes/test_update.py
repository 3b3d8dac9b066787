"""Update, by every condition and value that Spark evaluates: rows are what Spark's own expressions make of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds.commands.row_changes.result import RowChangeResult
from delta_pyds.errors import ColumnNotFoundError, ConstraintViolationError, UserError
from delta_pyds.spark.row_changes.update import update_rows
from delta_pyds.table.snapshot import load_snapshot
from tests.support.row_changes import CHANGES, VECTORS, handle, small_table
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = [pytest.mark.one_test_in(6), pytest.mark.usefixtures("others")]

SCHEMA = {"id": "long", "s": "string", "d": "double", "n": {"x": "integer", "m": {"y": "string"}}, "a.b": "integer",
          "p": "string"}  # fmt: skip


def made(path: Path, properties: Mapping[str, str] | None = None, **options: Any) -> TableBuilder:
    """Two files of six rows, some values null or NaN; one row deleted where there are vectors."""
    table = small_table(path, SCHEMA, properties or {}, **options)
    for start in (0, 6):
        add, *_ = table.append([row(start + i) for i in range(6)])
        if properties and "delta.enableDeletionVectors" in properties:
            table.delete(add, [2])
    return table


def row(i: int) -> dict[str, Any]:
    struct = {"x": i, "m": {"y": "y"} if i % 2 else None}
    return {
        "id": i,
        "s": None if i % 5 == 0 else f"s{i}",
        "d": float("nan") if i % 4 == 0 else i / 2,
        "n": struct if i % 3 else None,
        "a.b": i * 10,
        "p": "pq"[i % 2],
    }


def check(
    spark: SparkSession,
    table: TableBuilder,
    condition: Column | str | None,
    assignments: Mapping[str, Column | str],
    expected: Mapping[str, str] | None = None,
    **options: Any,
) -> RowChangeResult:
    """Update, and compare with what Spark makes of the rows. ``expected``: whole columns, where fields are set."""

    def column(given: Column | str) -> Column:
        return F.expr(given) if isinstance(given, str) else given

    frame = delta_pyds.read(spark, table.path).alias(options.get("alias") or "t")
    matched = F.coalesce(F.lit(True) if condition is None else column(condition), F.lit(False))
    values = expected if expected is not None else {name.strip("`"): value for name, value in assignments.items()}
    told = frame.select(
        matched,
        *(
            F.when(matched, column(values[f.name]).cast(f.dataType)).otherwise(F.col(f"`{f.name}`"))
            if f.name in values
            else F.col(f"`{f.name}`")
            for f in frame.schema.fields
        ),
    ).collect()
    result = update_rows(handle(spark, table, **options), condition, assignments)
    after = delta_pyds.read(spark, table.path).collect()
    assert sorted(repr(tuple(r)) for r in after) == sorted(repr(tuple(r)[1:]) for r in told)
    assert result.num_updated_rows == result.num_affected_rows == sum(r[0] for r in told)
    delta_pyds.verify(str(table.path)).raise_for_errors()
    return result


def test_values_and_conditions_of_every_kind(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t", VECTORS)
    twice = F.udf(lambda i: i * 2, "long")
    check(spark, table, "t.id IN (SELECT id FROM others)", {"s": "concat(s, '!')", "d": "id"}, alias="t")
    check(spark, table, F.col("id") % 2 == 0, {"id": twice("id"), "`a.b`": F.col("`a.b`") + 1})
    check(spark, table, "d = double('NaN')", {"d": "hash(id)", "s": "(SELECT max(id) FROM others)"})
    check(spark, table, None, {"P": "'z'"}, {"p": "'z'"})
    check(spark, table, "s = s", {"id": "id + 1000", "s": "null"})


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(
    "properties",
    [{}, {**VECTORS, **CHANGES}, {"delta.columnMapping.mode": "id", **CHANGES}],
    ids=["rewritten", "vectors and feed", "ids and feed"],
)
def test_tables_of_every_kind(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], partitioned: bool
) -> None:
    table = made(tmp_path / "t", properties, partition_columns=["p"] if partitioned else [])
    version = load_snapshot(table.path).version
    check(spark, table, "hash(p) IS NOT NULL AND id IN (0, 1, 3)", {"p": "concat(p, 'new')", "id": "id + 100"})
    if "delta.enableChangeDataFeed" in properties:
        feed = spark.read.format("deltapy").option("readChangeFeed", "true").option("startingVersion", version + 1)
        changes = feed.load(str(table.path)).select("id", "p", "_change_type").collect()
        before = [(i, "pq"[i % 2], "update_preimage") for i in (0, 1, 3)]
        after = [(i + 100, "pq"[i % 2] + "new", "update_postimage") for i in (0, 1, 3)]
        assert sorted(map(tuple, changes)) == sorted(before + after)


def test_fields_inside_of_structs(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    # a struct that was null is there once a field of it is set
    whole = "named_struct('x', 7L, 'm', named_struct('y', concat('v', id)))"
    check(spark, table, "id < 5", {"t.N.X": "7L", "n.m.y": "concat('v', id)"}, {"n": whole}, alias="t")
    kept = "named_struct('x', n.x, 'm', named_struct('y', '5'))"
    check(spark, table, None, {"n.m.y": F.lit(5)}, {"n": kept})
    # as the reference has it: fields of another struct are matched by name, and by position where the names differ
    check(spark, table, "id = 7", {"n": F.struct(F.lit(1), F.struct(F.lit(2)))},
          {"n": "named_struct('x', 1, 'm', named_struct('y', '2'))"})  # fmt: skip
    check(spark, table, None, {"n": "named_struct('m', named_struct('y', 'a'), 'x', id)"},
          {"n": "named_struct('x', id, 'm', named_struct('y', 'a'))"})  # fmt: skip


def test_our_own_evaluator_does_the_same(spark: SparkSession, tmp_path: Path) -> None:
    for n, properties in enumerate(({}, VECTORS)):
        table = made(tmp_path / f"t{n}", properties)
        result = check(spark, table, "t.id > 3", {"t.id": "t.id + 1", "s": "upper(t.s)"},
                       {"id": "id + 1", "s": "upper(s)"}, alias="t", engine="auto")  # fmt: skip
        assert result.place.where_run == "process"


def test_row_ids_are_kept_and_versions_are_new(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = spark.range(10).withColumn("s", F.lit("x")).coalesce(1)
    delta_pyds.write(rows, path, properties={"delta.enableRowTracking": "true", **VECTORS})
    table = TableBuilder(tmp_path / "unused", {"id": "long"})
    table.path = path
    for n in (1, 2):  # the second time of a row that was moved before
        update_rows(handle(spark, table), "id IN (SELECT id FROM others)", {"s": f"concat(s, '{n}')"})
    told = delta_pyds.read(spark, path, row_ids=True).collect()
    assert {r["id"]: r["_row_id"] for r in told} == {i: i for i in range(10)}
    assert {r["id"]: r["_row_commit_version"] for r in told} == {i: 2 if i in (3, 4) else 0 for i in range(10)}
    delta_pyds.verify(str(path)).raise_for_errors()


def test_values_are_assigned_by_ansi_rules_whatever_the_session(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    try:
        for ansi in ("true", "false"):
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            for value in ("'abc'", "3000000000L + id"):
                with pytest.raises(PySparkException):
                    update_rows(handle(spark, table), "id = 1", {"`a.b`": value})
            update_rows(handle(spark, table), "id = 1", {"`a.b`": "'77'", "s": "5", "n": "null"})
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    (found,) = delta_pyds.read(spark, table.path, where="id = 1").collect()
    assert (found["a.b"], found["s"], found["n"]) == (77, "5", None)


def test_rules_of_the_table_hold(spark: SparkSession, tmp_path: Path) -> None:
    fields = [
        {"name": "id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "c", "type": "string", "nullable": True, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}},
        {"name": "g", "type": "long", "nullable": True, "metadata": {"delta.generationExpression": "id * 2"}},
    ]
    features = ["invariants", "checkConstraints", "generatedColumns"]
    table = TableBuilder(
        tmp_path / "t",
        {"type": "struct", "fields": fields},
        properties={"delta.constraints.small": "id < 100"},
        features=([], features),
    )
    table.create()
    table.append([{"id": i, "c": "a", "g": i * 2} for i in range(5)])
    target = handle(spark, table)
    for wrong in ({"id": "CAST(null AS BIGINT)"}, {"id": "id + 100"}, {"c": "'abcd'"}, {"g": "id"}):
        with pytest.raises((ConstraintViolationError, UserError)):
            update_rows(target, "hash(id) IS NOT NULL AND id = 3", wrong)
    assert load_snapshot(table.path).version == 1
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1
    update_rows(target, "hash(id) IS NOT NULL AND id = 3", {"id": "50L", "c": "'xyz'"})
    update_rows(target, "hash(id) IS NOT NULL AND id = 4", {"id": "60L", "g": "120"})
    found = delta_pyds.read(spark, table.path, where="id > 2").collect()
    assert sorted(map(tuple, found)) == [(50, "xyz", 100), (60, "a", 120)]
    delta_pyds.verify(str(table.path)).raise_for_errors()


def test_what_cannot_be_set_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    version = load_snapshot(table.path).version
    for wrong in ({"id": "1", "ID": "2"}, {"n": "null", "n.x": "1"}, {"s.x": "1"}):
        with pytest.raises(UserError):
            update_rows(handle(spark, table), None, wrong)
    with pytest.raises(ColumnNotFoundError):
        update_rows(handle(spark, table), None, {"nosuch": "1"})
    with pytest.raises(PySparkException):
        update_rows(handle(spark, table), None, {"id": "nosuch"})
    assert update_rows(handle(spark, table), "id > 100", {"id": "1"}).version is None
    assert load_snapshot(table.path).version == version
