"""Changes that a table did not record, beside the record of a twin, and beside both versions subtracted by plain Spark.

One update of 1 % of the rows; then a range of 100 compactions, beside a range that is empty. The floor of rewritten
files is to read them once, by the same reader. The subtraction takes minutes, so it has one round.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.bench.measure import Side, in_turn, say
from tests.bench.peers.goals import COMPUTED, FIFTY_MS, READ_ONCE, RECORDED, SUBTRACTED
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import data_table, made_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UPDATE = "id % 100 = 7"
_KINDS = {
    "deletion vectors, row tracking": (True, True),
    "deletion vectors": (True, False),
    "files rewritten, row tracking": (False, True),
    "files rewritten": (False, False),
}
_COMPACTIONS = 100


def computed_changes(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """The same update of tables of four kinds, and compactions."""
    plain = data_table(settings.data, settings.change_rows, settings.change_files)
    for what, (vectors, tracked) in _KINDS.items():
        say(f"changes of an update, {what}")
        off, on = (
            made_once(
                settings.data / f"{plain.name}-updated-{vectors:d}{tracked:d}{feed:d}",
                partial(_updated, spark, plain, vectors, tracked, feed),
            )
            for feed in (False, True)
        )
        sides = {
            COMPUTED: partial(_read, _changes(spark, off, 1)),
            RECORDED: partial(_read, _changes(spark, on, 1)),
        }
        if not vectors:
            sides[READ_ONCE] = partial(_read, _both(spark, off, "arrow"))
        took = in_turn(sides, settings.rounds, settings.spare_seconds)
        took |= in_turn({SUBTRACTED: partial(_read, _subtracted(spark, off))}, rounds=1)
        floor = None if vectors else READ_ONCE
        results.add("changes of an update", what, took, [Pair(COMPUTED, RECORDED, floor), Pair(COMPUTED, SUBTRACTED)])
    say("changes of compactions")
    table = made_once(settings.data / f"compacted-{_COMPACTIONS}", partial(_compacted, spark))
    took = in_turn(
        {
            "compactions": partial(_read, _changes(spark, table, 1)),
            "an empty range": partial(_read, _changes(spark, table, _last(table))),
        },
        settings.rounds,
        settings.spare_seconds,
    )
    more = [a - b for a, b in zip(*(side.seconds for side in took.values()), strict=True)]
    sides = {COMPUTED: Side(more), FIFTY_MS: Side([0.05])}
    results.add("changes of compactions", f"{_COMPACTIONS}, beyond an empty range", sides, [Pair(COMPUTED, FIFTY_MS)])
    shutil.rmtree(settings.scratch, ignore_errors=True)


def _updated(spark: SparkSession, plain: Path, vectors: bool, tracked: bool, feed: bool, path: Path) -> None:
    import delta_pyds

    properties = {
        "delta.enableDeletionVectors": str(vectors).lower(),
        "delta.enableRowTracking": str(tracked).lower(),
        "delta.enableChangeDataFeed": str(feed).lower(),
    }
    delta_pyds.write(delta_pyds.read(spark, str(plain)), str(path), properties=properties)
    delta_pyds.DeltaTable.forPath(spark, str(path)).update(_UPDATE, {"price": "price + 1"})


def _compacted(spark: SparkSession, path: Path) -> None:
    """Versions of which every second one is a compaction, and the last one a property."""
    import delta_pyds

    rows = spark.range(100).repartition(2)
    delta_pyds.write(rows, str(path))
    table = delta_pyds.DeltaTable.forPath(spark, str(path))
    for _ in range(_COMPACTIONS):
        # REORG writes a file again if it has deleted rows; ZORDER writes every file again
        table.optimize().executeZOrderBy("id")
    table.setProperties({"user.compacted": "true"})


def _last(path: Path) -> int:
    from delta_pyds import load_snapshot

    return load_snapshot(path).version


def _changes(spark: SparkSession, path: Path, since: int) -> DataFrame:
    import delta_pyds

    return delta_pyds.changes(spark, str(path), since=since)


def _subtracted(spark: SparkSession, path: Path) -> DataFrame:
    old, new = _versions(spark, path, "native")
    return old.exceptAll(new).union(new.exceptAll(old))


def _both(spark: SparkSession, path: Path, engine: Literal["arrow", "native"]) -> DataFrame:
    old, new = _versions(spark, path, engine)
    return old.union(new)


def _versions(spark: SparkSession, path: Path, engine: Literal["arrow", "native"]) -> tuple[DataFrame, DataFrame]:
    import delta_pyds

    old, new = (delta_pyds.read(spark, str(path), version=version, engine=engine) for version in (0, 1))
    return old, new


def _read(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
