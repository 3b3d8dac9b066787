"""`deltalake` (delta-rs) and we on one table, both directions; it refuses what it does not know, and says so."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import delta_pyds
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.engines import Engines, Table, as_text, checksum_file, core_rows, rows
from tests.interop.features import PARTITION_VALUES, TABLE_FEATURES, TYPES, Feature
from tests.interop.matrix import Cell
from tests.interop.test_features import create, source_of

# what it says of tables that it does not know
REFUSED = {
    "vacuumProtocolCheck": "VacuumProtocolCheck",
    "all features together": "TypeWidening",
    "typeWidening-preview, variantType-preview": "TypeWideningPreview",
}
_START = dt.datetime(2020, 1, 1, 1, 2, 3, tzinfo=dt.timezone.utc)


def _table(first: int, end: int) -> pa.Table:
    return pa.table({
        "id": pa.array(range(first, end), pa.int64()),
        "p": pa.array([i % 3 for i in range(first, end)], pa.int32()),
        "v": [f"v{i}" if i % 4 else None for i in range(first, end)],
        "d": pa.array([decimal.Decimal(i) / 4 for i in range(first, end)], pa.decimal128(10, 2)),
        "t": pa.array([_START + dt.timedelta(seconds=i, microseconds=i) for i in range(first, end)]),
        "s": [{"x": i, "l": [i, None]} for i in range(first, end)],
    })  # fmt: skip


def their_rows(path: Path) -> list[str]:
    """Through its query engine: its scanner for pyarrow knows neither deletion vectors nor column mapping."""
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    return as_text(pa.table(query.execute("SELECT * FROM t").read_all()))


def _sound(path: Path) -> None:
    report = delta_pyds.verify(str(path))
    assert not report.errors, f"verify: {report}"
    # it writes no checksum files, and without that of the version before we write none before the next checkpoint
    assert load_snapshot(str(path)).verify_checksum() == checksum_file(path, report.version).exists()


@pytest.mark.also_bounded
@pytest.mark.parametrize("partition", [[], ["p"]], ids=["plain", "partitioned"])
@pytest.mark.parametrize(
    "configuration",
    [
        pytest.param({}, id="plain table", marks=pytest.mark.cell("plain table", "deltalake -> us")),
        pytest.param(
            {"delta.enableChangeDataFeed": "true"},
            id="changeDataFeed",
            marks=pytest.mark.cell("changeDataFeed", "deltalake -> us"),
        ),
    ],
)
def test_we_read_what_deltalake_makes_and_changes(
    engines: Engines, tmp_path: Path, partition: list[str], configuration: dict[str, str]
) -> None:
    path = tmp_path / "t"

    def check() -> None:
        theirs = their_rows(path)
        assert core_rows(path) == theirs
        _sound(path)

    deltalake.write_deltalake(path, _table(0, 20), partition_by=partition, configuration=configuration)
    check()
    deltalake.write_deltalake(path, _table(20, 40), mode="append")
    check()
    table = deltalake.DeltaTable(path)
    table.delete("id % 7 = 3")
    check()
    table.update({"v": "'u'"}, predicate="id % 5 = 1")
    check()
    merge = table.merge(_table(35, 50), "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    check()
    table.optimize.compact()
    table.create_checkpoint()
    check()
    engines.append(engines.ours(path).limit(3).selectExpr("id + 100 AS id", "p", "v", "d", "t", "s"), path)
    check()
    assert rows(engines.ours(path)) == core_rows(path)
    if configuration:
        feed = {"readChangeFeed": "true", "startingVersion": "0"}
        changes = engines.ours(path, **feed).drop("_commit_timestamp")
        theirs = pa.table(deltalake.DeltaTable(path).load_cdf(starting_version=0).read_all())
        assert rows(changes) == as_text(theirs.select(changes.columns))


def _ours() -> list[object]:
    usable = [f for f in (*TABLE_FEATURES, *TYPES, *PARTITION_VALUES) if f.written and not f.made_by_reference]
    return [pytest.param(f, id=f.name, marks=pytest.mark.cell(f.name, "us -> deltalake")) for f in usable]


@pytest.mark.parametrize("feature", _ours())
def test_deltalake_reads_what_we_write(engines: Engines, tmp_path: Path, feature: Feature, cell: Cell) -> None:
    table = Table(engines, tmp_path / "t")
    create(table, feature)
    engines.append(source_of(engines, feature, 10, 40), table.path)

    def read() -> list[str]:
        return their_rows(table.path)

    if feature.name in REFUSED:
        cell.peer_refuses(read, REFUSED[feature.name])
    else:
        assert read() == core_rows(table.path)


@pytest.mark.also_bounded
@pytest.mark.parametrize("partition", [None, "p"], ids=["plain", "partitioned"])
@pytest.mark.cell("plain table", "us -> deltalake")
def test_deltalake_changes_what_we_write(engines: Engines, tmp_path: Path, partition: str | None) -> None:
    path = tmp_path / "t"
    frame = engines.spark.createDataFrame
    delta_pyds.write(frame(_table(0, 20)), str(path), partition_by=partition)

    def check() -> None:
        assert core_rows(path) == their_rows(path)
        _sound(path)

    check()
    deltalake.write_deltalake(path, _table(20, 40), mode="append")
    check()
    deltalake.DeltaTable(path).delete("id % 7 = 3")
    check()
    merge = deltalake.DeltaTable(path).merge(_table(35, 50), "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    check()
    engines.append(frame(_table(50, 60)), path)
    check()
    engines.append(frame(_table(45, 55)), path, mode="overwrite", replaceWhere="id >= 45 AND id < 60")
    check()
    deltalake.DeltaTable(path).optimize.compact()
    check()
