"""Delete, update and merge, on tables with deletion vectors and without: each side changes a copy of one table.

Making the copy is not measured. Afterwards all copies must hold the same rows.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.measure import Side, in_turn, say
from tests.bench.peers.changes import DELETE, DELETE_ONE, MERGE, MERGE_INTO_ONE, UPDATE, Change
from tests.bench.peers.goals import (
    AUTO,
    BY_HAND,
    BY_SPARK,
    DELTALAKE,
    FASTEST,
    FIFTY_MS,
    IN_PROCESS,
    IN_TASKS,
    REFERENCE,
    SAIL,
)
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.sail import Engine as Peer
from tests.bench.peers.sail import sail
from tests.bench.peers.session import clear_reference
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import data_table, made_once, rows
from tests.support.large_table import SHORTHAND
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_pyds.spark.row_changes.handle import Engine

_ENGINES: dict[str, Engine] = {AUTO: "auto", IN_PROCESS: "process", IN_TASKS: "tasks", BY_SPARK: "spark"}
_VECTORS = "with deletion vectors"
_REWRITING = "by rewriting"
_FILES_OF_MANY = 100
_ROWS_OF_ONE_FILE = 10_000


@dataclass(frozen=True)
class _Work:
    """``table``: the original, which stays as it is; ``source``: of a merge."""

    change: Change
    table: Path
    source: pa.Table
    vectors: bool

    @property
    def kind(self) -> str:
        """The name in goals and headings."""
        return f"{self.change.name}, {_VECTORS if self.vectors else _REWRITING}"


def row_changes(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """All changes by all sides, Sail among them where it was asked for."""
    with _peer(settings, results) as engine:
        for vectors in (True, False):
            for change, table, source in _changes(settings):
                work = _Work(change, with_vectors(settings.data, table) if vectors else table, source, vectors)
                say(work.kind)
                took = in_turn(_sides(spark, settings, work, engine), settings.rounds, settings.spare_seconds)
                _same_rows(spark, settings, list(took))
                _add(results, work, took)
        _one_row(spark, settings, results, engine)
    shutil.rmtree(settings.scratch, ignore_errors=True)


@contextmanager
def _peer(settings: PeerSettings, results: Results) -> Iterator[Peer | None]:
    if not settings.sail:
        yield None
        return
    with sail(settings.data) as engine:
        results.about({"Sail": engine.version})
        yield engine


def _changes(settings: PeerSettings) -> Iterator[tuple[Change, Path, pa.Table]]:
    few = data_table(settings.data, settings.change_rows, settings.change_files)
    many = data_table(settings.data, settings.change_rows, _FILES_OF_MANY)
    nothing = rows(0, 0)
    yield DELETE, few, nothing
    yield UPDATE, few, nothing
    yield MERGE, few, source_of_merge(settings.change_rows)
    in_file = settings.change_rows // _FILES_OF_MANY
    # of file 37 every tenth row
    yield MERGE_INTO_ONE, many, changed(rows(37 * in_file, 38 * in_file)[::10])


def source_of_merge(num_rows: int) -> pa.Table:
    """Rows that are there, 1 % of all and scattered, and as many that are not."""
    there = rows(0, num_rows).take(pa.array(range(7, num_rows, 100)))
    return pa.concat_tables([changed(there), rows(num_rows, num_rows + there.num_rows)]).combine_chunks()


def changed(table: pa.Table) -> pa.Table:
    """The rows with another price."""
    price = pc.add(table.column("price"), 1.0)
    return table.set_column(table.schema.get_field_index("price"), "price", price)


def with_vectors(data: Path, plain: Path) -> Path:
    """The files of a table in another one, whose rows are deleted by deletion vectors."""

    def make(path: Path) -> None:
        table = TableBuilder(path, SHORTHAND, properties={"delta.enableDeletionVectors": "true"})
        table.create()
        adds = []
        for commit in sorted((plain / "_delta_log").glob("*.json")):
            for add in (action["add"] for action in map(json.loads, commit.open()) if "add" in action):
                os.link(plain / add["path"], path / add["path"])
                adds.append(table.add(add["path"], size=add["size"], stats=add["stats"]))
        table.commit(adds)

    return made_once(data / f"{plain.name}-vectors", make)


def copied(original: Path, path: Path) -> Path:
    """The table once more: data files are linked, for nobody writes into them."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(original / "_delta_log", path / "_delta_log")
    for file in original.glob("*.parquet"):
        os.link(file, path / file.name)
    return path


# --- sides


