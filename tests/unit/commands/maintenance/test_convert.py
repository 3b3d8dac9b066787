"""Convert: files, columns, partition values and statistics of a directory of Parquet files."""

from __future__ import annotations

import datetime as dt
import gc
import json
import os
import pickle
import shutil
import tracemalloc
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_pyds
from delta_pyds.commands.maintenance.convert import ConvertOptions, convert
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.errors import CorruptDataFileError, UnsupportedOperationError, UserError
from delta_pyds.protocol.schema import StructType
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_writes import read_rows, struct, write_rows

UTC = dt.timezone.utc


def put(root: Path, name: str, rows: pa.Table | list[dict[str, Any]], **options: Any) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), path, **options)
    return path


def run(root: Path, schema: Mapping[str, str] | None = None, **options: Any) -> int | None:
    partitions = struct(dict(schema)) if schema else StructType(())
    return convert(LocalStorage(), str(root), ConvertOptions(partitions, **options))


def statistics(root: Path) -> dict[str, Any]:
    [file] = live_files(plan_scan(load_snapshot(str(root))))
    assert file.stats is not None
    return dict(json.loads(file.stats))


def test_files_become_a_table_that_reads_and_takes_writes(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", [{"id": 1, "s": "x"}])
    put(tmp_path, "sub dir/b%20.parquet", [{"id": 2, "s": "y"}])
    put(tmp_path, "_hidden/c.parquet", [{"id": 3, "s": "no"}])
    put(tmp_path, ".d.parquet", [{"id": 4, "s": "no"}])
    assert run(tmp_path) == 2
    assert sorted(row["id"] for row in read_rows(tmp_path)) == [1, 2]
    write_rows(tmp_path, {"id": "long", "s": "string"}, [{"id": 9, "s": "new"}])
    assert sorted(row["id"] for row in read_rows(tmp_path)) == [1, 2, 9]
    assert not delta_pyds.verify(str(tmp_path)).errors
    info = json.loads((tmp_path / "_delta_log" / f"{0:020}.json").read_text().splitlines()[0])["commitInfo"]
    assert info["operation"] == "CONVERT"
    assert info["operationParameters"] == {
        "numFiles": 2, "partitionedBy": "[]", "collectStats": True, "sourceFormat": "parquet",
    }  # fmt: skip
    assert info["operationMetrics"] == {"numConvertedFiles": "2"}
    assert info["isBlindAppend"] is False
    # what is a table stays as it is
    assert run(tmp_path) is None


def test_properties_are_the_tables(tmp_path: Path) -> None:
    properties = {
        "delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true",
        "delta.dataSkippingNumIndexedCols": "1",
    }  # fmt: skip
    put(tmp_path / "t", "a.parquet", [{"id": 1, "s": {"x": "y"}}])
    assert run(tmp_path / "t", properties=properties) == 1
    found = load_snapshot(str(tmp_path / "t")).configuration
    assert properties.items() <= found.configuration.items()
    assert read_rows(tmp_path / "t") == [{"id": 1, "s": {"x": "y"}}]
    assert statistics(tmp_path / "t")["minValues"] == {"id": 1}
    assert not delta_pyds.verify(str(tmp_path / "t")).findings
    put(tmp_path, "u/a.parquet", [{"id": 1}])
    for mode in ("name", "id"):
        with pytest.raises(UnsupportedOperationError) as error:
            run(tmp_path / "u", properties={"delta.columnMapping.mode": mode})
        assert error.value.code == "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING"
    assert not (tmp_path / "u" / "_delta_log").exists()


def test_who_knows_the_table_looks_at_it_before_it_is_there(tmp_path: Path) -> None:
    put(tmp_path, "p=1/a b.parquet", [{"id": 1}])
    seen: list[object] = []

    def check(paths: Sequence[str], columns: StructType) -> None:
        seen.append((list(paths), list(columns.names)))
        raise LookupError

    with pytest.raises(LookupError):
        run(tmp_path, {"p": "integer"}, check=check)
    assert seen == [(["p=1/a b.parquet"], ["id", "p"])]
    assert not (tmp_path / "_delta_log").exists()


def test_partition_values_come_from_paths(tmp_path: Path) -> None:
    put(tmp_path, "day=2026-01-31/c=a%2Fb/x.parquet", [{"id": 1}])
    put(tmp_path, "day=__HIVE_DEFAULT_PARTITION__/c=%25/x.parquet", [{"id": 2}])
    run(tmp_path, {"day": "date", "c": "string"})
    snapshot = load_snapshot(str(tmp_path))
    assert list(snapshot.schema.names) == ["id", "day", "c"]
    assert snapshot.configuration.partition_columns == ("day", "c")
    rows = sorted((r["id"], r["day"], r["c"]) for r in read_rows(tmp_path))
    assert rows == [(1, dt.date(2026, 1, 31), "a/b"), (2, None, "%")]


@pytest.mark.parametrize(
    ("directory", "schema", "code"),
    [
        ("p=1", {}, "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        ("", {"p": "integer"}, "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        ("p=1/q=2", {"q": "integer", "p": "integer"}, "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"),
        ("p=x", {"p": "integer"}, "DELTA_FAILED_CAST_PARTITION_VALUE"),
    ],
)
def test_directories_that_are_not_those_of_the_schema_are_refused(
    tmp_path: Path, directory: str, schema: dict[str, str], code: str
) -> None:
    put(tmp_path, f"{directory}/x.parquet" if directory else "x.parquet", [{"id": 1}])
    with pytest.raises(UserError) as caught:
        run(tmp_path, schema)
    assert caught.value.code == code
    assert not (tmp_path / "_delta_log").exists()


def test_statistics_come_from_footers_over_all_row_groups(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "i": pa.array([3, None, -7], pa.int32()),
            "s": ["b", "é" * 40, None],
            "d": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(10, 2)),
            "day": pa.array([dt.date(2026, 1, 1), dt.date(1969, 12, 31), None]),
            "at": pa.array([dt.datetime(2026, 1, 1, 0, 0, 0, 1500, UTC), None, None], pa.timestamp("us", "UTC")),
            "f": [1.0, float("nan"), None],
            "b": [True, None, None],
            "n": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())])),
            "l": pa.array([[1], [], None], pa.list_(pa.int64())),
            "none": pa.array([None, None, None], pa.int64()),
        }
    )
    put(tmp_path, "x.parquet", rows, row_group_size=1, store_decimal_as_integer=True)
    run(tmp_path)
    found = statistics(tmp_path)
    assert found["numRecords"] == 3
    assert found["minValues"] == {
        "i": -7, "s": "b", "d": -2.25, "day": "1969-12-31", "at": "2026-01-01T00:00:00.001Z", "n": {"x": 1},
    }  # fmt: skip
    high = found["maxValues"]
    assert (high["i"], high["d"], high["n"]) == (3, 1.5, {"x": 1})
    assert high["s"] > "é" * 32
    assert found["nullCount"] == {
        "i": 1, "s": 1, "d": 1, "day": 1, "at": 2, "f": 1, "b": 2, "n": {"x": 2}, "none": 3,
    }  # fmt: skip
    for where, count in (("i = -7", 1), ("s = 'b'", 1), ("f > 0", 2), ("i > 3", 0)):
        assert len(read_rows(tmp_path, where=where)) == count


