"""Rows without Spark: ``delta_pyds.scan`` beside deltalake, with pyarrow on the same files as the floor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import delta_pyds
from tests.bench.measure import in_turn, say
from tests.bench.peers.goals import DELTALAKE, PYARROW, SCAN
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import data_table


def arrow_scan(settings: PeerSettings, results: Results) -> None:
    """All columns, one of them, and the rows of a filter that no statistics answer; each stream is drained."""
    table = data_table(settings.data, settings.change_rows, settings.change_files)
    for what, columns, most in (("all columns", None, None), ("1 column", ["price"], None), ("a filter", None, 10.0)):
        say(f"scan without Spark, {what}")
        sides = _sides(table, columns, most)
        counts: dict[str, int] = {name: rows() for name, rows in sides.items()}
        if len(set(counts.values())) != 1:
            raise RuntimeError(f"the sides have not the same rows: {counts}")
        timed = {name: _only_run(rows) for name, rows in sides.items()}
        took = in_turn(timed, settings.rounds, settings.spare_seconds)
        results.add("scan without Spark", what, took, [Pair(SCAN, DELTALAKE, PYARROW), Pair(SCAN, PYARROW)])


def _sides(table: Path, columns: list[str] | None, most: float | None) -> dict[str, Callable[[], int]]:
    where = None if most is None else f"price < {most}D"

    def ours() -> int:
        return sum(b.num_rows for b in delta_pyds.scan(table, columns=columns, where=where).to_batches())

    def by_deltalake() -> int:
        from deltalake import DeltaTable, QueryBuilder

        query = f"SELECT {', '.join(columns) if columns else '*'} FROM t" + (f" WHERE price < {most}" if most else "")
        return sum(b.num_rows for b in QueryBuilder().register("t", DeltaTable(str(table))).execute(query))

    def by_pyarrow() -> int:
        import pyarrow.dataset as ds

        files = sorted(str(file) for file in table.glob("*.parquet"))
        chosen = None if most is None else ds.field("price") < most
        return sum(b.num_rows for b in ds.dataset(files).to_batches(columns=columns, filter=chosen))

    return {SCAN: ours, DELTALAKE: by_deltalake, PYARROW: by_pyarrow}


def _only_run(rows: Callable[[], int]) -> Callable[[], None]:
    def run() -> None:
        rows()

    return run
