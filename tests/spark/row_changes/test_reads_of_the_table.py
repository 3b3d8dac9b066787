"""Commands and writes whose subquery, source or rows come from rows of their table that they do not change.

Another writer that changes those rows meanwhile is a conflict, although it changes none of the command's own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds import ConflictError, DeltaTable, read
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.spark.row_changes.apply import apply_rows
from delta_pyds.table.snapshot import load_snapshot
from tests.support.commits import actions
from tests.support.planned_changes import delete, planned_update
from tests.support.row_changes import VECTORS
from tests.support.row_model.losing import Races
from tests.support.row_model.losing_queries import MODULES
from tests.support.table_writes import read_rows, write_rows

pytestmark = pytest.mark.one_case_in(3)

SCHEMA = {"p": "long", "id": "long", "v": "long"}


@pytest.fixture(params=["files", "partitions"])
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Two files, with p = 0 and p = 1. The view ``other`` shows the rows with p = 1."""
    path = tmp_path / "t"
    for p in range(2):
        rows = [{"p": p, "id": 10 * p + i, "v": 0} for i in range(4)]
        by = (("p",),) if request.param == "partitions" else None
        write_rows(path, SCHEMA, rows, partition_by=by, **({} if p else {"properties": VECTORS}))
    read(spark, path).where("p = 1").createOrReplaceTempView("other")
    yield path
    spark.catalog.dropTempView("other")


def gone(table: Path) -> None:
    """Another writer deletes the rows with p = 1. They are a whole file."""
    assert delete(table, "p = 1").version is not None


def rows_of(table: Path) -> list[tuple[int, ...]]:
    return sorted(tuple(row[name] for name in SCHEMA) for row in read_rows(table))


def merged(table: DeltaTable, spark: SparkSession, source: str = "SELECT id - 10 AS id FROM other") -> Any:
    return table.alias("t").merge(spark.sql(source).alias("s"), "t.id = s.id AND t.p = 0")