def test_only_the_first_columns_have_statistics(tmp_path: Path) -> None:
    put(tmp_path, "x.parquet", [{f"c{n:02}": n for n in range(40)}])
    run(tmp_path)
    assert len(statistics(tmp_path)["minValues"]) == 32


def test_of_a_footer_only_the_entry_of_the_log_is_kept(tmp_path: Path) -> None:
    """Statistics of all columns of all files would not fit into the memory of those who have many."""
    files = 60
    first = put(tmp_path, "00.parquet", [{f"c{n:02}": "some text" for n in range(100)}])
    for n in range(1, files):
        os.link(first, tmp_path / f"{n:02}.parquet")
    kept = 0

    class Watched(LocalStorage):
        def parquet_source(self, path: str) -> Any:
            nonlocal kept
            if path.endswith("/25.parquet"):
                tracemalloc.start()
            elif path.endswith("/59.parquet"):
                gc.collect()
                kept = tracemalloc.get_traced_memory()[0]
            return super().parquet_source(path)

    try:
        assert convert(Watched(), str(tmp_path), ConvertOptions()) == files
    finally:
        tracemalloc.stop()
    [stats, *others] = [file.stats for file in live_files(plan_scan(load_snapshot(str(tmp_path))))]
    assert stats is not None and len(json.loads(stats)["minValues"]) == 32 and set(others) == {stats}
    # with those that are read ahead; of all columns it would be 60,000 bytes a file more
    assert kept / (59 - 25) < 30_000


