"""Commands that a query of Spark runs are mended after lost races, as those of our own evaluator."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds import DeltaTable, IdentityGenerator, read, verify, write
from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.commit_rows import commit_rows
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.errors import ConflictError, DeltaError, UserError
from delta_pyds.spark import session_write
from delta_pyds.spark.row_changes import repeatable
from delta_pyds.spark.row_changes.handle import Engine
from delta_pyds.spark.row_changes.merge import _Query
from delta_pyds.spark.row_changes.repeatable import _is_fixed_plan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.change_feed import applied, bag, change_rows
from tests.support.commits import actions
from tests.support.planned_changes import planned_delete, planned_update
from tests.support.row_changes import CHANGES, VECTORS, small_table
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.harness import Harness
from tests.support.row_model.losing import WINNERS, Races, check_race, unnamed_files
from tests.support.row_model.losing_queries import MODULES, LosingQueries
from tests.support.row_model.steps import (
    DELETES,
    LAYOUTS,
    MERGES,
    TASKS,
    UPDATES,
    Layout,
    Rows,
    Step,
)
from tests.support.sampling import exhaustive
from tests.support.table_writes import read_rows

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

KINDS = {"delete": DELETES, "update": UPDATES, "merge": MERGES}
_FEW = settings(
    max_examples=40 if exhaustive() else 6,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    print_blob=True,
)


@pytest.mark.parametrize("kind", KINDS)
@_FEW
@given(
    data=st.data(),
    layout=LAYOUTS,
    first=TASKS,
    winners=st.lists(st.lists(WINNERS, min_size=1, max_size=2), min_size=1, max_size=2),
)
def test_a_query_that_lost_races(
    spark: SparkSession, kind: str, data: st.DataObject, layout: Layout, first: tuple[Rows], winners: list[list[Step]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        harness = Harness(Path(directory) / "t", layout, first, CoreEngine())
        if data.draw(st.booleans()):
            harness.run(data.draw(DELETES))
        step = data.draw(KINDS[kind])
        # whether the source is kept in this process or by the executors
        small = contextlib.nullcontext() if data.draw(st.booleans()) else _large_sources()
        with small:
            check_race(harness, step, winners, lambda meanwhile: LosingQueries(spark, meanwhile))


def _large_sources() -> contextlib.AbstractContextManager[Any]:
    return mock.patch("delta_pyds.spark.row_changes.merge_source._small", return_value=None)


# --- given races


def lose(
    spark: SparkSession, path: Path, winner: Callable[[], Any], command: Callable[[DeltaTable], Any], **more: Any
) -> dict[str, str]:
    """Run a command that loses one race. Returns: the metrics of its commit."""
    waiting = [winner]

    def meanwhile() -> None:
        if waiting:
            waiting.pop()()

    given = {"engine": "spark", "isolation_level": "Serializable", **more}
    with Races(meanwhile, MODULES).lost():
        # for a server of Spark Connect, another path may be another table
        command(DeltaTable.forPath(spark, path.as_uri(), **given))
    verify(str(path)).raise_for_errors()
    version = load_snapshot(str(path)).version
    info = next(a["commitInfo"] for a in actions(path, version) if "commitInfo" in a)
    found: dict[str, str] = info["operationMetrics"]
    return found


def made(path: Path, properties: Mapping[str, str] = VECTORS, files: int = 2) -> Path:
    table = small_table(path, {"id": "long", "v": "long"}, properties)
    for n in range(files):
        table.append([{"id": 10 * n + i, "v": 0} for i in range(10)])
    return path


def updated(path: Path, condition: str, **values: str) -> None:
    """An update of another process."""
    plan = planned_update(load_snapshot(str(path)), condition, values, CommandOptions())
    with mock.patch("delta_pyds.commands.row_changes.update.commit_rows", commit_rows):
        assert run_update(plan, Place("process", "a test says so.")).version is not None


def rows_of(table: Path) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in read_rows(table))


def odd(i: int) -> bool:
    return i % 2 == 1


REPEATABLE: dict[str, Callable[[], Column | str]] = {
    "text": lambda: "transform(array(id), i -> i % 2)[0] = 1",
    "dates": lambda: (
        "transform(array(id), i -> i % 2)[0] = 1 AND cast('2020-01-01' as date) < to_date('2030-' || '01-01')"
    ),
    "user's function as a Column": lambda: F.udf(odd, "boolean")("id"),
}
NOT_REPEATABLE: dict[str, Callable[[], Column | str]] = {
    "random": lambda: "rand() < 2",
    "random Column": lambda: F.rand() < 2,
    "user's function that is not deterministic": lambda: F.udf(odd, "boolean").asNondeterministic()("id"),
    "time": lambda: "current_timestamp() > timestamp'2020-01-01 00:00:00'",
    "time in a text": lambda: "cast('now' as timestamp) > timestamp'2020-01-01 00:00:00'",
    "time in a computed text": lambda: "cast('to' || 'day' as date) > date'2020-01-01'",
    "time in two texts": lambda: "date'2020-01-01' < to_date('to' 'day')",
    "user": lambda: "length(current_user()) > 0",
    "subquery": lambda: "id NOT IN (SELECT id + 100 FROM others WHERE id IS NOT NULL)",
    "user's function of the session": lambda: "is_odd(id)",
    "the same in a Column": lambda: F.expr("is_odd(id)"),
    "the same by its name": lambda: F.call_function("is_odd", "id"),
    "variable": lambda: "id > lowest",
}


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("condition", REPEATABLE)
def test_an_expression_that_can_be_repeated(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    table = made(tmp_path / "t")
    metrics = lose(
        spark, table, lambda: updated(table, "id < 4", id="id + 101"), lambda t: t.delete(REPEATABLE[condition]())
    )
    # 1 and 3 became even, 0 and 2 became odd
    assert [i for i, _ in rows_of(table)] == [*range(4, 20, 2), 102, 104]
    assert metrics["numMends"] == "1" and metrics["numDeletedRows"] == "10" and metrics["numMendedRows"] == "8"


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("condition", NOT_REPEATABLE)
def test_an_expression_that_cannot_be_repeated(spark: SparkSession, tmp_path: Path, condition: str) -> None:
    table = made(tmp_path / "t")
    spark.udf.register("is_odd", odd, "boolean")
    spark.sql("DECLARE OR REPLACE VARIABLE lowest INT DEFAULT -1")
    given = NOT_REPEATABLE[condition]
    with pytest.raises(ConflictError):
        lose(spark, table, lambda: updated(table, "id = 1", id="101"), lambda t: t.delete(given()))
    assert len(rows_of(table)) == 20
    # the whole command may run again
    metrics = lose(spark, table, lambda: updated(table, "id = 3", id="103"), lambda t: t.delete(given()), max_runs=2)
    assert "numMends" not in metrics and len(rows_of(table)) < 20


def test_a_cut_text_of_a_plan_hides_no_variable(spark: SparkSession) -> None:
    """As in Spark 4.0, whose plans have no pattern for variables."""
    spark.sql("DECLARE OR REPLACE VARIABLE of_a_text = 1L")
    try:
        plain, varying = spark.range(3).filter("id = 1"), spark.range(3).filter("id = of_a_text")
        with (
            mock.patch("delta_pyds.spark.row_changes.repeatable._VARIABLE", "NO_PATTERN"),
            mock.patch("delta_pyds.spark.row_changes.repeatable._PATTERNS", ("PLAN_EXPRESSION",)),
        ):
            assert _is_fixed_plan(plain) and not _is_fixed_plan(varying)
            spark.conf.set("spark.sql.maxPlanStringLength", "10")
            assert not _is_fixed_plan(plain) and not _is_fixed_plan(varying)
    finally:
        spark.conf.unset("spark.sql.maxPlanStringLength")
        spark.sql("DROP TEMPORARY VARIABLE of_a_text")


def test_what_a_draw_decided_stays_if_no_row_is_new(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    deleted = planned_delete(load_snapshot(str(table)), "id < 5", CommandOptions())
    metrics = lose(spark, table, lambda: run_delete(deleted, Place("process", "")), lambda t: t.delete("rand() < 2"))
    assert rows_of(table) == [] and metrics["numDeletedRows"] == "15"


@pytest.mark.parametrize("command", ["delete", "update"])
def test_a_subquery_is_not_decided_again_although_no_row_is_new(
    spark: SparkSession, tmp_path: Path, command: str
) -> None:
    """In the order of the commits, the largest id is another one."""
    table = made(tmp_path / "t")
    read(spark, str(table)).createOrReplaceTempView("rows_of_the_table")
    smaller = "id < (SELECT max(id) FROM rows_of_the_table)"
    deleted = planned_delete(load_snapshot(str(table)), "id = 19", CommandOptions())

    def changed(one: DeltaTable) -> Any:
        return one.delete(smaller) if command == "delete" else one.update(smaller, {"v": "1"})

    with pytest.raises(ConflictError):
        lose(spark, table, lambda: run_delete(deleted, Place("process", "")), changed)
    spark.catalog.dropTempView("rows_of_the_table")
    assert rows_of(table) == [(i, 0) for i in range(19)]


def test_values_that_spark_pads_are_not_decided_again(spark: SparkSession, tmp_path: Path) -> None:
    """Spark pads values of type char where it reads a source, and not in rows of files."""
    table = tmp_path / "t"
    making = DeltaTable.create(spark).location(str(table)).property("delta.enableDeletionVectors", "true")
    making.addColumn("id", "long").addColumn("v", "long").addColumn("c", "char(5)").execute()
    rows = spark.createDataFrame([(i, 0, "ab") for i in range(4)], "id long, v long, c string")
    write(rows, str(table), mode="append")
    with pytest.raises(ConflictError):
        lose(spark, table, lambda: updated(table, "id < 2", v="9"), lambda t: t.delete("c = 'ab   '"))
    assert rows_of(table) == [(0, 9), (1, 9), (2, 0), (3, 0)]


# a value of a session's setting, and a value of an expression that depends on it
_IN_SPARK = "transform(array(id), i -> {0})[0]"
MEANINGS = {
    "spark.sql.session.timeZone": ("Asia/Tokyo", _IN_SPARK.format("hour(timestamp_seconds(i * 3600))")),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", _IN_SPARK.format("length(typeof(cast('2020-01-01' AS timestamp)))")),
    "spark.sql.parser.escapedStringLiterals": ("true", _IN_SPARK.format(r"length('a\nb')")),
    "spark.sql.decimalOperations.allowPrecisionLoss": (
        "false",
        _IN_SPARK.format("length(cast(cast(i AS decimal(38,18)) * cast(1.5 AS decimal(38,18)) AS string))"),
    ),
}
WRITES = ("delete", "update", "merge")


@contextlib.contextmanager
def _restored(spark: SparkSession, name: str) -> Iterator[None]:
    before = spark.conf.get(name)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def by_value(spark: SparkSession, kind: str, value: str) -> Callable[[DeltaTable], Any]:
    """A command that depends on a value of each row."""
    source = spark.range(20).alias("s")

    def run(table: DeltaTable) -> Any:
        if kind == "delete":
            return table.delete(f"{value} > 2")
        if kind == "update":
            return table.update(_IN_SPARK.format("i >= 0"), {"v": value})
        merging = table.alias("t").merge(source, "t.id = s.id")
        return merging.whenMatchedUpdate(set={"v": value.replace("(id)", "(t.id)")}).execute()

    return run


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("name", MEANINGS)
def test_a_setting_that_changed_is_another_expression(
    spark: SparkSession, tmp_path: Path, name: str, kind: str
) -> None:
    table = made(tmp_path / "t")
    changed, value = MEANINGS[name]

    def meanwhile() -> None:
        updated(table, "id IN (2, 3)", v="9")
        spark.conf.set(name, changed)

    with _restored(spark, name), pytest.raises(ConflictError):
        lose(spark, table, meanwhile, by_value(spark, kind, value))
    assert rows_of(table) == [(i, 9 if i in (2, 3) else 0) for i in range(20)]


@pytest.mark.parametrize("kind", WRITES)
def test_a_setting_that_changes_while_a_mend_runs(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """The files of the mend are deleted."""
    table = made(tmp_path / "t")
    name = "spark.sql.session.timeZone"
    changed, value = MEANINGS[name]
    require = repeatable.require_repeatable

    def change(*given: Any, **more: Any) -> None:
        require(*given, **more)
        spark.conf.set(name, changed)

    with (
        _restored(spark, name),
        mock.patch(f"delta_pyds.spark.row_changes.{kind}.require_repeatable", change),
        pytest.raises(ConflictError),
    ):
        lose(spark, table, lambda: updated(table, "id IN (2, 3)", v="9"), by_value(spark, kind, value))
    assert rows_of(table) == [(i, 9 if i in (2, 3) else 0) for i in range(20)]
    named = {a["add"]["path"] for n in (1, 2, 3) for a in actions(table, n) if "add" in a}
    assert {file.name for file in table.glob("*.parquet")} == named


@pytest.mark.parametrize("kind", WRITES)
def test_settings_without_meaning(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t")
    name = "spark.sql.shuffle.partitions"

    def meanwhile() -> None:
        updated(table, "id IN (2, 3)", v="9")
        spark.conf.set(name, "3")

    with _restored(spark, name):
        metrics = lose(spark, table, meanwhile, by_value(spark, kind, MEANINGS["spark.sql.session.timeZone"][1]))
    assert metrics["numMends"] == "1"


def test_replace_where_after_a_setting_changed(spark: SparkSession, tmp_path: Path) -> None:
    table, name = made(tmp_path / "t"), "spark.sql.session.timeZone"
    changed, value = MEANINGS[name]
    commit_write = session_write.commit_write

    def late(*given: Any, **more: Any) -> Any:
        updated(table, "id IN (2, 3)", v="9")
        spark.conf.set(name, changed)
        return commit_write(*given, **more)

    with (
        _restored(spark, name),
        mock.patch("delta_pyds.spark.session_write.commit_write", late),
        pytest.raises(ConflictError),
    ):
        none = spark.createDataFrame([], "id long, v long")
        write(none, str(table), mode="overwrite", replace_where=f"{value} > 4")
    assert rows_of(table) == [(i, 9 if i in (2, 3) else 0) for i in range(20)]


def test_a_generated_column_of_another_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    """Its task's error is the conflict."""
    table, name = tmp_path / "t", "spark.sql.session.timeZone"
    making = DeltaTable.create(spark).location(str(table)).property("delta.enableDeletionVectors", "true")
    making.addColumn("id", "long").addColumn("v", "timestamp")
    making.addColumn("h", "string", generatedAlwaysAs="date_format(v, 'HH')").execute()
    rows = spark.range(10).selectExpr("id", "timestamp_seconds(id) AS v")
    write(rows.coalesce(1), str(table), mode="append")

    def meanwhile() -> None:
        run_delete(planned_delete(load_snapshot(str(table)), "id = 2", CommandOptions()), Place("process", ""))
        write(rows.filter("id = 2"), str(table), mode="append")
        spark.conf.set(name, "Asia/Tokyo")

    def merging(one: DeltaTable) -> Any:
        source = spark.range(5).selectExpr("id", "timestamp_seconds(id + 3600) AS v").alias("s")
        return one.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"}).execute()

    with _restored(spark, name), pytest.raises(ConflictError):
        lose(spark, table, meanwhile, merging)


