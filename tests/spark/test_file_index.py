"""The list of files that Spark is given in place of a listing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.spark.native import file_index, filled_index, relations
from delta_pyds.spark.native.files import NativeFiles, list_files
from delta_pyds.spark.native.uris import spark_uri
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.calls import count_calls_to_the_jvm
from tests.support.frames import native
from tests.support.table_builder import TableBuilder, build

pytestmark = pytest.mark.one_test_in(4)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of temporary files, under a name that a URI escapes."""
    directory = tmp_path / "a tmp%20[x]"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose settings a test may change."""
    yield spark.newSession()


def fill_for_few_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have Spark's index filled in the JVM. The number of files each time."""
    monkeypatch.setattr(relations, "MIN_FILES", 1)
    numbers: list[int] = []

    def counting(spark: SparkSession, relation: Any, files: NativeFiles, chosen: Sequence[int]) -> None:
        filled_index.fill(spark, relation, files, chosen)
        numbers.append(len(chosen))

    monkeypatch.setattr(relations, "fill", counting)
    return numbers


def small(path: Path) -> TableBuilder:
    table = build(path, {"id": "long"})
    for i in range(3):
        table.append([{"id": i}])
    return table


def ids(spark: SparkSession, table: TableBuilder) -> list[int]:
    return sorted(row.id for row in native(spark, table).collect())


def test_the_list_is_private_and_gone_as_soon_as_spark_has_read_it(
    spark: SparkSession, tmp_path: Path, temporary: Path
) -> None:
    table = small(tmp_path / "t")
    files = list_files(plan_scan(load_snapshot(str(table.path))))
    with file_index.written_index(files, range(3)) as location:
        [directory] = temporary.iterdir()
        assert location == f"file:{directory}"
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert list(temporary.iterdir()) == []
    df = native(spark, table)
    assert list(temporary.iterdir()) == []
    for _ in range(2):
        assert df.count() == 3
    assert df.cache().count() == 3
    df.unpersist()
    df.createOrReplaceTempView("of_index")
    spark.sql("CACHE TABLE of_index")
    spark.catalog.refreshTable("of_index")
    spark.catalog.refreshByPath(str(table.path))
    assert spark.sql("SELECT count(*) AS n FROM of_index a JOIN of_index b USING (id)").first().n == 3
    spark.sql("UNCACHE TABLE of_index")
    spark.catalog.dropTempView("of_index")


