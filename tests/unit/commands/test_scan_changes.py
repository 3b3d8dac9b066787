"""The changes of a range of versions as an Arrow stream: the rows of the feed, in bounded memory."""

from __future__ import annotations

import datetime as dt
import gc
import math
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest

import delta_pyds
from delta_pyds.catalog.address import locate, reserve
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.data.read import held_rows
from delta_pyds.errors import (
    ColumnNotFoundError,
    DeltaError,
    ExpressionError,
    MissingLogFilesError,
    OptionError,
    TableNotFoundError,
    TimeTravelError,
    UnsupportedOperationError,
    UserError,
)
from tests.support.change_feed import ENABLED, bag, cdc_file, with_updates
from tests.support.planned_changes import planned_delete, planned_update
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows

VECTORS = {"delta.enableDeletionVectors": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
LAYOUTS = {
    "recorded": ENABLED,
    "recorded, vectors": {**ENABLED, **VECTORS},
    "values": {},
    "values, vectors": VECTORS,
    "row ids": ROW_IDS,
    "row ids, vectors": {**ROW_IDS, **VECTORS},
}
SCHEMA = {"id": "long", "v": "string", "p": "string"}
PLACE = Place("process", "a test says so.")


def make(path: Path, properties: dict[str, str], *, partitioned: bool = False) -> None:
    """Version 0 has the rows 0 to 9 in two files.

    Version 1 updates one, 2 deletes one, 3 writes values again as they are, 4 adds one, and 5 takes back the update.
    """
    rows = [{"id": i, "v": str(i), "p": "x"} for i in range(10)]
    write_rows(path, SCHEMA, [rows[:5], rows[5:]], properties=properties, partition_by=("p",) if partitioned else None)
    update(path, "id = 1", "'ten'")
    run_delete(planned_delete(delta_pyds.load_snapshot(path), "id = 2", CommandOptions()), PLACE)
    update(path, "id > 3", "v")
    write_rows(path, SCHEMA, [{"id": 10, "v": "10", "p": "x"}])
    update(path, "id = 1", "'1'")


def update(path: Path, where: str, value: str) -> None:
    run_update(planned_update(delta_pyds.load_snapshot(path), where, {"v": value}, CommandOptions()), PLACE)


def rows(path: Path, since: Any = 1, **choice: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = delta_pyds.scan_changes(path, since=since, **choice).to_table().to_pylist()
    return found


def short(found: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((row["_commit_version"], row["id"], row["_change_type"], row["v"]) for row in found)


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No thread, and no file of a spill."""
    spills = tmp_path_factory.mktemp("spills")
    monkeypatch.setattr(tempfile, "tempdir", str(spills))
    yield
    gc.collect()
    assert not [thread for thread in threading.enumerate() if thread.name == "deltapy-read"]
    assert not list(spills.iterdir())


UPDATED = [
    (1, 1, "update_postimage", "ten"), (1, 1, "update_preimage", "1"), (2, 2, "delete", "2"),
    (4, 10, "insert", "10"), (5, 1, "update_postimage", "1"), (5, 1, "update_preimage", "ten"),
]  # fmt: skip


@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
@pytest.mark.parametrize("held_bytes", [0, held_rows.HELD_BYTES], ids=["spilled", "in memory"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_keys_make_every_table_tell_the_same(
    tmp_path: Path, layout: str, held_bytes: int, partitioned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "t", LAYOUTS[layout], partitioned=partitioned)
    monkeypatch.setattr(held_rows, "HELD_BYTES", held_bytes)
    unchanged = [row for row in rows(tmp_path / "t", keys="ID") if row["_commit_version"] == 3]
    # a feed and row ids say that rows were written again as they were
    assert {row["_change_type"] for row in unchanged} == (
        set() if "values" in layout else {"update_preimage", "update_postimage"}
    )
    found = [row for row in rows(tmp_path / "t", keys="ID") if row["_commit_version"] != 3]
    assert short(found) == UPDATED
    net = rows(tmp_path / "t", keys=["id"], net=True, compute="values")
    assert short(net) == [(5, 2, "delete", "2"), (5, 10, "insert", "10")]
    net = rows(
        tmp_path / "t",
        keys=["id"],
        net=True,
        until=4,
        compute="values",
        where="id < 5",
        columns=[*SCHEMA, "_change_type", "_commit_version"],
    )
    assert short(net) == [(4, 1, "update_postimage", "ten"), (4, 1, "update_preimage", "1"), (4, 2, "delete", "2")]
    # both images of an update, though one alone has this value, and though its file alone may have it
    assert short(rows(tmp_path / "t", keys="id", where="v = 'ten'")) == [row for row in UPDATED if row[3] == "ten"]
    kind = "_change_type = 'update_preimage' AND _commit_version = 5"
    assert short(rows(tmp_path / "t", keys="id", where=kind)) == UPDATED[-1:]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_those_of_the_recorded_feed(tmp_path: Path, layout: str) -> None:
    make(tmp_path / "twin", ENABLED)
    make(tmp_path / "t", LAYOUTS[layout])
    recorded, found = rows(tmp_path / "twin"), rows(tmp_path / "t")
    names = [*SCHEMA, "_change_type", "_commit_version"]
    if "values" not in layout:
        assert bag(found, names) == bag(recorded, names)
        return
    kinds = {"update_preimage": "delete", "update_postimage": "insert"}
    expected = [{**r, "_change_type": kinds.get(r["_change_type"], r["_change_type"])} for r in recorded]
    assert bag(found, names) == bag([row for row in expected if row["_commit_version"] != 3], names)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("held_bytes", [0, 2_000, held_rows.HELD_BYTES])
def test_pairs_of_many_files(tmp_path: Path, threads: int, held_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_rows, "HELD_BYTES", held_bytes)
    properties = {"delta.enableDeletionVectors": "true"}
    table = TableBuilder(tmp_path, {"id": "long", "f": "double", "v": "string"}, properties=properties)
    table.create()
    adds = [table.append([{"id": n % 40, "f": n / 2, "v": "a" * n} for n in range(i * 30, i * 30 + 30)])[0]
            for i in range(4)]  # fmt: skip
    vectors = [action for add in adds[:2] for action in table.delete_rows(add, range(0, 30, 2))]
    new = [table.write_file([{"id": n % 50, "f": n / 2 if n % 3 else None, "v": "b"} for n in range(i, 90, 4)])
           for i in range(4)]  # fmt: skip
    table.commit([*vectors, *map(table.remove, adds[2:]), *new])
    table.append([{"id": 0, "f": 0.0, "v": "c"}])
    for keys in (["id"], ["id", "f"], ["v"]):
        plain, found = (rows(tmp_path, since=1, threads=threads, **given) for given in ({}, {"keys": keys}))
        assert bag(found) == bag(with_updates(plain, keys)), keys
        assert any(row["_change_type"].startswith("update") for row in found) == (keys != ["v"])
    chosen = rows(tmp_path, since=1, threads=threads, keys="id", where="f > 20")
    assert bag(chosen) == bag(row for row in with_updates(plain, ["id"]) if (row["f"] or 0) > 20)


def test_keys_are_equal_as_in_spark(tmp_path: Path) -> None:
    """NaN equals NaN, -0.0 equals 0.0, and null equals nothing."""
    other_nan = float.fromhex("-0x1p0") * math.nan
    table = TableBuilder(tmp_path, {"k": "double", "d": "decimal(20,2)", "v": "integer"})
    table.create()
    (old,) = table.append([{"k": k, "d": None, "v": 1} for k in (math.nan, 0.0, None, 1.5)])
    table.commit(
        [table.remove(old), table.write_file([{"k": k, "d": None, "v": 2} for k in (other_nan, -0.0, None, 2.5)])]
    )
    for held in (0, held_rows.HELD_BYTES):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(held_rows, "HELD_BYTES", held)
            found = rows(tmp_path, since=2, keys="k")
        pairs = {repr(row["k"]).removeprefix("-") for row in found if row["_change_type"].startswith("update")}
        assert pairs == {"nan", "0.0"} and len(found) == 8
    # a key that is null in every row
    assert {row["_change_type"] for row in rows(tmp_path, since=2, keys="k,d")} == {"delete", "insert"}


def test_deletes_and_inserts_of_a_change_file_are_paired(tmp_path: Path) -> None:
    """Another writer may record an update so; the images of other updates stay as they are."""
    table = TableBuilder(tmp_path, {"id": "long", "v": "string"}, properties=ENABLED)
    table.create()
    kinds = [(1, "delete", "a"), (1, "insert", "b"), (2, "delete", "c"), (3, "insert", "d"),
             (4, "update_preimage", "e"), (4, "update_postimage", "f"), (None, "delete", "g"),
             (None, "insert", "h")]  # fmt: skip
    told = [{"id": key, "v": v, "_change_type": kind} for key, kind, v in kinds]
    table.commit([cdc_file(table, told[:3]), cdc_file(table, told[3:])])
    expected = [{**row, "_commit_version": 1} for row in told]
    names = ["id", "v", "_change_type", "_commit_version"]
    assert bag(rows(tmp_path), names) == bag(expected, names)
    found = rows(tmp_path, keys="id")
    assert bag(found, names) == bag(with_updates(expected, ["id"]), names)
    assert sorted(row["v"] for row in found if row["_change_type"].startswith("update")) == ["a", "b", "e", "f"]
    assert [row["v"] for row in rows(tmp_path, keys="id", where="_change_type = 'update_preimage' AND id < 3")] == ["a"]


def test_an_append_has_no_pairs_and_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_pyds.data.read import paired_changes

    make(tmp_path, {})
    monkeypatch.setattr(paired_changes, "HeldSides", None)
    assert short(rows(tmp_path, since=4, until=4, keys="id")) == [(4, 10, "insert", "10")]


def test_times_bound_the_range(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long", "v": "string"})
    start = dt.datetime(2026, 1, 31, 12, tzinfo=dt.timezone.utc)
    table.create()
    for n in range(4):
        table.append([{"id": n, "v": "a"}])
    for version in range(5):
        table.set_mtime(version, int(start.timestamp() * 1000) + version * 1000)

    def versions(**ends: Any) -> tuple[int, int]:
        found = delta_pyds.scan_changes(tmp_path, **ends)
        assert {row["_commit_version"] for row in found.to_table().to_pylist()} <= {
            *range(found.since, found.until + 1)
        }
        return found.since, found.until

    assert versions(since=start, until=start + dt.timedelta(seconds=2)) == (0, 2)
    assert versions(since="2026-01-31 12:00:00.5", until="2026-01-31 12:00:03.9") == (1, 3)
    assert versions(since="2026-01-31 13:00:02", until=3, time_zone="Europe/Zurich") == (2, 3)
    assert versions(since=1, until=77) == (1, 4)
    assert versions(since=dt.date(2026, 1, 31)) == (0, 4)  # type: ignore[arg-type]
    with pytest.raises(TimeTravelError):
        versions(since=start + dt.timedelta(days=1))


def test_where_columns_and_a_second_read(tmp_path: Path) -> None:
    make(tmp_path, ENABLED)
    changes = delta_pyds.scan_changes(tmp_path, since=1, where="id = 1 AND v <> 'ten'", columns=["v", "_change_type"])
    assert changes.schema.names == ["v", "_change_type"]
    first = changes.to_table()
    assert first.to_pylist() == [{"v": "1", "_change_type": kind} for kind in ("update_preimage", "update_postimage")]
    write_rows(tmp_path, SCHEMA, [{"id": 1, "v": "new", "p": "x"}])
    assert (changes.since, changes.until) == (1, 5) and changes.to_table().equals(first)
    assert "versions 1 to 5" in repr(changes) and "v <> 'ten'" in repr(changes)


def test_other_libraries_take_the_stream(tmp_path: Path) -> None:
    make(tmp_path, ROW_IDS)
    changes = delta_pyds.scan_changes(tmp_path, since=1, keys="id", where="_commit_version <> 3")
    assert len(polars.DataFrame(changes)) == 6
    assert duckdb.sql("SELECT count(*) FROM changes").fetchall() == [(6,)]
    assert pa.RecordBatchReader.from_stream(changes).read_all().num_rows == 6
    assert pa.schema(changes) == changes.schema and len(changes.to_table().to_pandas()) == 6


@pytest.mark.parametrize("threads", [None, 1, 3, 50])
def test_rows_come_in_order_whatever_the_number_of_threads(tmp_path: Path, threads: int | None) -> None:
    make(tmp_path, {})
    given = {"since": 0, "keys": "id"}
    alone = delta_pyds.scan_changes(tmp_path, threads=1, **given).to_table()  # type: ignore[arg-type]
    assert delta_pyds.scan_changes(tmp_path, threads=threads, **given).to_table().equals(alone)  # type: ignore[arg-type]
    versions = alone.column("_commit_version").to_pylist()
    assert versions == sorted(versions)


@pytest.mark.parametrize("keys", [None, "id"])
def test_a_stream_that_is_not_read_to_its_end_stops(
    tmp_path: Path, keys: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "HELD_BYTES", 0)
    make(tmp_path, {})
    batches = delta_pyds.scan_changes(tmp_path, since=0, threads=3, keys=keys).to_batches()
    next(batches)
    next(batches)
    batches.close()
    reader = delta_pyds.scan_changes(tmp_path, since=1, threads=3, keys=keys).to_reader()
    reader.read_next_batch()
    del reader
    delta_pyds.scan_changes(tmp_path, since=0, keys=keys).to_batches()


@pytest.mark.parametrize("keys", [None, "id"])
def test_a_file_that_is_gone_is_named(tmp_path: Path, keys: str | None) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    (old,) = table.append([{"id": 1}])
    table.commit([table.remove(old), table.write_file([{"id": 1}]), table.write_file([{"id": 2}])])
    table.data_file(old).unlink()
    with pytest.raises(DeltaError, match=table.data_file(old).name):
        delta_pyds.scan_changes(tmp_path, since=2, keys=keys, threads=2).to_table()
    table.append([{"id": 3}])
    table.checkpoint()
    table.commit_file(2).unlink()
    with pytest.raises(MissingLogFilesError):
        delta_pyds.scan_changes(tmp_path, since=1).explain()


def test_a_table_of_a_catalog(tmp_path: Path) -> None:
    catalog = f"sqlite://{tmp_path}/catalog.db"
    made = reserve("main.db.t", catalog)
    for n in range(2):
        write_rows(made.table_root, {"id": "long"}, [{"id": n}], storage_options=made.storage_options)
        made = locate(table="main.db.t", catalog=catalog)
    changes = delta_pyds.scan_changes(table="main.db.t", catalog=catalog, since=0)
    assert changes.to_table().column("id").to_pylist() == [0, 1]
    assert delta_pyds.explain(table="main.db.t", catalog=catalog, since=1).num_data_files == 1


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"since": 77}, UserError, "latest version is 5"),
        ({"since": -1}, OptionError, "since"),
        ({"since": True}, OptionError, "since is True"),
        ({"since": 10**30}, OptionError, "since"),
        ({"since": "yesterday"}, OptionError, "yesterday"),
        ({"since": 2, "until": 1}, UserError, "cannot start at version 2"),
        ({"since": 2, "until": 1.5}, OptionError, "until"),
        ({"since": 1, "keys": "nope"}, ColumnNotFoundError, "nope"),
        ({"since": 1, "keys": ""}, ColumnNotFoundError, "keys needs the column ''"),
        ({"since": 1, "keys": "id", "columns": "id,_change_type"}, ColumnNotFoundError, "Name it in columns"),
        ({"since": 1, "keys": "l"}, UnsupportedOperationError, "of type array"),
        ({"since": 1, "where": "nope = 1"}, ColumnNotFoundError, "nope"),
        ({"since": 1, "where": "id ==="}, ExpressionError, "id"),
        ({"since": 1, "columns": ["nope"]}, ColumnNotFoundError, "nope"),
        ({"since": 1, "compute": "rowIds"}, UserError, "have no ids"),
        ({"since": 1, "compute": "never"}, UserError, "computeChanges"),
        ({"since": 1, "compute": "some"}, OptionError, "must be one of auto, rowIds, values, never"),
        ({"since": 1, "compute": None}, OptionError, "compute"),
        ({"since": 1, "net": "yes"}, OptionError, "net"),
        ({"since": 1, "threads": 0}, OptionError, "threads"),
        ({"since": 1, "time_zone": "Mars"}, ExpressionError, "Mars"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, arguments: dict[str, Any], kind: type[DeltaError], words: str) -> None:
    columns = {"id": "long", "l": {"type": "array", "elementType": "long", "containsNull": True}}
    for n in range(6):
        write_rows(tmp_path, columns, [{"id": n, "l": None}])
    with pytest.raises(kind, match=words):
        delta_pyds.scan_changes(tmp_path, **arguments)


def test_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        delta_pyds.scan_changes(tmp_path / "nothing", since=0)