def test_columns_that_come_later_take_no_statistics_from_others(tmp_path: Path) -> None:
    """Which columns have statistics is known when a file has its turn, in the order of the table's columns then.

    A file with the columns of the first one has the statistics that the first one has.
    """
    names = [f"c{n:02}" for n in range(40)]
    put(tmp_path, "1.parquet", [{"n": {"a": 1}, **dict.fromkeys(names, 1)}])
    put(tmp_path, "2.parquet", [dict.fromkeys(reversed(names), 2) | {"n": {"b": 2}}])
    put(tmp_path, "3.parquet", [{"n": {"a": 3}, **dict.fromkeys(names, 3)}])
    run(tmp_path)
    files = live_files(plan_scan(load_snapshot(str(tmp_path))))
    found = {file.path: json.loads(file.stats or "{}")["minValues"] for file in files}
    # n.b comes into the table with the second file, before all but n.a
    assert found["1.parquet"] == {"n": {"a": 1}, **dict.fromkeys(names[:31], 1)}
    assert found["2.parquet"] == {"n": {"b": 2}, **dict.fromkeys(names[:30], 2)}
    assert found["3.parquet"] == {"n": {"a": 3}, **dict.fromkeys(names[:31], 3)}
    assert [row["c00"] for row in read_rows(tmp_path, where="c39 = 2 and n.b = 2")] == [2]
    assert not delta_pyds.verify(str(tmp_path)).errors