ROWS = "SELECT id FROM range(4)"
COMMANDS: dict[str, Callable[[DeltaTable, SparkSession], Any]] = {
    "delete": lambda t, _: t.delete("p = 0 AND id IN (SELECT id - 10 FROM other)"),
    "delete where none": lambda t, _: t.delete("p = 0 AND NOT EXISTS (SELECT 1 FROM other WHERE id > 20)"),
    "update": lambda t, _: t.update("p = 0", {"v": "(SELECT count(*) FROM other)"}),
    "merge": lambda t, spark: merged(t, spark).whenMatchedUpdate(set={"v": F.lit(1)}).execute(),
    "merge by our evaluator": lambda t, spark: merged(t, spark).whenMatchedUpdate(set={"v": "1"}).execute(),
    "condition of a clause": lambda t, spark: (
        merged(t, spark, ROWS).whenMatchedUpdate("t.id IN (SELECT id - 10 FROM other)", {"v": "1"}).execute()
    ),
    "value of a clause": lambda t, spark: (
        merged(t, spark, ROWS).whenMatchedUpdate(set={"v": "(SELECT count(*) FROM other)"}).execute()
    ),
    "inserted value": lambda t, spark: (
        merged(t, spark, "SELECT 7L AS id")
        .whenNotMatchedInsert(values={"p": "0", "id": "s.id", "v": "(SELECT count(*) FROM other)"})
        .execute()
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_reads_other_rows_of_its_table(spark: SparkSession, table: Path, command: str) -> None:
    waiting = [gone]

    def meanwhile() -> None:
        if waiting:
            waiting.pop()(table)

    engine: Any = "process" if command == "merge by our evaluator" else "spark"
    # a DataFrame keeps its version: another run would take the old rows again
    target = DeltaTable.forPath(spark, str(table), engine=engine, isolation_level="Serializable", max_runs=3)
    modules = ["delta_pyds.commands.row_changes.merge"] if engine == "process" else MODULES
    with pytest.raises(ConflictError), Races(meanwhile, modules).lost():
        COMMANDS[command](target, spark)
    assert not waiting and rows_of(table) == [(0, i, 0) for i in range(4)]


def both(table: Path) -> None:
    """Another writer changes a row that the command changes too, and deletes the rows with p = 1."""
    changed = planned_update(load_snapshot(str(table)), "p = 0 AND id = 0", {"v": "5"}, CommandOptions())
    assert run_update(changed, Place("process", "")).version is not None
    gone(table)


@pytest.mark.parametrize("engine", ["process", "spark"])
@pytest.mark.parametrize("source", ["unknown", "another"])
def test_only_a_source_that_is_certainly_another_is_merged_again(
    spark: SparkSession, table: Path, source: str, engine: Any
) -> None:
    """A local checkpoint may have old rows of the table, and it keeps them in each run."""
    waiting = [both]

    def meanwhile() -> None:
        if waiting:
            waiting.pop()(table)

    rows = spark.range(4) if source == "another" else spark.table("other").selectExpr("id - 10 AS id").localCheckpoint()
    given: Any = {"isolation_level": "Serializable", "row_level_concurrency": False, "max_runs": 3}
    target = DeltaTable.forPath(spark, str(table), engine=engine, **given).alias("t")
    merge = target.merge(rows.alias("s"), "t.id = s.id AND t.p = 0").whenMatchedUpdate(set={"v": "t.v + 1"})
    modules = ["delta_pyds.commands.row_changes.merge"] if engine == "process" else MODULES
    with Races(meanwhile, modules).lost():
        if source == "another":
            merge.execute()
        else:
            with pytest.raises(ConflictError):
                merge.execute()
    added = int(source == "another")
    assert not waiting and rows_of(table) == [(0, i, added + 5 * (i == 0)) for i in range(4)]


@pytest.mark.parametrize("command", ["delete", "update"])
def test_a_command_without_a_subquery_runs_again(spark: SparkSession, table: Path, command: str) -> None:
    waiting = [both]

    def meanwhile() -> None:
        if waiting:
            waiting.pop()(table)

    given: Any = {"isolation_level": "Serializable", "row_level_concurrency": False, "max_runs": 2}
    target = DeltaTable.forPath(spark, str(table), engine="spark", **given)
    with Races(meanwhile, MODULES).lost():
        target.delete("id < 2") if command == "delete" else target.update("id < 2", {"v": "v + 1"})
    rows = [(0, 2, 0), (0, 3, 0)]
    assert not waiting and rows_of(table) == (rows if command == "delete" else [(0, 0, 6), (0, 1, 1), *rows])


@pytest.mark.parametrize("source", ["of the table", "another"])
def test_a_merge_keeps_its_version_if_its_source_is_lost(spark: SparkSession, table: Path, source: str) -> None:
    """The rows of the source stay those of the first run, so a later commit is a winner."""
    runs: list[int] = []

    def lost_once(*given: Any, **more: Any) -> Any:
        runs.append(1)
        if len(runs) == 1:
            gone(table)
            lost = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
            raise PySparkException(f"[{lost}] Checkpoint block rdd_12_0 not found!", errorClass=lost)
        return apply_rows(*given, **more)

    rows = spark.range(4) if source == "another" else spark.table("other").selectExpr("id - 10 AS id")
    target = DeltaTable.forPath(spark, str(table), engine="spark", isolation_level="Serializable", max_runs=3)
    merge = target.alias("t").merge(rows.alias("s"), "t.id = s.id AND t.p = 0").whenMatchedUpdate(set={"v": F.lit(1)})
    with mock.patch("delta_pyds.spark.row_changes.merge.apply_rows", lost_once):
        if source == "another":
            merge.execute()
        else:
            with pytest.raises(ConflictError):
                merge.execute()
    assert len(runs) >= 2 and rows_of(table) == [(0, i, int(source == "another")) for i in range(4)]


@pytest.mark.parametrize("command", ["delete", "merge"])
def test_it_is_alone_with_its_table(spark: SparkSession, table: Path, command: str) -> None:
    """Without another writer each row is found."""
    COMMANDS[command](DeltaTable.forPath(spark, str(table), engine="spark"), spark)
    assert rows_of(table)[:4] == (
        [(1, 10 + i, 0) for i in range(4)] if command == "delete" else [(0, i, 1) for i in range(4)]
    )


def test_a_subquery_over_another_table_is_none_over_this_one(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(4), tmp_path / "u")
    read(spark, tmp_path / "u").createOrReplaceTempView("other")
    with Races(lambda: gone(table) if len(rows_of(table)) == 8 else None, MODULES).lost():
        DeltaTable.forPath(spark, str(table), engine="spark", isolation_level="Serializable").delete(
            "p = 0 AND id IN (SELECT id FROM other)"
        )
    assert rows_of(table) == []


def test_rows_of_an_old_version_depend_on_no_commit(spark: SparkSession, table: Path) -> None:
    old = read(spark, table, version=1).where("p = 1").selectExpr("id - 10 AS id")
    rows = DeltaTable.forPath(spark, str(table), engine="spark", isolation_level="Serializable").alias("t")
    with Races(lambda: gone(table) if len(rows_of(table)) == 8 else None, MODULES).lost():
        rows.merge(old.alias("s"), "t.id = s.id AND t.p = 0").whenMatchedUpdate(set={"v": F.lit(1)}).execute()
    assert rows_of(table) == [(0, i, 1) for i in range(4)]


WRITES: dict[str, dict[str, Any]] = {
    "append": {"mode": "append"},
    "by partition": {"mode": "overwrite", "replace_where": "p = 0"},
    "by rows": {"mode": "overwrite", "replace_where": "p = 0 AND id >= 0"},
    "dynamic": {"mode": "overwrite", "partition_overwrite": "dynamic"},
    "using": {"mode": "overwrite", "options": {"replaceUsing": "id"}},
}


def with_winner(table: Path, winner: Callable[[Path], None]) -> Callable[[Any], Any]:
    """A function of tasks that lets another writer commit."""

    def run(batches: Any) -> Any:
        yield from batches
        winner(table)

    return run


@pytest.mark.parametrize("how", WRITES)
def test_rows_from_the_table(spark: SparkSession, table: Path, how: str) -> None:
    def write_from(winner: Callable[[Path], None]) -> int | None:
        rows = read(spark, table).where("p = 1").selectExpr("0L AS p", "id - 10 AS id", "7L AS v").coalesce(1)
        given = {"options": {}, **WRITES[how]}
        given["options"] = {**given["options"], "isolationLevel": "Serializable"}
        return delta_pyds.write(rows.mapInArrow(with_winner(table, winner), rows.schema), table, **given).version

    version = write_from(lambda _: None)
    if how == "dynamic" and not load_snapshot(str(table)).configuration.partition_columns:
        assert rows_of(table) == [(0, i, 7) for i in range(4)]  # all partitions are one
        return
    assert version is not None and rows_of(table)[-4:] == [(1, 10 + i, 0) for i in range(4)]
    [info] = [a["commitInfo"] for a in actions(table, version) if "commitInfo" in a]
    assert info["isBlindAppend"] is False
    with pytest.raises(ConflictError):
        write_from(gone)
    assert all(row[0] == 0 for row in rows_of(table))


def appended(p: int) -> Callable[[Path], None]:
    def append(table: Path) -> None:
        write_rows(table, SCHEMA, [{"p": p, "id": 77, "v": 0}])

    return append


@pytest.mark.parametrize("table", ["partitions"], indirect=True)
@pytest.mark.parametrize("how", ["append", "by partition", "dynamic", "merge"])
def test_a_partition_is_computed_again_beside_writers_of_others(spark: SparkSession, table: Path, how: str) -> None:
    def compute(winner: Callable[[Path], None]) -> None:
        rows = read(spark, table).where("p = 0 AND id >= 0").selectExpr("p", "id", "v + 1 AS v").coalesce(1)
        late = rows.mapInArrow(with_winner(table, winner), rows.schema)
        if how == "merge":
            target = DeltaTable.forPath(spark, str(table), isolation_level="Serializable").alias("t")
            merge = target.merge(late.alias("s"), "t.p = 0 AND s.p = t.p AND s.id = t.id")
            merge.whenMatchedUpdate(set={"v": "s.v"}).execute()
        else:
            given = {**WRITES[how], "options": {"isolationLevel": "Serializable"}}
            delta_pyds.write(late, table, **given)

    compute(appended(1))
    assert {row[2] for row in rows_of(table) if row[0] == 0} == ({0, 1} if how == "append" else {1})
    assert len([row for row in rows_of(table) if row[0] == 1]) == 5
    before = rows_of(table)
    if how != "merge":
        with pytest.raises(ConflictError):
            compute(appended(0))
        assert len(rows_of(table)) == len(before) + 1


@pytest.mark.parametrize("table", ["files"], indirect=True)
@pytest.mark.parametrize("reads_table", [False, True])
@pytest.mark.parametrize("engine", ["process", "spark"])
def test_a_merge_of_a_micro_batch(
    spark: SparkSession, table: Path, tmp_path: Path, engine: Any, *, reads_table: bool
) -> None:
    """Spark gives its rows as a checkpoint. The plan of the query says where they are from."""
    delta_pyds.write(spark.range(4), tmp_path / "s")
    ids = spark.readStream.format("deltapy").load(str(tmp_path / "s"))
    if reads_table:
        ids = ids.join(spark.sql("SELECT id - 10 AS id FROM other"), "id")
    waiting = ["p = 1" if reads_table else "id = 1"]
    lost: list[Exception] = []

    def merge(batch: Any, _: int) -> None:
        target = DeltaTable.forPath(spark, str(table), engine=engine, isolation_level="Serializable").alias("t")
        upsert = target.merge(batch.alias("s"), "t.id = s.id AND t.id <> 2").whenMatchedUpdate(set={"v": "1"})
        modules = ["delta_pyds.commands.row_changes.merge"] if engine == "process" else MODULES
        try:
            with Races(lambda: delete(table, waiting.pop()) if waiting else None, modules).lost():
                upsert.whenNotMatchedInsert(values={"p": "2", "id": "s.id", "v": "2"}).execute()
        except ConflictError as error:
            lost.append(error)

    query = ids.writeStream.foreachBatch(merge).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination(120)
    assert not waiting and len(lost) == reads_table
    changed = [(0, 0, 1), (0, 2, 0), (0, 3, 1), *((1, 10 + i, 0) for i in range(4)), (2, 1, 2), (2, 2, 2)]
    assert rows_of(table) == ([(0, i, 0) for i in range(4)] if reads_table else changed)
