"""Both engines alternate on one table, with the reference's maintenance in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from tests.interop.engines import Engines, Table, rows

_COMMITS = 20
_LAYOUTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "deletionVectors": ({"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "5"}, ("p",)),
    "all features together": (
        {
            "delta.enableDeletionVectors": "true",
            "delta.columnMapping.mode": "name",
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.enableChangeDataFeed": "true",
            "delta.checkpointPolicy": "v2",
            "delta.checkpointInterval": "6",
        },
        ("p",),
    ),
}


@pytest.mark.parametrize(
    ("properties", "partition"),
    [pytest.param(*v, id=name, marks=pytest.mark.cell(name, "ping-pong")) for name, v in _LAYOUTS.items()],
)
def test_both_alternate(
    engines: Engines, tmp_path: Path, properties: dict[str, str], partition: tuple[str, ...]
) -> None:
    table = Table(engines, tmp_path / "t")
    expected: dict[int, str] = {}

    def source(first: int, text: str, count: int = 6) -> Any:
        select = ("id", "CAST(id % 3 AS INT) AS p", f"concat('{text}', id) AS v")
        return engines.spark.range(first, first + count, 1, 2).selectExpr(*select)

    def put(first: int, text: str) -> None:
        expected.update({i: f"{text}{i}" for i in range(first, first + 6)})

    def check() -> None:
        read = engines.ours(table.path).selectExpr("id", "v")
        assert sorted(tuple(row) for row in read.collect()) == sorted(expected.items())
        assert not delta_pyds.verify(str(table.path)).findings

    put(0, "c")
    first_rows = source(0, "c")
    made = {"partition_by": partition or None, "properties": properties}
    table.step(lambda: delta_pyds.write(first_rows, str(table.path), **made))
    for turn in range(1, _COMMITS + 1):
        first = turn * 4  # two rows of every append replace what the turn before wrote
        put(first, f"t{turn}-")
        df = source(first, f"t{turn}-")
        if turn % 2:
            # ours: the rows from `first` on are replaced
            table.step(
                lambda df=df, first=first: engines.append(
                    df, table.path, mode="overwrite", replaceWhere=f"id >= {first} AND id < {first + 6}"
                )
            )
        else:
            df.createOrReplaceTempView("turn")
            table.sql(
                "MERGE INTO {t} t USING turn s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        if turn % 5 == 1:
            table.sql(f"DELETE FROM {{t}} WHERE id = {first}")
            del expected[first]
        if turn % 5 == 2:
            table.sql("OPTIMIZE {t}")
        if turn % 5 == 3:
            engines.checkpoint_as_reference(table.path)
        if turn % 10 == 4:
            # nothing can be read at older versions after that, so what was seen of them is not asked for again
            engines.sql(f"VACUUM {table.name} RETAIN 0 HOURS").collect()
            table.seen = {max(table.seen): table.seen[max(table.seen)]}
            table.step(lambda: None)
        if turn % 7 == 0:
            table.step(lambda: engines.append(engines.reference(table.path).limit(0), table.path))
        if turn % 4 == 0:
            check()
    assert rows(engines.reference(table.path)) == table.seen[max(table.seen)]
    table.finish()