@pytest.mark.parametrize("collect_statistics", [True, False])
def test_tasks_find_what_this_process_finds(
    tmp_path: Path, collect_statistics: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(70):
        odd = {"more": "text"} if n % 7 == 3 else {}
        put(tmp_path / "here", f"{n:02}.parquet", [{"id": n, "n": {"a": str(n)}} | odd])
    shutil.copytree(tmp_path / "here", tmp_path / "tasks")
    options = ConvertOptions(collect_statistics=collect_statistics)
    runner = Counting()
    assert convert(LocalStorage(), str(tmp_path / "here"), options, runner) == 70 and not runner.tasks
    monkeypatch.setattr("delta_pyds.commands.maintenance.convert._FEWEST_FILES_FOR_TASKS", 70)
    assert convert(LocalStorage(), str(tmp_path / "tasks"), options, runner) == 70
    # the first file was read before
    assert runner.tasks == [16, 16, 16, 16, 5]
    here, tasks = (
        {file.path: file.stats for file in live_files(plan_scan(load_snapshot(str(tmp_path / name))))}
        for name in ("here", "tasks")
    )
    assert here == tasks and len(here) == 70
    assert read_rows(tmp_path / "tasks", where="id = 69") == [{"id": 69, "n": {"a": "69"}, "more": None}]
    assert len(read_rows(tmp_path / "tasks", where="more = 'text'")) == 10


class Counting(LocalRunner):
    """``tasks``: how many files each had. They travel as they do to Spark's workers."""

    def __init__(self) -> None:
        super().__init__(2)
        self.tasks: list[int] = []

    def run(self, function: Any, tasks: Sequence[Any]) -> list[Any]:
        self.tasks = [len(task.paths) for task in tasks]
        function, tasks = pickle.loads(pickle.dumps((function, list(tasks))))
        return [pickle.loads(pickle.dumps(answer)) for answer in super().run(function, tasks)]


def test_no_statistics_where_none_are_wanted(tmp_path: Path) -> None:
    put(tmp_path, "x.parquet", [{"id": 1}])
    run(tmp_path, collect_statistics=False)
    [file] = live_files(plan_scan(load_snapshot(str(tmp_path))))
    assert file.stats is None


def test_columns_of_all_files_make_the_schema(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", [{"id": 1, "n": {"a": 1}}])
    put(tmp_path, "2.parquet", [{"z": "x", "id": 2, "n": {"b": "y"}}])
    run(tmp_path)
    rows = {row["id"]: row for row in read_rows(tmp_path)}
    assert rows[1] == {"id": 1, "n": {"a": 1, "b": None}, "z": None}
    assert rows[2] == {"id": 2, "n": {"a": None, "b": "y"}, "z": "x"}


@pytest.mark.parametrize("other", [pa.array(["1"]), pa.array([1], pa.int32())])
def test_columns_of_two_types_are_refused(tmp_path: Path, other: pa.Array) -> None:
    put(tmp_path, "1.parquet", [{"id": 1}])
    put(tmp_path, "2.parquet", pa.table({"id": other}))
    with pytest.raises(UserError, match=r"'2\.parquet'") as caught:
        run(tmp_path)
    assert caught.value.code == "DELTA_FAILED_MERGE_SCHEMA_FILE"


def test_types_are_those_that_spark_reads(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "byte": pa.array([1], pa.int8()),
            "short": pa.array([1], pa.int16()),
            "ntz": pa.array([0], pa.timestamp("us")),
            "ms": pa.array([0], pa.timestamp("ms", "UTC")),
            "bytes": pa.array([b"x"]),
            "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    put(tmp_path / "t", "x.parquet", rows)
    put(tmp_path / "old", "x.parquet", pa.table({"at": rows["ms"]}), use_deprecated_int96_timestamps=True)
    run(tmp_path / "t")
    run(tmp_path / "old")
    schema = load_snapshot(str(tmp_path / "t")).schema
    assert [getattr(f.data_type, "name", "map") for f in schema] == [
        "byte", "short", "timestamp_ntz", "timestamp", "binary", "map",
    ]  # fmt: skip
    [field] = load_snapshot(str(tmp_path / "old")).schema
    assert getattr(field.data_type, "name", None) == "timestamp"
    assert read_rows(tmp_path / "old") == [{"at": dt.datetime(1970, 1, 1, tzinfo=UTC)}]
    assert len(read_rows(tmp_path / "t")) == 1


@pytest.mark.parametrize("odd", [pa.uint32(), pa.time64("us"), pa.timestamp("ns")])
def test_types_that_no_table_has_are_refused_by_name(tmp_path: Path, odd: pa.DataType) -> None:
    put(tmp_path, "x.parquet", pa.table({"strange": pa.array([1], odd)}))
    with pytest.raises(UnsupportedOperationError, match="strange"):
        run(tmp_path)


def in_spark_words(fields: list[dict[str, Any]]) -> dict[bytes, bytes]:
    return {b"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields}).encode()}


def spark_field(name: str, data_type: Any, comment: str = "") -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": {"comment": comment}}


@pytest.mark.parametrize("name", ["interval_start", "variant", 'a"variant"', "type"])
def test_a_name_or_a_comment_is_no_type(tmp_path: Path, name: str) -> None:
    known = in_spark_words([spark_field(name, "long", 'a time interval, "variant" or {"type":"udt"}')])
    put(tmp_path, "x.parquet", pa.table({name: [1]}).replace_schema_metadata(known))
    run(tmp_path)
    assert read_rows(tmp_path) == [{name: 1}]


@pytest.mark.parametrize(
    "odd",
    [
        "interval day to second",
        "interval year",
        "variant",
        {"type": "udt", "class": "x.Y", "sqlType": "long"},
        {"type": "array", "elementType": "interval month", "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True},
        {"type": "struct", "fields": [spark_field("x", "interval hour")]},
    ],
)
def test_types_that_only_spark_knows_of_are_refused(tmp_path: Path, odd: Any) -> None:
    known = in_spark_words([spark_field("id", "long"), spark_field("strange", odd)])
    put(tmp_path, "x.parquet", pa.table({"id": [1], "strange": [1]}).replace_schema_metadata(known))
    with pytest.raises(UnsupportedOperationError) as caught:
        run(tmp_path)
    assert caught.value.code == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize("what", ["file link", "directory link", "dead link", "no text", "no text, a directory"])
def test_what_no_table_can_name_is_refused_and_not_left_out(tmp_path: Path, what: str) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    put(root, "a.parquet", [{"id": 1}])
    file = put(other, "b.parquet", [{"id": 2}])
    if what == "file link":
        (root / "b.parquet").symlink_to(file)
    elif what == "directory link":
        (root / "b.parquet").symlink_to(other)
    elif what == "dead link":
        (root / "b.parquet").symlink_to(tmp_path / "nowhere")
    else:
        odd = os.fsencode(root) + b"/b\xff.parquet"
        os.mkdir(odd) if "directory" in what else os.link(file, odd)
    with pytest.raises(UnsupportedOperationError, match=r"'b.*\.parquet'"):
        run(root)
    assert not (root / "_delta_log").exists()


def test_hidden_links_are_not_looked_at(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", [{"id": 1}])
    for name in ("_SUCCESS", ".a.parquet.crc"):
        (tmp_path / name).symlink_to(tmp_path / "a.parquet")
    assert run(tmp_path) == 1


def test_a_table_below_is_refused(tmp_path: Path) -> None:
    """Its removed files would be rows again."""
    put(tmp_path, "a.parquet", [{"id": 1}])
    for n in range(2):
        write_rows(tmp_path / "x" / "sub", {"id": "long"}, [{"id": n}], mode="overwrite")
    with pytest.raises(UnsupportedOperationError, match="'x/sub'"):
        run(tmp_path)
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize("directory", ["", "x"])
def test_files_of_a_streaming_sink_are_refused(tmp_path: Path, directory: str) -> None:
    """Only its log knows which of them a failed batch left behind."""
    put(tmp_path, f"{directory}/a.parquet".lstrip("/"), [{"id": 1}])
    (tmp_path / directory / "_spark_metadata").mkdir()
    with pytest.raises(UnsupportedOperationError, match="_spark_metadata, says which of them count"):
        run(tmp_path)
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize(("column", "directories"), [("_p", ("_p=1", "_P=2")), ("_a:b", ("_a%3Ab=1", "_A%3ab=2"))])
def test_directories_of_partition_columns_are_never_hidden(
    tmp_path: Path, column: str, directories: tuple[str, ...]
) -> None:
    for n, directory in enumerate(directories, 1):
        put(tmp_path, f"{directory}/x.parquet", [{"id": n}])
    run(tmp_path, {column: "integer"})
    assert sorted((row["id"], row[column]) for row in read_rows(tmp_path)) == [(1, 1), (2, 2)]


def test_what_is_no_parquet_file_is_named(tmp_path: Path) -> None:
    put(tmp_path, "x.parquet", [{"id": 1}])
    (tmp_path / "readme.txt").write_text("no")
    with pytest.raises(CorruptDataFileError, match=r"readme\.txt"):
        run(tmp_path)
    assert not (tmp_path / "_delta_log").exists()


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        run(tmp_path)
    assert caught.value.code == "DELTA_EMPTY_DIRECTORY"