def test_an_index_that_is_filled_in_the_jvm_is_the_same_to_spark(
    spark: SparkSession, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = build(tmp_path / "a table%20[x] ü 𝄞", {"id": "long", "x": "double"})
    for i in range(3):
        table.append([{"id": i, "x": i / 2}])
    files = ["_metadata.file_path", "_metadata.file_size", "_metadata.file_modification_time", "id", "x"]

    def found() -> tuple[list[Any], set[str], Any]:
        df = native(spark, table)
        rows = delta_pyds.sql(spark, f"SELECT {', '.join(files)} FROM delta.`{table.path}` ORDER BY id").collect()
        return rows, set(df.inputFiles()), df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()

    of_log = found()
    assert len(of_log[1]) == 3 and of_log[2] > 0
    relations._relations.clear()
    numbers = fill_for_few_files(monkeypatch)
    assert found() == of_log
    assert numbers and set(numbers) == {3}
    assert list(temporary.iterdir()) == []


def test_a_filled_index_survives_a_refresh_and_a_cached_plan(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small(tmp_path / "t")
    numbers = fill_for_few_files(monkeypatch)
    df = native(spark, table)
    df.createOrReplaceTempView("of_filled")
    spark.sql("CACHE TABLE of_filled")
    spark.catalog.refreshTable("of_filled")
    spark.catalog.refreshByPath(str(table.path))
    assert numbers == [3]
    assert spark.sql("SELECT count(*) AS n FROM of_filled a JOIN of_filled b USING (id)").first().n == 3
    spark.sql("UNCACHE TABLE of_filled")
    spark.catalog.dropTempView("of_filled")
    # equal files are one relation, of which each DataFrame has its own columns
    again = native(spark, table)
    assert numbers == [3] and df.join(again, df.id == again.id).count() == 3
    chosen = native(spark, table, where="id = 1")
    assert numbers == [3, 1] and [row.id for row in chosen.collect()] == [1]


def test_filling_an_index_takes_the_same_calls_for_any_number_of_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small(tmp_path / "t")
    fill_for_few_files(monkeypatch)
    native(spark, table)
    calls = []
    for _ in range(2):
        for i in range(10):
            table.append([{"id": i}])
        calls.append(count_calls_to_the_jvm(lambda: native(spark, table)))
    assert calls[0] == calls[1] < 250


@pytest.mark.parametrize("fault", ["a size that differs", "no such class"])
def test_an_index_that_cannot_be_filled_is_written_instead(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    table = small(tmp_path / "t")
    numbers = fill_for_few_files(monkeypatch)
    if fault == "no such class":
        monkeypatch.setattr(filled_index, "_STATUS", "org.apache.hadoop.fs.NoStatus")
    else:
        # times are taken for sizes
        monkeypatch.setattr(filled_index, "_NUMBERS", ("modificationTime", "size"))
    assert ids(spark, table) == [0, 1, 2]
    assert numbers == []


def test_partitions_that_spark_finds_are_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = build(tmp_path / "t", {"id": "long", "p": "integer"}, partition_columns=["p"])
    table.append([{"id": i, "p": i % 2} for i in range(4)])
    numbers = fill_for_few_files(monkeypatch)
    assert sorted(map(tuple, native(spark, table).where("p = 1").collect())) == [(1, 1), (3, 1)]
    assert numbers == []


@pytest.mark.parametrize("interval", ["1", "2", "10"])
def test_no_compaction_interval_of_the_session_changes_it(session: SparkSession, tmp_path: Path, interval: str) -> None:
    session.conf.set("spark.sql.streaming.fileSink.log.compactInterval", interval)
    assert ids(session, small(tmp_path / "t")) == [0, 1, 2]


def test_a_session_that_ignores_such_lists_lists_the_paths(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set("spark.sql.streaming.fileStreamSink.ignoreMetadata", "true")
    table = small(tmp_path / "t")
    assert ids(session, table) == [0, 1, 2]
    assert "InMemoryFileIndex" in str(native(session, table)._jdf.queryExecution().toString())


def test_a_list_that_cannot_be_written_leaves_the_read_to_the_python_source(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small(tmp_path / "t")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    df = delta_pyds.read(spark, str(table.path))
    assert "the list of files for Spark cannot be written" in delta_pyds.explain(df).reasons[0]
    assert df.count() == 3


def test_a_user_who_may_only_read_the_table_needs_no_more(spark: SparkSession, tmp_path: Path) -> None:
    table = small(tmp_path / "t")
    before = sorted(path.relative_to(table.path) for path in table.path.rglob("*"))
    directories = [table.path, *(path for path in table.path.rglob("*") if path.is_dir())]
    for directory in directories:
        directory.chmod(0o500)
    try:
        assert ids(spark, table) == [0, 1, 2]
    finally:
        for directory in directories:
            directory.chmod(0o700)
    assert sorted(path.relative_to(table.path) for path in table.path.rglob("*")) == before


@pytest.mark.parametrize("ancestor", ["env=prod/t", "env=prod", "day=2026-01-01/env=prod", "p=9/env=x", "=x", "x="])
def test_directories_above_the_table_that_look_like_partitions(
    spark: SparkSession, tmp_path: Path, ancestor: str
) -> None:
    """Columns of the table have the same name, and another one has the name of its partition column."""
    table = build(tmp_path / ancestor, {"id": "long", "p": "integer", "env": "string"}, partition_columns=["p"])
    table.append([{"id": i, "p": i % 2, "env": "test"} for i in range(4)])
    df = native(spark, table)
    assert df.columns == ["id", "p", "env"]
    assert sorted(map(tuple, df.collect())) == [(i, i % 2, "test") for i in range(4)]
    assert df.where("p = 1 AND env = 'test'").count() == 2
    without = native(spark, table, columns="id,p")
    assert sorted(map(tuple, without.where("p = 0").collect())) == [(0, 0), (2, 0)]


def test_other_names_above_the_table_leave_spark_its_partitions(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "env=prod", {"id": "long", "p": "integer"}, partition_columns=["p"])
    table.append([{"id": i, "p": i % 2} for i in range(4)])
    df = native(spark, table)
    assert df.columns == ["id", "p"]
    assert "PartitionFilters: [isnotnull(p" in df.where("p = 1")._jdf.queryExecution().toString()
    assert sorted(map(tuple, df.collect())) == [(0, 0), (1, 1), (2, 0), (3, 1)]


def test_sizes_and_times_are_those_of_the_log(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    [add] = table.append([{"id": 1}])
    [file] = table.path.glob("*.parquet")
    os.utime(file, (1, 1))
    selected = "unix_millis(_metadata.file_modification_time) AS ms, _metadata.file_size AS n"
    [row] = delta_pyds.sql(spark, f"SELECT {selected} FROM delta.`{table.path}`").collect()
    assert (row.ms, row.n) == (add["add"]["modificationTime"], add["add"]["size"])


def test_files_of_a_shallow_clone_lie_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "a b%20#ü"
    delta_pyds.write(spark.range(5).selectExpr("id", "id % 2 AS p"), str(source), partition_by="p")
    delta_pyds.DeltaTable.forPath(spark, str(source)).clone(str(tmp_path / "clone"), isShallow=True)
    df = delta_pyds.read(spark, str(tmp_path / "clone"), engine="native")
    assert sorted(map(tuple, df.collect())) == [(i, i % 2) for i in range(5)]


_PROGRAM = """
import sys
from pyspark.sql import SparkSession
import delta_pyds
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for _ in range(5):
    df = delta_pyds.read(spark, sys.argv[1], engine="native")
    print("rows", df.count(), flush=True)
"""


@pytest.mark.one_program_in(4)
def test_two_processes_load_at_once(tmp_path: Path, temporary: Path) -> None:
    table = small(tmp_path / "t")
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", _PROGRAM, str(table.path)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        for _ in range(2)
    ]
    for process in running:
        found, _ = process.communicate(timeout=300)
        assert [line for line in found.splitlines() if line.startswith("rows")] == ["rows 3"] * 5
    assert [path for path in temporary.iterdir() if path.name.startswith("deltapy-files-")] == []


def test_two_reads_of_one_version_are_the_same_to_spark_and_their_join_is_not_ambiguous(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = build(tmp_path / "t", {"id": "long", "p": "integer"}, partition_columns=["p"])
    table.append([{"id": i, "p": i % 2} for i in range(4)])
    one, other = native(spark, table), native(spark, table)
    assert one.sameSemantics(other)
    assert one.join(other, one.id == other.id).count() == 4
    assert one.join(other, one.id < other.id).count() == 6
    assert one.where("p = 1").union(other.where("p = 0")).count() == 4
    table.append([{"id": 9, "p": 0}])
    later = native(spark, table)
    assert not one.sameSemantics(later)
    assert (one.count(), later.count()) == (4, 5)
    assert native(spark, table, where="p = 0").count() == 3
    assert native(spark, table, columns="id").columns == ["id"]


def test_a_setting_is_noticed_after_each_change(session: SparkSession, tmp_path: Path) -> None:
    table = small(tmp_path / "t")
    for value, engine in (("false", "native"), ("true", "arrow"), ("false", "native")):
        session.conf.set("spark.sql.caseSensitive", value)
        assert delta_pyds.explain(delta_pyds.read(session, str(table.path))).engine == engine
    session.conf.unset("spark.sql.caseSensitive")
    assert ids(session, table) == [0, 1, 2]


def test_names_of_any_characters_are_spelled_as_spark_spells_them(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "dir ü%41", {"n": "string"})
    names = [f"{chr(code)}x{chr(code)}.parquet" for code in (*range(32, 127), 0x7F, 0xA0, 0x2003, 0x2028, 0x1F600, 0xE9)
             if chr(code) not in "/:._"]  # fmt: skip
    for name in names:
        table.append([{"n": name}], path=name)
    rows = native(spark, table).select("n", "_metadata.file_path").collect()
    assert {row.n: row.file_path for row in rows} == {name: spark_uri(f"{table.path}/{name}") for name in names}
    paths = [f"file:{table.path}/{name}" for name in names]
    listed = spark.read.schema("n string").option("__globPaths__", "false").option("recursiveFileLookup", "true")
    theirs = listed.parquet(*paths).select("n", "_metadata.file_path").collect()
    assert {row.n: row.file_path for row in theirs} == {row.n: row.file_path for row in rows}
    files = list_files(plan_scan(load_snapshot(str(table.path))))
    assert set(files.rows.column("uri").to_pylist()) == {row.file_path for row in rows}
    assert isinstance(files.rows, pa.Table)


@pytest.mark.parametrize(
    ("columns", "most_warm"),
    [
        ({f"c{n}": "long" for n in range(16)}, 12),
        # Spark computes these two, and leaves the others as they are
        ({**{f"c{n}": "long" for n in range(14)}, "x": "double", "y.z": "float"}, 50),
    ],
)
def test_a_load_makes_few_calls_to_the_driver_for_any_number_of_files(
    spark: SparkSession, tmp_path: Path, columns: dict[str, str], most_warm: int
) -> None:
    table = build(tmp_path / "t", columns)
    calls = {}
    for total in (10, 20):
        for i in range(total - len(calls) * 10):
            table.append([{name: float(i) if name in ("x", "y.z") else i for name in columns}])
        cold = count_calls_to_the_jvm(lambda: native(spark, table))
        calls[total] = cold, count_calls_to_the_jvm(lambda: native(spark, table))
    # the first read of a session also looks at what the session is
    assert calls[20][0] <= calls[10][0] and calls[20][1] == calls[10][1]
    cold, warm = calls[20]
    assert warm <= most_warm and cold <= warm + 20, calls
    df = native(spark, table)
    assert df.columns == list(columns) and df.count() == 20
    if "x" in columns:
        assert df.where("x = 7").select("x", "`y.z`").collect() == [(7.0, 7.0)] * 2
