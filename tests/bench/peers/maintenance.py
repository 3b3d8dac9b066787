"""Keeping a table: compaction, Z-order and clustering, vacuum's plan, restore, clone, convert, a new column.

Each side works on a table of its own, recreated before each round; recreating it is not measured. Both
engines open it for the first time. Beside the time that passed each row has the CPU time of this process and all below
it: on a machine that is not idle that is the steadier figure.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.measure import Measure, in_turn, say
from tests.bench.peers import maintenance_tables as tables
from tests.bench.peers import tpch
from tests.bench.peers.goals import AUTO, DELTALAKE, REFERENCE
from tests.bench.peers.processes import cpu_seconds
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.row_changes import copied
from tests.bench.peers.session import clear_reference, forget
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import data_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_pyds import DeltaTable

_BY = ("l_partkey", "l_shipdate")
_ROWS_OF_A_SMALL_FILE = 100
# a run of the whole needs no more than this of what is slow anyway
_MOST_SPARE_SECONDS = 60


@dataclass(frozen=True)
class _Work:
    """``work`` as goals name it. ``laid_out``: makes a side's table. ``same``: what all sides must leave alike."""

    work: str
    what: str
    laid_out: Callable[[Path], Path]
    sides: Mapping[str, Callable[[Path], Any]]
    same: Callable[[Path], object]


