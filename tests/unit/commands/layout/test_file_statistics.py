"""A table is clustered by columns of which its files have no statistics: they are read, and the log has them then.

Protocol: "Writer Requirements for Clustered Table".
"""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.definition.properties import unset_properties
from delta_pyds.commands.layout.cluster_by import cluster_by
from delta_pyds.commands.row_changes.commit_rows import local_runner
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.errors import ConcurrentDeleteReadError
from delta_pyds.protocol.actions import AddFile
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.change_feed import change_rows
from tests.support.definitions import alter
from tests.support.planned_changes import planned_delete
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, write_rows
from tests.support.verification import clean

SCHEMA = {
    "id": "long", "i": "integer", "d": "double", "t": "string", "n": "decimal(20,3)", "day": "date", "at": "timestamp",
    "s": {"type": "struct", "fields": [{"name": "x", "type": "float", "nullable": True, "metadata": {}}]},
}  # fmt: skip
AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678_901, dt.timezone.utc)
ROWS: list[dict[str, Any]] = [
    {"id": n, "i": -n, "d": [0.5, math.nan, -0.0][n % 3], "t": "é" * (n * 20), "n": Decimal(f"{n}12345678901234.120"),
     "day": dt.date(2020, 1, 1 + n), "at": AT + dt.timedelta(microseconds=n), "s": {"x": n / 2} if n else None}
    for n in range(9)
]  # fmt: skip
ONLY_ID = {"delta.dataSkippingStatsColumns": "id"}
COLUMNS = ["i", "d", "t", "n", "day", "at", "s.x"]
OPTIONS = CommandOptions()


def files(path: Path) -> list[AddFile]:
    return sorted(live_files(plan_scan(load_snapshot(path))), key=lambda file: file.size)


def forget_columns(path: Path) -> None:
    """Statistics of all columns from here on; the files that are there have those that they have."""
    alter(path, lambda s: unset_properties(s, list(ONLY_ID)))


@pytest.mark.parametrize("mapped", [{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
@pytest.mark.parametrize("columns", [COLUMNS[:4], COLUMNS[4:]], ids=["first", "last"])
def test_they_are_those_that_a_writer_would_have_gathered(
    tmp_path: Path, mapped: dict[str, str], columns: list[str]
) -> None:
    told, untold = tmp_path / "told", tmp_path / "untold"
    for path, properties in ((told, {}), (untold, ONLY_ID)):
        write_rows(path, SCHEMA, ROWS, properties={**mapped, **properties})
    forget_columns(untold)
    names = {f.name: f.physical_name for path in (told, untold) for f in load_snapshot(path).schema}
    inner = load_snapshot(untold).schema.find("s")
    assert inner is not None
    [before] = files(untold)
    assert cluster_by(load_snapshot(untold), columns, OPTIONS) == 2
    [after], [expected] = files(untold), files(told)
    assert (after.path, after.size) == (before.path, before.size)
    assert not after.data_change
    found, wanted, old = (json.loads(file.stats or "") for file in (after, expected, before))
    told_names = {f.name: f.physical_name for f in load_snapshot(told).schema}
    for kind in ("minValues", "maxValues", "nullCount"):
        for column in columns:
            top = column.partition(".")[0]
            mine, theirs = found[kind][names[top]], wanted[kind][told_names[top]]
            if top == "s":
                [mine], [theirs] = mine.values(), theirs.values()
            assert repr(mine) == repr(theirs), (kind, column)
        assert found[kind][names["id"]] == old[kind][names["id"]]
    assert found["numRecords"] == 9
    assert len(read_rows(untold, where="i < -7")) == 1
    clean(untold)
    # of a column that is known nothing is read again
    [same] = files(untold)
    cluster_by(load_snapshot(untold), [*columns[:2], "id"], OPTIONS)
    assert files(untold) == [same]


def test_rows_ids_and_vectors_stay(tmp_path: Path) -> None:
    on = {
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
        "delta.enableChangeDataFeed": "true",
    }
    write_rows(tmp_path, SCHEMA, [ROWS[:5], ROWS[5:]], properties={**ONLY_ID, **on})
    plan = planned_delete(load_snapshot(tmp_path), "id = 8", OPTIONS)
    run_delete(plan, Place("process", "a test"), local_runner(plan.change, 1))
    forget_columns(tmp_path)
    before, ids = files(tmp_path), repr(read_rows(tmp_path, row_ids=True))
    version = cluster_by(load_snapshot(tmp_path), ["i", "s.x"], OPTIONS)
    assert version is not None
    assert repr(read_rows(tmp_path, row_ids=True)) == ids
    assert change_rows(tmp_path, version) == []
    for old, new in zip(before, files(tmp_path), strict=True):
        assert (new.deletion_vector, new.base_row_id, new.tags) == (old.deletion_vector, old.base_row_id, old.tags)
        stats = json.loads(new.stats or "")
        assert stats["tightBounds"] is (old.deletion_vector is None)
        assert stats["minValues"]["i"] == (-8 if old.deletion_vector else -4)
    clean(tmp_path)


def test_a_file_of_another_writer_without_any_gets_some(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long", "v": "string"})
    table.create()
    for stats in (None, "not json", '{"numRecords":2,"minValues":{"v":"a"},"big":12345678901234567890.10}'):
        action = table.write_file([{"id": 1, "v": "a"}, {"id": 2, "v": None}])
        table.commit([{"add": {**action["add"], "stats": stats}}])
    cluster_by(load_snapshot(tmp_path), ["id"], OPTIONS)
    for file in files(tmp_path):
        assert json.loads(file.stats or "")["maxValues"]["id"] == 2
    # what is not understood is left as it was written
    assert any('"big":12345678901234567890.10' in (file.stats or "") for file in files(tmp_path))
    assert [row["id"] for row in read_rows(tmp_path, where="id = 2")] == [2, 2, 2]
    # what the other writer's commit holds is still in the log
    assert {finding.rule for finding in verify(str(tmp_path)).findings} == {"commit.statistics"}


def test_a_file_that_was_removed_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    write_rows(tmp_path, SCHEMA, ROWS, properties=ONLY_ID)
    forget_columns(tmp_path)
    snapshot = load_snapshot(tmp_path)
    write_rows(tmp_path, SCHEMA, [], mode="overwrite")
    with pytest.raises(ConcurrentDeleteReadError):
        cluster_by(snapshot, ["i"], OPTIONS)
