"""Tables that another engine wrote: the deltalake package creates, changes and checkpoints, we read."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from delta_pyds.data.read.reader import output_schema, read
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot

UTC = dt.timezone.utc
ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "part": ["a", "b", None, "é /=%", "a", "b", "c d", "a"],
        "f": [0.5, float("nan"), -0.0, None, 1e9, float("inf"), -1.0, 2.0],
        "dec": pa.array([None, *(Decimal(f"{i}.25") for i in range(7))], pa.decimal128(20, 2)),
        "ts": pa.array([dt.datetime(2024, 1, 1, h, 0, 0, 123456, UTC) for h in range(8)], pa.timestamp("us", "UTC")),
        "day": pa.array([dt.date(2024, 1, 1 + h) for h in range(8)]),
        "s": pa.array([{"x": h, "y": [h, None]} for h in range(8)]),
    }
)


def ours(path: Path, version: int | None = None, where: str | None = None) -> pa.Table:
    scan = plan_scan(load_snapshot(str(path), version=version), where=where)
    batches = [b for file in scan.files() for b in read(scan.state, file)]
    return pa.Table.from_batches(batches, output_schema(scan.state))


def theirs(path: Path, version: int | None = None) -> pa.Table:
    table = DeltaTable(str(path), version=version)
    return pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())


def rows(table: pa.Table) -> list[str]:
    names = sorted(table.column_names)
    return sorted(repr([row[n] for n in names]) for row in table.select(names).to_pylist())


def check_all_versions(path: Path) -> None:
    for version in range(DeltaTable(str(path)).version() + 1):
        assert rows(ours(path, version)) == rows(theirs(path, version)), version


@pytest.mark.parametrize("partition_by", [None, ["part"], ["part", "day"], ["f"], ["dec"], ["ts"]])
def test_partitions_of_every_type(tmp_path: Path, partition_by: list[str] | None) -> None:
    write_deltalake(tmp_path / "t", ROWS, partition_by=partition_by)
    assert rows(ours(tmp_path / "t")) == rows(ROWS)
    check_all_versions(tmp_path / "t")


def test_appends_overwrites_deletes_updates_merges_and_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, ROWS, partition_by=["part"])
    write_deltalake(path, ROWS, mode="append")
    DeltaTable(str(path)).delete("id >= 6")
    DeltaTable(str(path)).update({"f": "9.5"}, predicate="id = 3")
    DeltaTable(str(path)).create_checkpoint()
    write_deltalake(path, ROWS.slice(0, 2), mode="overwrite")
    (
        DeltaTable(str(path))
        .merge(ROWS.slice(1, 4), "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    DeltaTable(str(path)).optimize.compact()
    check_all_versions(path)


def test_columns_added_later_are_null_before(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1, 2]}))
    write_deltalake(path, pa.table({"id": [3], "more": ["x"]}), mode="append", schema_mode="merge")
    assert rows(ours(path)) == rows(pa.table({"id": [1, 2, 3], "more": [None, None, "x"]}))
    check_all_versions(path)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("where", "keep"),
    [
        ("f > 5", lambda r: r["f"] is not None and not r["f"] <= 5),  # NaN is greater than everything
        ("f = CAST('NaN' AS DOUBLE)", lambda r: r["f"] is not None and r["f"] != r["f"]),
        ("f = 0", lambda r: r["f"] == 0),
        ("dec BETWEEN 1 AND 3.25", lambda r: r["dec"] is not None and 1 <= r["dec"] <= Decimal("3.25")),
        ("ts = TIMESTAMP '2024-01-01 03:00:00.123456'", lambda r: r["ts"].hour == 3),
        ("part = 'é /=%' OR part IS NULL", lambda r: r["part"] in ("é /=%", None)),
        ("s.x >= 6 AND day < DATE '2024-01-08'", lambda r: r["s"]["x"] == 6),
        ("NOT (id < 7 OR part <> 'a')", lambda r: r["id"] == 7),
    ],
)
def test_predicates_against_statistics_that_another_engine_wrote(
    tmp_path: Path, where: str, keep: Any, checkpoint: bool
) -> None:
    path = tmp_path / "t"
    for i in range(0, 8, 2):
        write_deltalake(path, ROWS.slice(i, 2), mode="append", partition_by=["part"])
    if checkpoint:
        DeltaTable(str(path)).create_checkpoint()
    want = [r for r in ROWS.to_pylist() if keep(r)]
    assert rows(ours(path, where=where)) == rows(pa.Table.from_pylist(want, ROWS.schema))


def test_long_decimals_whose_bounds_were_written_as_doubles(tmp_path: Path) -> None:
    values = [Decimal("12345678901234567890.1234567891"), Decimal("92345678901234567899.9999999999")]
    table = pa.table({"d": pa.array(values, pa.decimal128(38, 10))})
    write_deltalake(tmp_path / "t", table)
    for value in values:
        assert ours(tmp_path / "t", where=f"d = {value}").column("d").to_pylist() == [value]
    assert ours(tmp_path / "t", where=f"d > {values[0]}").num_rows == 1
    assert pc.max(ours(tmp_path / "t", where="d >= 0").column("d")).as_py() == values[1]


def test_change_data_files_do_not_show_up_as_rows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(str(path)).update({"f": "0.0"}, predicate="id > 3")
    DeltaTable(str(path)).delete("id = 1")
    assert "_change_type" not in ours(path).column_names
    check_all_versions(path)


@pytest.mark.parametrize("where", [None, "id > 2", "note = 'zzz'", "note LIKE 'n%' AND id < 9", "note IS NULL"])
def test_files_that_merges_and_updates_wrote_as_views(tmp_path: Path, where: str | None) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1, 2, 3], "note": ["a", "b", None], "l": [["x"], None, []]}))
    source = pa.table({"id": [3, 4], "note": ["n", "nn" * 20], "l": [["y" * 20], None]})
    (
        DeltaTable(str(path))
        .merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    DeltaTable(str(path)).update({"note": "'zzz'"}, predicate="id = 2")
    full = theirs(path)
    keep = {
        None: lambda _: True,
        "id > 2": lambda r: r["id"] > 2,
        "note = 'zzz'": lambda r: r["note"] == "zzz",
        "note LIKE 'n%' AND id < 9": lambda r: (r["note"] or "").startswith("n"),
        "note IS NULL": lambda r: r["note"] is None,
    }[where]
    assert rows(ours(path, where=where)) == sorted(
        repr([r["id"], r["l"], r["note"]]) for r in full.to_pylist() if keep(r)
    )