def maintenance(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """All works by all sides."""
    for work in _works(spark, settings):
        say(f"{work.work}: {work.what}")
        paths = {side: settings.scratch / "maintenance" / side.replace(" ", "-") for side in work.sides}
        runs = {side: partial(_timed, spark, work, paths[side], run) for side, run in work.sides.items()}
        took = in_turn(runs, settings.rounds, min(settings.spare_seconds, _MOST_SPARE_SECONDS))
        clear_reference(spark)
        found = {side: work.same(path) for side, path in paths.items()}
        if len(set(map(str, found.values()))) != 1:
            raise RuntimeError(f"the sides of {work.work} do not leave the same: {found}")
        pairs = [Pair(AUTO, side) for side in work.sides if side != AUTO]
        results.add(work.work, work.what, took, pairs)
        results.add(work.work, f"{work.what}: CPU time", took, pairs, "CPU s")
        shutil.rmtree(settings.scratch / "maintenance", ignore_errors=True)


def _timed(spark: SparkSession, work: _Work, path: Path, run: Callable[[Path], Any]) -> Measure:
    forget(spark, work.laid_out(path))
    begin, cpu = time.perf_counter(), cpu_seconds()
    run(path)
    return Measure(time.perf_counter() - begin, 0.0, cpu_seconds() - cpu)


def _works(spark: SparkSession, settings: PeerSettings) -> Iterator[_Work]:
    yield from _layouts(spark, settings)
    yield _vacuum(spark, settings)
    yield from _of_many_files(spark, settings)


# --- rows laid out again


def _layouts(spark: SparkSession, settings: PeerSettings) -> Iterator[_Work]:
    count = settings.small_files
    small = data_table(settings.data, count * _ROWS_OF_A_SMALL_FILE, count)
    yield _Work(
        "compaction of small files",
        f"{count:,} files of {_ROWS_OF_A_SMALL_FILE} rows by 7 columns",
        partial(copied, small),
        {
            AUTO: lambda path: _ours(spark, path).optimize().executeCompaction().collect(),
            REFERENCE: lambda path: _sql(spark, "OPTIMIZE {t}", path),
            DELTALAKE: _compact_by_deltalake,
        },
        partial(_rows_and_files, spark, "count(*)", "sum(id)", "sum(CAST(price * 100 AS DECIMAL(20)))"),
    )
    lineitem = tpch.table(spark, settings, settings.makers[0], "lineitem")
    by = ", ".join(_BY)
    same = partial(_rows_and_files, spark, "count(*)", "sum(l_partkey)", "sum(l_extendedprice)")
    yield _Work(
        "z-order",
        f"lineitem by {by}",
        partial(copied, lineitem),
        {
            AUTO: lambda path: _ours(spark, path).optimize().executeZOrderBy(*_BY).collect(),
            REFERENCE: lambda path: _sql(spark, f"OPTIMIZE {{t}} ZORDER BY ({by})", path),
        },
        same,
    )
    table = tables.clustered(settings.data, lineitem, lambda path: _ours(spark, path).clusterBy(*_BY))
    yield _Work(
        "clustering",
        f"lineitem by {by}",
        partial(copied, table),
        {
            AUTO: lambda path: _ours(spark, path).optimize().executeCompaction().collect(),
            REFERENCE: lambda path: _sql(spark, "OPTIMIZE {t}", path),
        },
        same,
    )


def _compact_by_deltalake(path: Path) -> None:
    from deltalake import DeltaTable

    DeltaTable(str(path)).optimize.compact()


def _rows_and_files(spark: SparkSession, *expressions_and_path: Any) -> object:
    *expressions, path = expressions_and_path
    frame = spark.read.format("delta").load(str(path))
    return frame.selectExpr(*expressions).first(), len(frame.inputFiles())


# --- files that no version needs


def _vacuum(spark: SparkSession, settings: PeerSettings) -> _Work:
    size = max(settings.planning_files)
    table, inventory, orphans = tables.table_and_inventory(settings, size)
    # the listing has the paths of this table, so both sides plan for it: a dry run leaves it as it is
    runs = {side: partial(vacuum_plan, spark, side, table, inventory) for side in (AUTO, REFERENCE)}

    def counted(side: str) -> Callable[[Path], None]:
        def run(_: Path) -> None:
            found = runs[side]()
            if found != orphans:
                raise RuntimeError(f"{side} would delete {found} files of {table}, not {orphans}")

        return run

    return _Work(
        "vacuum planning",
        f"{size:,} files, the listing given",
        lambda _: table,
        {side: counted(side) for side in runs},
        lambda _: None,
    )


def vacuum_plan(spark: SparkSession, side: str, table: Path, inventory: Path) -> int:
    """Plan a vacuum by a listing that is there. Returns: how many files would go."""
    if side == REFERENCE:
        listing = f"(SELECT * FROM parquet.`{inventory}`)"
        return len(spark.sql(f"VACUUM delta.`{table}` USING INVENTORY {listing} DRY RUN").collect())
    return len(_ours(spark, table).vacuum(dry_run=True, inventory=spark.read.parquet(str(inventory))).collect())


# --- very many files


def _of_many_files(spark: SparkSession, settings: PeerSettings) -> Iterator[_Work]:
    from delta_pyds import DeltaTable

    what = f"{settings.many_files:,} files"

    def files_of(path: Path) -> int:
        return len(spark.read.format("delta").load(str(path)).inputFiles())

    yield _Work(
        "restore",
        f"{what}, all of which were removed",
        lambda path: tables.table_of_files(settings, path, removed=True),
        {
            AUTO: lambda path: _ours(spark, path).restoreToVersion(1).collect(),
            REFERENCE: lambda path: _sql(spark, "RESTORE TABLE {t} TO VERSION AS OF 1", path),
        },
        files_of,
    )
    source = tables.table_of_files(settings, settings.data / f"many-{settings.many_files}", removed=False)
    yield _Work(
        "shallow clone",
        what,
        partial(_away, source),
        {
            AUTO: lambda path: _ours(spark, source).clone(str(path), isShallow=True).collect(),
            REFERENCE: lambda path: _sql(spark, f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{source}`", path),
        },
        files_of,
    )
    yield _Work(
        "convert",
        what,
        partial(tables.directory_of_files, settings),
        {
            AUTO: lambda path: DeltaTable.convertToDelta(spark, f"parquet.`{path}`"),
            REFERENCE: lambda path: spark.sql(f"CONVERT TO DELTA parquet.`{path}`").collect(),
        },
        files_of,
    )
    yield _Work(
        "adding a column",
        what,
        partial(tables.log_of, source),
        {
            AUTO: lambda path: _ours(spark, path).addColumn("added", "int"),
            REFERENCE: lambda path: _sql(spark, "ALTER TABLE {t} ADD COLUMNS (added int)", path),
        },
        lambda path: spark.read.format("delta").load(str(path)).columns,
    )


def _away(source: Path, path: Path) -> Path:
    """Nothing is at ``path``. Returns: the table that is opened."""
    shutil.rmtree(path, ignore_errors=True)
    return source


def _ours(spark: SparkSession, path: Path) -> DeltaTable:
    from delta_pyds import DeltaTable

    return DeltaTable.forPath(spark, str(path))


def _sql(spark: SparkSession, statement: str, path: Path) -> None:
    spark.sql(statement.format(t=f"delta.`{path}`")).collect()