def _sides(
    spark: SparkSession, settings: PeerSettings, work: _Work, engine: Peer | None
) -> dict[str, Callable[[], tuple[float, float]]]:
    source = source_view(spark, settings, work.source)
    names = [AUTO, IN_PROCESS, IN_TASKS, BY_SPARK, REFERENCE]
    # a merge joins in this process or in Spark
    runs = {
        name: in_session(spark, work.change, name) for name in names if name != IN_TASKS or not work.source.num_rows
    }
    runs[BY_HAND] = partial(_by_hand, spark, work)
    if not work.vectors:
        runs[DELTALAKE] = partial(_deltalake, work)
    if engine is not None:
        runs[SAIL] = partial(_sail, engine, work, source)
    return {name: partial(_timed, work, settings.scratch / _folder(name), run) for name, run in runs.items()}


def source_view(spark: SparkSession, settings: PeerSettings, source: pa.Table) -> Path:
    """The source of a merge as Parquet, and as the view ``s``."""
    settings.scratch.mkdir(parents=True, exist_ok=True)
    path = settings.scratch / "source.parquet"
    pq.write_table(source, path)
    spark.read.parquet(str(path)).createOrReplaceTempView("s")
    return path


def in_session(spark: SparkSession, change: Change, side: str) -> Callable[[Path], float | None]:
    """A function that changes a table, by the reference or by delta_pyds."""
    return partial(_reference, spark, change) if side == REFERENCE else partial(_ours, spark, change, _ENGINES[side])


def _folder(side: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in side)


def _timed(work: _Work, path: Path, run: Callable[[Path], float | None]) -> tuple[float, float]:
    copied(work.table, path)
    begin = time.perf_counter()
    own = run(path)
    return (time.perf_counter() - begin if own is None else own), 0.0


def _ours(spark: SparkSession, change: Change, engine: Engine, path: Path) -> None:
    from delta_pyds import DeltaTable

    change.ours(DeltaTable.forPath(spark, str(path), engine=engine), spark.table("s"))


def _reference(spark: SparkSession, change: Change, path: Path) -> None:
    # what it knows of the path's last table is of another one
    clear_reference(spark)
    spark.sql(change.sql.format(table=f"delta.`{path}`")).collect()


def _by_hand(spark: SparkSession, work: _Work, path: Path) -> None:
    frame = spark.read.parquet(*map(str, sorted(path.glob("*.parquet"))))
    work.change.by_hand(frame, spark.table("s")).write.mode("overwrite").parquet(str(path / "new"))


def _deltalake(work: _Work, path: Path) -> None:
    from deltalake import DeltaTable

    work.change.deltalake(DeltaTable(str(path)), work.source)


def _sail(engine: Peer, work: _Work, source: Path, path: Path) -> float:
    view = f"CREATE OR REPLACE TEMPORARY VIEW s AS SELECT * FROM parquet.`{source}`"
    statements = [work.change.sql.format(table=f"delta.`{path}`")]
    return engine.run([view, *statements] if work.source.num_rows else statements)


# --- results


def _same_rows(spark: SparkSession, settings: PeerSettings, sides: list[str]) -> None:
    """A quick change is worth nothing when it is wrong: the reference reads what each side left."""
    found: dict[str, Any] = {}
    clear_reference(spark)
    for side in sides:
        path = settings.scratch / _folder(side)
        loaded = (
            spark.read.parquet(str(path / "new")) if side == BY_HAND else spark.read.format("delta").load(str(path))
        )
        found[side] = loaded.selectExpr("count(*)", "sum(id)", "sum(CAST(price * 100 AS DECIMAL(20)))").first()
    if len(set(found.values())) > 1:
        raise RuntimeError(f"the sides do not leave the same rows: {found}")


def _add(results: Results, work: _Work, took: Mapping[str, Side]) -> None:
    pairs = [Pair(side, REFERENCE, BY_HAND) for side in (AUTO, IN_PROCESS, IN_TASKS, BY_SPARK) if side in took]
    peers = {side: took[side] for side in (SAIL, DELTALAKE) if side in took}
    pairs += [Pair(IN_PROCESS, side) for side in peers]
    sides = dict(took)
    if SAIL in peers:
        sides[FASTEST] = min(peers.values(), key=lambda side: side.median)
        pairs.append(Pair(IN_PROCESS, FASTEST))
    pairs.append(Pair(BY_SPARK, BY_HAND))
    results.add(work.kind, work.change.name, sides, pairs)


def _one_row(spark: SparkSession, settings: PeerSettings, results: Results, engine: Peer | None) -> None:
    """The least that a command costs."""
    table = with_vectors(settings.data, data_table(settings.data, _ROWS_OF_ONE_FILE, 1))
    work = _Work(DELETE_ONE, table, rows(0, 0), vectors=True)
    say(work.kind)
    took = in_turn(_sides(spark, settings, work, engine), settings.rounds, settings.spare_seconds)
    _same_rows(spark, settings, list(took))
    fifty = {FIFTY_MS: Side([0.05])}
    results.add(DELETE_ONE.name, DELETE_ONE.name, {**took, **fifty}, [Pair(AUTO, FIFTY_MS), Pair(AUTO, REFERENCE)])
