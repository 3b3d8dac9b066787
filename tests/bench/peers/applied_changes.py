"""``apply_changes`` beside the merge that a program writes by hand, into a table with deletion vectors.

The changes: two updates of 1 % of the rows, deletes of a tenth of these, and as many new rows. Each side changes a copy
of one table. Making the copy is not measured. The merges by hand take changes in order only: SCD 1 keeps no tombstones,
and SCD 2 closes the current row.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.measure import in_turn, say
from tests.bench.peers.goals import APPLIED, MERGED_BY_HAND
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.row_changes import changed, copied
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import data_table, made_once, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PROPERTIES = {"delta.enableDeletionVectors": "true"}
_KINDS = {1: "SCD 1", 2: "SCD 2"}


def applied_changes(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """Both kinds of SCD, on one table each."""
    plain = data_table(settings.data, settings.change_rows, settings.change_files)
    settings.scratch.mkdir(parents=True, exist_ok=True)
    source = settings.scratch / "changes.parquet"
    pq.write_table(_changes(settings.change_rows), source)
    changes = spark.read.parquet(str(source))
    for scd, what in _KINDS.items():
        table = made_once(settings.data / f"{plain.name}-scd{scd}", partial(_make, spark, plain, scd))
        sides: dict[str, Callable[[Path], Any]] = {
            APPLIED: partial(_apply, scd, changes),
            MERGED_BY_HAND: partial(_by_hand_of_newest if scd == 1 else _by_hand_of_history, spark, changes),
        }
        say(f"applied changes, {what}")
        took = in_turn(
            {
                name: partial(_timed, table, settings.scratch / str(n), run)
                for n, (name, run) in enumerate(sides.items())
            },
            settings.rounds,
            settings.spare_seconds,
        )
        _require_same_rows(spark, [settings.scratch / str(n) for n in range(len(sides))])
        results.add("applied changes", what, took, [Pair(APPLIED, MERGED_BY_HAND)])
    shutil.rmtree(settings.scratch, ignore_errors=True)


def _changes(num_rows: int) -> pa.Table:
    there = rows(0, num_rows).take(pa.array(range(7, num_rows, 100)))
    new = rows(num_rows, num_rows + there.num_rows)
    parts = [(changed(there), 1, "U"), (changed(changed(there)), 2, "U"), (there.slice(0, len(there) // 10), 3, "D"),
             (new, 1, "U")]  # fmt: skip
    return pa.concat_tables(
        part.append_column("seq", pa.repeat(pa.scalar(seq), len(part))).append_column(
            "op", pa.repeat(pa.scalar(op), len(part))
        )
        for part, seq, op in parts
    )


def _make(spark: SparkSession, plain: Path, scd: int, path: Path) -> None:
    import delta_pyds

    own = ["0L AS seq"] if scd == 1 else ["0L AS seq", "0L AS __START_AT", "CAST(NULL AS LONG) AS __END_AT"]
    frame = delta_pyds.read(spark, str(plain)).selectExpr("*", *own)
    delta_pyds.write(frame, str(path), properties=_PROPERTIES)


def _timed(table: Path, path: Path, run: Callable[[Path], Any]) -> tuple[float, float]:
    copied(table, path)
    begin = time.perf_counter()
    run(path)
    return time.perf_counter() - begin, 0.0


def _apply(scd: int, changes: DataFrame, path: Path) -> None:
    import delta_pyds

    given: dict[str, Any] = {"tombstones": False} if scd == 1 else {"scd": 2}
    delta_pyds.apply_changes(
        str(path), changes, keys="id", sequence_by="seq", delete_when="op = 'D'", except_column_list="op", **given
    )


def _by_hand_of_newest(spark: SparkSession, changes: DataFrame, path: Path) -> None:
    from pyspark.sql import Window
    from pyspark.sql.functions import col, row_number

    from delta_pyds import DeltaTable

    by_key = Window.partitionBy("id").orderBy(col("seq").desc())
    newest = changes.withColumn("n", row_number().over(by_key)).where("n = 1").drop("n")
    values: dict[str, Any] = {name: f"s.{name}" for name in changes.columns if name != "op"}
    (
        DeltaTable.forPath(spark, str(path)).alias("t").merge(newest.alias("s"), "t.id = s.id")
        .whenMatchedDelete("s.op = 'D' AND s.seq > t.seq")
        .whenMatchedUpdate("s.seq > t.seq", values)
        .whenNotMatchedInsert("s.op <> 'D'", values)
        .execute()
    )  # fmt: skip


def _by_hand_of_history(spark: SparkSession, changes: DataFrame, path: Path) -> None:
    """As the page on history does it: a change of a key with a current row enters the merge twice."""
    from pyspark.sql import Window
    from pyspark.sql.functions import lead, row_number

    from delta_pyds import DeltaTable

    table = DeltaTable.forPath(spark, str(path)).alias("t")
    in_order = Window.partitionBy("id").orderBy("seq")
    events = changes.withColumn("until", lead("seq").over(in_order)).withColumn("n", row_number().over(in_order))
    current = table.toDF().where("__END_AT IS NULL").select("id")
    closing = events.where("n = 1").join(current, "id", "left_semi").selectExpr("id AS merge_key", "*")
    opening = events.where("op <> 'D'").selectExpr("CAST(NULL AS LONG) AS merge_key", "*")
    values: dict[str, Any] = {name: f"s.{name}" for name in changes.columns if name != "op"}
    own = {"__START_AT": "s.seq", "__END_AT": "s.until"}
    (
        table.merge(closing.unionByName(opening).alias("s"), "t.id = s.merge_key AND t.__END_AT IS NULL")
        .whenMatchedUpdate(set={"__END_AT": "s.seq"})
        .whenNotMatchedInsert(values={**values, **own})
        .execute()
    )


def _require_same_rows(spark: SparkSession, paths: list[Path]) -> None:
    import delta_pyds

    sums = ["count(*)", "sum(id)", "sum(seq)", "sum(CAST(price * 100 AS DECIMAL(20)))"]
    found = []
    for path in paths:
        frame = delta_pyds.read(spark, str(path))
        ends = ["sum(__END_AT)"] if "__END_AT" in frame.columns else []
        found.append(frame.selectExpr(*sums, *ends).first())
    if len(set(found)) > 1:
        raise RuntimeError(f"the sides do not leave the same rows: {found}")
