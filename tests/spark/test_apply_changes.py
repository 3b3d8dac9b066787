"""``apply_changes``: any order of the changes, in any batches, gives the table of a plain model."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds import DeltaTable, apply_changes
from delta_pyds.errors import (
    ColumnNotFoundError,
    ConflictError,
    ConstraintViolationError,
    OptionError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.spark.row_changes.merge import merge_rows
from delta_pyds.spark.table_commands import rows as rows_commands
from delta_pyds.table.snapshot import load_snapshot
from tests.support.applied_changes import history_of, newest_of, overlapping
from tests.support.limits import ONLY_A_HANG_S
from tests.support.sampling import exhaustive
from tests.support.table_writes import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

SCHEMA = "id INT, seq BIGINT, name STRING, tags MAP<STRING, INT>, op STRING"
# a change: key, sequence, name; a name of None is a delete
Change = tuple[int, int, str | None]
KINDS = pytest.mark.parametrize("scd", [1, 2])


def frame(spark: SparkSession, changes: Sequence[Change]) -> DataFrame:
    rows = [
        (key, seq, "gone" if name is None else name, {"n": seq}, "D" if name is None else "U")
        for key, seq, name in changes
    ]
    return spark.createDataFrame(rows, SCHEMA)


def apply(spark: SparkSession, path: Any, changes: Sequence[Change], **given: Any) -> tuple[int, ...]:
    done = apply_changes(path, frame(spark, changes), **arguments(**given))
    return tuple(done.collect()[0])


def arguments(**given: Any) -> dict[str, Any]:
    wanted = {"keys": ["ID"], "sequence_by": "Seq", "delete_when": "op = 'D'", "except_column_list": ["OP"]}
    return {**wanted, **given}


def rows(path: Any) -> list[tuple[Any, ...]]:
    """Read without Spark; the map as text, so that rows have an order."""
    found = delta_pyds.scan(path).to_table().to_pylist()
    assert all(row["tags"] == (None if row["name"] is None else [("n", row["seq"])]) for row in found), found
    return sorted((tuple(v for k, v in row.items() if k != "tags") for row in found), key=repr)


def model_of_newest(changes: Sequence[Change]) -> list[tuple[Any, ...]]:
    return sorted(newest_of(changes), key=repr)


def model_of_history(changes: Sequence[Change]) -> list[tuple[Any, ...]]:
    return sorted(history_of(changes), key=repr)


MODELS = {1: model_of_newest, 2: model_of_history}


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Path]:
    return (tmp_path / str(n) for n in itertools.count())


@st.composite
def batches(draw: st.DrawFn) -> list[list[Change]]:
    """Changes with one row for each key and sequence, some of them again, in any order and any batches."""
    positions = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6)), min_size=1, max_size=10, unique=True))
    named = [(key, seq, draw(st.sampled_from([None, "a", "b"]))) for key, seq in positions]
    again = draw(st.lists(st.sampled_from(named), max_size=3))
    order = draw(st.permutations([*named, *again]))
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=2)))
    return [order[a:b] for a, b in itertools.pairwise([0, *cuts, len(order)])]


@KINDS
@settings(
    max_examples=200 if exhaustive() else 6,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    print_blob=True,
)
@given(batches=batches())
def test_any_order_in_any_batches_gives_one_table(
    scd: int, batches: list[list[Change]], spark: SparkSession, paths: Iterator[Path]
) -> None:
    path = next(paths)
    applied: list[Change] = []
    for batch in batches:
        before = load_snapshot(path).version if applied else -1
        apply(spark, path, batch, scd=scd)
        applied += batch
        found = rows(path)
        assert found == MODELS[scd](applied)
        assert scd == 1 or not overlapping(found)
        # the first batch also creates the table
        assert load_snapshot(path).version - before <= (1 if applied != batch else 2)
    delta_pyds.verify(path).raise_for_errors()


@KINDS
def test_late_changes_and_deletes(scd: int, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    first: list[Change] = [(1, 1, "a"), (1, 9, "b"), (2, 5, None)]
    late: list[Change] = [(1, 4, "between"), (2, 3, "before the delete"), (3, 2, "new")]
    apply(spark, path, first, scd=scd)
    apply(spark, path, late, scd=scd)
    version = load_snapshot(path).version
    assert rows(path) == MODELS[scd]([*first, *late])
    # again: nothing to commit
    assert apply(spark, path, [*late, *first], scd=scd) == (0, 0, 0, 0)
    assert load_snapshot(path).version == version


@KINDS
def test_a_small_batch_runs_in_this_process(scd: int, spark: SparkSession, tmp_path: Path) -> None:
    for changes in ([(1, 1, "a"), (2, 1, "b")], [(1, 2, "c"), (2, 3, None), (1, 1, "a")]):
        plain = frame(spark, changes).drop("tags")
        done = apply_changes(tmp_path / "t", plain, **arguments(scd=scd))
        report: Any = delta_pyds.explain(done)
        assert report.place.where_run == "process", report.place


@KINDS
def test_rows_that_nothing_orders_are_refused(scd: int, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    apply(spark, path, [(1, 1, "a"), (2, 2, None)], scd=scd)
    for changes in (
        [(7, 1, "a"), (7, 1, "b")],
        [(7, 1, "a"), (7, 1, None)],
        [(7, 1, "a"), (1, 1, "other")],
        [(2, 2, "there was a delete")],
    ):
        with pytest.raises(UserError, match=r"same key and the same sequence .*id = \d") as error:
            apply(spark, path, changes, scd=scd)
        assert error.value.parameters["key"] == f"id = {changes[-1][0]}"
    # equal rows are one change; of a delete only key and sequence count
    apply(spark, path, [(7, 1, "a"), (7, 1, "a"), (8, 1, None), (8, 1, None)], scd=scd)
    assert rows(path) == MODELS[scd]([(1, 1, "a"), (2, 2, None), (7, 1, "a"), (8, 1, None)])


@KINDS
def test_a_repeated_sequence_with_other_values_is_refused(scd: int, spark: SparkSession, tmp_path: Path) -> None:
    """In a later batch too, for values of any kind: also those that the table converts."""
    path = tmp_path / "t"
    given: dict[str, Any] = {"keys": "id", "sequence_by": "seq", "scd": scd}
    first = "1 AS id, 1L AS seq, 5 AS n, 'x' AS c, array('a') AS tags, map('k', 1) AS m, struct(1 AS a) AS s"
    table = DeltaTable.create(spark).location(str(path)).addColumn("id", "INT").addColumn("seq", "BIGINT")
    table.addColumn("n", "BIGINT").addColumn("c", "CHAR(3)").addColumn("tags", "ARRAY<STRING>")
    table.addColumn("m", "MAP<STRING, INT>").addColumn("s", "STRUCT<a: INT>")
    for name in ("__START_AT", "__END_AT") if scd == 2 else ():
        table.addColumn(name, "BIGINT")
    table.execute()
    apply_changes(path, spark.sql(f"SELECT {first}"), **given)
    version = load_snapshot(path).version
    apply_changes(path, spark.sql(f"SELECT {first}"), **given)
    assert load_snapshot(path).version == version
    for old, other in (
        ("5 AS n", "6 AS n"),
        ("'x' AS c", "'y' AS c"),
        ("array('a')", "array('a', 'b')"),
        ("map('k', 1)", "map('k', 2)"),
        ("struct(1 AS a)", "struct(2 AS a)"),
    ):
        with pytest.raises(UserError, match=r"same key and the same sequence .*id = 1"):
            apply_changes(path, spark.sql(f"SELECT {first.replace(old, other)}"), **given)


def test_a_table_with_history_is_not_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    apply(spark, path, [(1, 1, "a"), (1, 2, "b")], scd=2)
    was = rows(path)
    for arguments_of_newest in ({"delete_when": None}, {"tombstones": False}, {}):
        with pytest.raises(UserError, match="pass scd=2"):
            apply(spark, path, [(1, 3, "c")], **arguments_of_newest)
    assert rows(path) == was


def test_tombstones_false_on_a_table_that_has_them_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    apply(spark, path, [(1, 1, "a")])
    with pytest.raises(UserError, match=r"tombstones=False .*__DELETED"):
        apply(spark, path, [(1, 2, None)], tombstones=False)
    assert rows(path) == [(1, 1, "a", False)]


@KINDS
def test_nulls_are_refused(scd: int, spark: SparkSession, tmp_path: Path) -> None:
    nothing: Any = None
    with pytest.raises(UserError, match=r"null in a key .*id = NULL"):
        apply(spark, tmp_path / "t", [(nothing, 1, "a")], scd=scd)
    with pytest.raises(UserError, match=r"sequence is null .*id = 7"):
        apply(spark, tmp_path / "t", [(7, nothing, "a")], scd=scd)
    changes = frame(spark, [(7, 1, "a")])
    with pytest.raises(UserError, match=r"sequence is null .*id = 7"):
        given = arguments(scd=scd, sequence_by="struct(seq, nullif(seq, 1))")
        apply_changes(tmp_path / "s", changes, **given)
    assert load_snapshot(tmp_path / "t").version == 0


@KINDS
def test_a_sequence_of_several_columns(scd: int, spark: SparkSession, tmp_path: Path) -> None:
    """It is stored as a struct, and rows are compared by its first difference."""
    path = tmp_path / "t"
    given = arguments(scd=scd, sequence_by=F.struct(F.col("seq").alias("at"), "name"))
    for changes in ([(1, 1, "b")], [(1, 1, "c")], [(1, 1, "a")]):
        apply_changes(path, frame(spark, changes).drop("tags"), **given)
    found = delta_pyds.scan(path).to_table().to_pylist()
    if scd == 1:
        assert found == [{"id": 1, "seq": 1, "name": "c", "__SEQUENCE": {"at": 1, "name": "c"}, "__DELETED": False}]
    else:
        ends = {row["name"]: (row["__END_AT"] or {}).get("name") for row in found}
        assert ends == {"a": "b", "b": "c", "c": None}


def test_deletes_without_tombstones_remove_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_rows(path, {"id": "integer", "seq": "long", "name": "string"}, [{"id": 1, "seq": 0, "name": "old"}])
    given = arguments(tombstones=False)
    apply_changes(path, frame(spark, [(1, 3, None), (2, 1, "b"), (3, 1, None)]).drop("tags"), **given)
    assert delta_pyds.scan(path).to_table().to_pylist() == [{"id": 2, "seq": 1, "name": "b"}]
    # the named limit
    apply_changes(path, frame(spark, [(1, 2, "late")]).drop("tags"), **given)
    assert len(delta_pyds.scan(path).to_table()) == 2


def test_a_table_of_the_user(spark: SparkSession, tmp_path: Path) -> None:
    """Rows without a sequence are the oldest; columns that fill themselves stay out of it."""
    path = str(tmp_path / "t")
    (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("ID", "BIGINT")
        .addColumn("name", "STRING")
        .addColumn("upper", "STRING", generatedAlwaysAs="upper(name)")
        .addColumn("__SEQUENCE", "BIGINT")
        .addColumn("__DELETED", "BOOLEAN")
        .execute()
    )
    old = spark.sql("SELECT 1L AS ID, 'old' AS name")
    delta_pyds.write(old, path, mode="append")
    table = DeltaTable.forPath(spark, path, user_metadata="by hand")
    given = arguments(column_list=["id", "name"], except_column_list=None)
    apply_changes(table, frame(spark, [(1, 1, "new"), (2, 1, None)]), **given)
    found = {row.ID: tuple(row)[1:] for row in table.toDF().collect()}
    assert found == {1: ("new", "NEW", 1, False), 2: (None, None, 1, True)}
    assert table.history(1).collect()[0].userMetadata == "by hand"


def test_a_table_by_name_that_does_not_exist(spark: SparkSession) -> None:
    try:
        changes = frame(spark, [(1, 1, "a")]).drop("tags")
        for _ in range(2):
            apply_changes(changes=changes, table="kept_equal", target=None, **arguments())
        assert [tuple(row) for row in spark.table("kept_equal").collect()] == [(1, 1, "a", False)]
    finally:
        delta_pyds.drop_table(spark, "kept_equal", data=True)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"keys": "nosuch"}, ColumnNotFoundError, "argument keys .*'nosuch'"),
        ({"keys": "op"}, OptionError, "'op' is not among the columns"),
        ({"except_column_list": "nosuch"}, ColumnNotFoundError, "except_column_list"),
        ({"sequence_by": "nosuch + 1"}, UserError, "argument sequence_by .*nosuch"),
        ({"sequence_by": "tags"}, UserError, "sequence_by .*no order"),
        ({"delete_when": "nosuch"}, UserError, "argument delete_when .*nosuch"),
        ({"delete_when": "seq"}, UserError, "delete_when .*condition"),
        ({"keys": "name"}, ColumnNotFoundError, "column 'extra', which the changes"),
        ({"except_column_list": None}, ColumnNotFoundError, "column 'op', which the table"),
        ({"except_column_list": "op,tags"}, ColumnNotFoundError, "column 'tags', which the changes"),
        ({"sequence_by": "seq + 0"}, ColumnNotFoundError, "ADD COLUMN __SEQUENCE BIGINT"),
        ({"scd": 2}, ColumnNotFoundError, "ADD COLUMN __START_AT BIGINT"),
        ({"sequence_by": "name"}, UserError, "different"),
        ({"txn_app_id": "a"}, OptionError, "txnVersion"),
        ({"table": "t"}, OptionError, "not both"),
        ({"storage_options": {}}, None, ""),
    ],
)
def test_wrong_arguments_and_columns_are_named(
    given: dict[str, Any], error: type[Exception] | None, message: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    apply(spark, path, [(1, 1, "a")])
    if "extra" in message:
        DeltaTable.forPath(spark, path).addColumn("extra", "INT")
    if message == "different":
        message, given = "cast it", {"sequence_by": "seq", "keys": "id"}
        changes = frame(spark, [(1, 2, "b")]).withColumn("seq", F.col("seq").cast("string"))
    else:
        changes = frame(spark, [(1, 2, "b")])
    if error is None:
        apply_changes(path, changes, **arguments(**given))
        return
    with pytest.raises(error, match=message):
        apply_changes(path, changes, **arguments(**given))
    assert rows(path)[0][:3] == (1, 1, "a") if "extra" not in message else True


def test_changes_of_another_kind_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(OptionError, match="foreachBatch"):
        apply_changes(tmp_path, stream, keys="value", sequence_by="timestamp")
    wrong: Any = [1]
    with pytest.raises(OptionError, match="DataFrame"):
        apply_changes(tmp_path, wrong, keys="value", sequence_by="timestamp")
    with pytest.raises(OptionError, match="txn_version"):
        apply_changes(tmp_path, keys="value", sequence_by="timestamp", txn_version=1)
    with pytest.raises(UnsupportedOperationError, match="track_history_column_list"):
        apply_changes(tmp_path, keys="value", sequence_by="timestamp", track_history_column_list=F.col("a"))
    taken = spark.range(1).withColumn("__deleted", F.lit(True))
    with pytest.raises(UserError, match="__deleted"):
        apply_changes(tmp_path, taken, keys="id", sequence_by="id")


def test_constraints_of_the_table_hold(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    apply(spark, path, [(1, 1, "a")])
    DeltaTable.forPath(spark, path).addConstraint("named", "name <> 'bad'")
    with pytest.raises(ConstraintViolationError):
        apply(spark, path, [(1, 2, "bad")])
    assert rows(path) == model_of_newest([(1, 1, "a")])


def test_a_given_version_of_an_application_is_applied_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for scd in (1, 2):
        txn: dict[str, Any] = {"txn_app_id": "job", "txn_version": 7}
        apply(spark, path / str(scd), [(1, 1, "a")], scd=scd, **txn)
        assert load_snapshot(path / str(scd)).transactions["job"].version == 7
        # other changes under the same version: they are not even read
        broken = frame(spark, [(1, 5, "z")]).withColumn("name", F.expr("raise_error('was read')"))
        apply_changes(path / str(scd), broken, **arguments(scd=scd), **txn)
        assert rows(path / str(scd)) == MODELS[scd]([(1, 1, "a")])


@KINDS
@pytest.mark.parametrize("app_id", [None, "orders"])
def test_a_stream_that_dies_before_its_checkpoint_applies_nothing_twice(
    scd: int, app_id: str | None, spark: SparkSession, tmp_path: Path
) -> None:
    source, checkpoint, path = tmp_path / "source", tmp_path / "checkpoint", tmp_path / "t"
    source.mkdir()
    batches: list[list[Change]] = [[(1, 1, "a"), (2, 3, "b")], [(1, 2, None), (2, 2, "late")], [(3, 1, "c")]]

    def feed(number: int) -> None:
        lines = ({"id": k, "seq": s, "name": n or "gone", "op": "U" if n else "D"} for k, s, n in batches[number])
        (source / f"{number}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run() -> None:
        save = apply_changes(path, **arguments(scd=scd), txn_app_id=app_id)
        events = spark.readStream.schema("id INT, seq BIGINT, name STRING, op STRING")
        frame = events.option("maxFilesPerTrigger", 1).json(str(source))
        writer = frame.writeStream.foreachBatch(save).option("checkpointLocation", str(checkpoint))
        assert writer.trigger(availableNow=True).start().awaitTermination(ONLY_A_HANG_S)

    feed(0)
    feed(1)
    run()
    version = load_snapshot(path).version
    last = max(int(f.name) for f in (checkpoint / "commits").iterdir() if f.name.isdecimal())
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    run()
    assert load_snapshot(path).version == version == 2
    feed(2)
    run()
    assert load_snapshot(path).version == 3
    found = sorted((tuple(row.values()) for row in delta_pyds.scan(path).to_table().to_pylist()), key=repr)
    assert found == MODELS[scd]([change for batch in batches for change in batch])
    transactions = load_snapshot(path).transactions
    assert (transactions["orders"].version == 2) if app_id else not transactions


def test_changes_that_lost_a_race_are_decided_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The winner deleted a row, inserted a key and its tombstone."""
    path = tmp_path / "t"
    first: list[Change] = [(1, 1, "a"), (9, 1, "a")]
    winner: list[Change] = [(1, 5, None), (2, 5, None), (3, 5, "w")]
    late: list[Change] = [(1, 3, "b"), (2, 3, "b"), (3, 3, "b"), (4, 3, "b"), (9, 3, "b")]
    apply(spark, path, first)
    before = load_snapshot(path)
    apply(spark, path, winner)
    merge = rows_commands.merge
    monkeypatch.setattr(
        rows_commands, "merge", lambda handle, *given, **named: merge(replace(handle, pinned=before), *given, **named)
    )
    apply(spark, path, late)
    assert rows(path) == model_of_newest([*first, *winner, *late])


def test_a_race_over_the_history_is_a_conflict_or_runs_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history is computed again from the version that the winner made."""
    from delta_pyds.spark.apply_changes import call

    path = tmp_path / "t"
    apply(spark, path, [(1, 1, "a")], scd=2)
    merged, winners = merge_rows, [[(1, 5, "w")], [(1, 7, "x")]]

    def lose(*args: Any) -> Any:
        if winners:
            changes: Any = winners.pop(0)
            monkeypatch.setattr(call, "merge_rows", merged)
            apply(spark, path, changes, scd=2)
            monkeypatch.setattr(call, "merge_rows", lose)
        return merged(*args)

    monkeypatch.setattr(call, "merge_rows", lose)
    table = DeltaTable.forPath(spark, path, max_runs=2)
    with pytest.raises(ConflictError):
        apply(spark, table, [(1, 3, "b")], scd=2)
    winners.append([(1, 8, "y")])
    apply(spark, table, [(1, 3, "b")], scd=2)
    every: list[Change] = [(1, 1, "a"), (1, 5, "w"), (1, 7, "x"), (1, 8, "y"), (1, 3, "b")]
    assert rows(path) == model_of_history(every)