def test_a_source_that_was_read_from_the_table_is_not_joined_again(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t")

    def added(one: DeltaTable) -> None:
        source = read(spark, str(table)).selectExpr("id", "v + 1 AS v").alias("s")
        one.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"}).execute()

    with pytest.raises(ConflictError):
        lose(spark, table, lambda: updated(table, "id = 1", v="100"), added)
    assert dict(rows_of(table))[1] == 100
    # a compaction changes no row
    compaction = plan_optimize(load_snapshot(str(table)), (), CommandOptions())
    metrics = lose(spark, table, lambda: run_layout(compaction, Place("process", "")), added)
    assert metrics["numMends"] == "1" and dict(rows_of(table))[1] == 101


def merge(
    spark: SparkSession, ids: Sequence[int], *, delete: bool = False, insert: bool = True
) -> Callable[[DeltaTable], Any]:
    source = spark.createDataFrame([(i, 1) for i in ids], "id long, v long").alias("s")

    def run(table: DeltaTable) -> Any:
        merging = table.alias("t").merge(source, "t.id = s.id")
        merging = merging.whenMatchedDelete() if delete else merging.whenMatchedUpdate(set={"v": "s.v"})
        return (merging.whenNotMatchedInsertAll() if insert else merging).execute()

    return run


@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_rows_of_a_source_gain_and_lose_partners(
    spark: SparkSession, tmp_path: Path, large: bool, delete: bool
) -> None:
    """1 loses its only partner, 2 one of two, 40 gets one, 5 keeps its own, 50 has none."""
    table = made(tmp_path / "t", {**VECTORS, **CHANGES})
    write(spark.createDataFrame([(2, 7)], "id long, v long"), str(table), mode="append")

    def winner() -> None:
        updated(table, "id = 1", id="100")
        updated(table, "id = 2 AND v = 7", id="40")

    with _large_sources() if large else contextlib.nullcontext():
        lose(spark, table, winner, merge(spark, [1, 2, 40, 5, 50], delete=delete))
    left = [i for i in range(20) if i not in (1, 2, 5)]
    kept = [] if delete else [(2, 1), (5, 1), (40, 1)]
    assert rows_of(table) == sorted([*((i, 0) for i in left), (100, 0), *kept, (1, 1), (50, 1)])
    assert applied([], change_rows(table)) == bag(read_rows(table))


def test_two_partners_after_the_winner(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    twice = spark.createDataFrame([(30, 1), (30, 2), (3, 1)], "id long, v long").alias("s")

    def run(t: DeltaTable) -> Any:
        return t.alias("t").merge(twice, "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"}).execute()

    with pytest.raises(UserError) as caught:
        lose(spark, table, lambda: updated(table, "id = 4", id="30"), run)
    assert caught.value.code == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


def test_identity_values_of_rows_that_a_mend_inserts(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    builder = DeltaTable.create(spark).location(str(table)).addColumn("k", "long")
    builder = builder.addColumn("n", "long", generatedAlwaysAs=IdentityGenerator())
    builder.property("delta.enableDeletionVectors", "true").execute()
    write(spark.range(6).select(F.col("id").alias("k")).coalesce(1), str(table), mode="append")
    source = spark.range(4, 9).select(F.col("id").alias("k")).alias("s")

    def run(t: DeltaTable) -> Any:
        merging = t.alias("t").merge(source, "t.k = s.k").whenMatchedUpdate(set={"k": "s.k"})
        return merging.whenNotMatchedInsert(values={"k": "s.k"}).execute()

    lose(spark, table, lambda: updated(table, "k = 5", k="50"), run)
    rows = read_rows(table)
    assert sorted(row["k"] for row in rows) == [*range(9), 50]
    assert len({row["n"] for row in rows}) == 10


def test_a_file_that_a_vacuum_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """It is the conflict, not an error of Spark."""
    table = made(tmp_path / "t")
    before = [a["add"]["path"] for version in (1, 2) for a in actions(table, version) if "add" in a]

    def winner() -> None:
        run_layout(plan_optimize(load_snapshot(str(table)), (), CommandOptions()), Place("process", "a test says so."))
        for path in before:
            (table / path).unlink()

    with pytest.raises(ConflictError):
        lose(spark, table, winner, merge(spark, [2, 3]))


@pytest.mark.parametrize("engine", ["tasks", "spark"])
def test_a_new_file_that_a_vacuum_deleted_before_tasks_read_it(
    spark: SparkSession, tmp_path: Path, engine: Engine
) -> None:
    table = made(tmp_path / "t")

    def winner() -> None:
        updated(table, "id = 1", id="100")
        for action in actions(table, load_snapshot(str(table)).version):
            if "add" in action and not action["add"].get("deletionVector"):
                (table / action["add"]["path"]).unlink()

    room = "spark" if engine == "spark" else "commands"
    waiting = [winner]
    races = Races(lambda: waiting.pop()() if waiting else None, [f"delta_pyds.{room}.row_changes.update"])
    with races.lost(), pytest.raises(ConflictError):
        DeltaTable.forPath(spark, str(table), engine=engine).update("id > 5", {"v": "v + 1"})


@pytest.mark.parametrize("failing", ["_matching", "_matched_in", "_insert"])
def test_a_mend_that_fails_leaves_no_file(spark: SparkSession, tmp_path: Path, failing: str) -> None:
    table = made(tmp_path / "t", {**VECTORS, **CHANGES})

    def winner() -> None:
        # 1 loses its only partner, and 30 gets one
        updated(table, "id = 1", id="100")
        updated(table, "id = 4", id="30")

    # a merge that deletes asks first for the lost rows, which writes nothing
    delete, calls, called = failing == "_matching", itertools.count(), getattr(_Query, failing)

    def fails(*given: Any) -> Any:
        if next(calls) == int(delete):
            raise DeltaError("a test says so.")
        return called(*given)

    with mock.patch.object(_Query, failing, fails), pytest.raises(DeltaError, match="a test says so"):
        lose(spark, table, winner, merge(spark, [1, 3, 30, 50], delete=delete))
    assert load_snapshot(str(table)).version == 4
    assert unnamed_files(table) == set()


def test_origins_that_are_too_large(spark: SparkSession, tmp_path: Path) -> None:
    """A command without them is mended if no row that it wrote must go."""
    table = made(tmp_path / "t")

    def run(t: DeltaTable) -> Any:
        return t.update("transform(array(id), i -> i % 2)[0] = 1", {"v": "v + 1"})

    with mock.patch("delta_pyds.spark.row_changes.apply._MOST_ORIGIN_BYTES", 0):
        with pytest.raises(ConflictError):
            lose(spark, table, lambda: updated(table, "id = 1", id="101"), run)
        metrics = lose(spark, table, lambda: updated(table, "id = 2", id="201"), run)
    assert metrics["numMends"] == "1"
    odds = [*range(3, 20, 2), 101, 201]
    assert rows_of(table) == sorted([*((i, 1) for i in odds), *((i, 0) for i in range(0, 20, 2) if i != 2)])
