"""The native engine: the rows of the other engine and of a model, on every feature that it takes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds.errors import (
    ColumnNotFoundError,
    DeletionVectorError,
    OptionError,
    StorageError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_pyds.spark.native import files as native_files
from delta_pyds.spark.native import parts as native_parts
from delta_pyds.spark.native import scan as native_scan
from tests.support.frames import native
from tests.support.table_builder import TableBuilder, build

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

UTC = dt.timezone.utc
VECTORS = {"delta.enableDeletionVectors": "true"}
BY_NAME = {"delta.columnMapping.mode": "name"}


@pytest.fixture(params=["by size", "by size, broadcast", "joined", "constant"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log's values for a file come from one array, a joined table, or as constants of one scan for each file."""
    if request.param == "constant":
        monkeypatch.setattr(native_parts, "LARGE_FILE_ROWS", 0)
        return
    monkeypatch.setattr(native_parts, "MAX_SCANS", 1)
    if request.param == "joined":
        monkeypatch.setattr(native_scan, "slots_of", lambda _: None)
    if request.param == "by size, broadcast":
        monkeypatch.setattr(native_scan, "MAX_WORDS_IN_TASKS", 0)


def arrow(spark: SparkSession, table: TableBuilder, **options: Any) -> DataFrame:
    return delta_pyds.read(spark, str(table.path), engine="arrow", **options)


def rows(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))


def agree(spark: SparkSession, table: TableBuilder, **options: Any) -> list[str]:
    """Rows and names of both engines are the same; the rows."""
    ours, other = native(spark, table, **options), arrow(spark, table, **options)
    assert ours.schema.simpleString() == other.schema.simpleString()
    found = rows(ours)
    assert found == rows(other)
    return found


def expected(table: TableBuilder) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in table.expected_rows()), key=repr)


# --- deletion vectors


@pytest.mark.usefixtures("way")
def test_rows_that_deletion_vectors_name_are_gone_in_every_row_group_and_under_every_filter(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = build(tmp_path / "t", {"id": "long", "text": "string"}, properties=VECTORS)
    table.append([{"id": i, "text": f"t{i}"} for i in range(1000)], row_group_size=100, data_page_size=64)
    table.append([{"id": i, "text": None} for i in range(1000, 1010)])
    first = table.active()[0]
    gone = [0, 63, 64, 99, 100, 127, 128, 500, 998]
    table.commit(table.delete_rows(first, gone))
    df = native(spark, table)
    assert sorted(r.id for r in df.collect()) == [i for i in range(1010) if i not in gone]
    assert df.count() == 1001
    assert [r.id for r in df.filter("id BETWEEN 499 AND 501").sort("id").collect()] == [499, 501]
    assert df.filter("id = 500").count() == 0
    assert df.filter("text = 't999'").count() == 1
    assert len(agree(spark, table, where="id > 990")) == 8 + 10


@pytest.mark.usefixtures("way")
def test_a_file_whose_rows_are_all_deleted_and_one_that_loses_its_last_row(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"}, properties=VECTORS)
    for start in (0, 100):
        table.append([{"id": i} for i in range(start, start + 70)])
    one, two = table.active()
    table.commit(table.delete_rows(one, list(range(70))))
    table.commit(table.delete_rows(two, [69]))
    assert sorted(r.id for r in native(spark, table).collect()) == list(range(100, 169))


def test_too_large_deletion_vectors_are_left_to_the_other_engine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = build(tmp_path / "t", {"id": "long"}, properties=VECTORS)
    table.append([{"id": i} for i in range(200)])
    table.commit(table.delete_rows(table.active()[0], [199]))
    monkeypatch.setattr(native_files, "MAX_ROWS_WITH_DELETIONS", 199)
    df = delta_pyds.read(spark, str(table.path))
    assert delta_pyds.explain(df).engine == "arrow"
    assert "deletion vectors are too large" in str(delta_pyds.explain(df))
    assert df.count() == 199
    monkeypatch.setattr(native_files, "MAX_ROWS_WITH_DELETIONS", 200)
    assert native(spark, table).count() == 199


def test_a_damaged_deletion_vector_is_an_error_and_never_live_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"}, properties=VECTORS)
    table.append([{"id": i} for i in range(200)])
    table.commit(table.delete_rows(table.active()[0], [1]))
    for file in table.path.glob("deletion_vector*.bin"):
        file.write_bytes(file.read_bytes()[:-6] + b"\x00" * 6)
    with pytest.raises(DeletionVectorError):
        native(spark, table)
    df = delta_pyds.read(spark, str(table.path))
    with pytest.raises(PySparkException, match="DELTA_DELETION_VECTOR"):
        df.collect()


# --- paths


@pytest.mark.one_case_in(2)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("vectors", [False, True])
def test_paths_of_any_characters_name_one_file_each(spark: SparkSession, tmp_path: Path, vectors: bool) -> None:
    table = build(tmp_path / "a b%20c [x]{y}*ü", {"n": "string"}, properties=VECTORS)
    names = [
        "p q.parquet", "p%20q.parquet", "p+q&r=s.parquet", "{a,b}.parquet", "[ab].parquet", "*.parquet", "?.parquet",
        "日本 €.parquet", "q'uo\"te^`|~.parquet", "back\\slash.parquet", "d=1/e f/x#y.parquet",
    ]  # fmt: skip
    for name in names:
        table.append([{"n": name}, {"n": "gone"}], path=name)
    if vectors:
        for add in table.active():
            table.commit(table.delete_rows(add, [1]))
    found = sorted(r.n for r in native(spark, table).collect())
    assert found == sorted(names + ([] if vectors else ["gone"] * len(names)))
    assert [r.n for r in native(spark, table, where="n = '*.parquet'").collect()] == ["*.parquet"]


def test_a_table_below_a_directory_that_looks_like_a_partition_has_no_column_of_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = build(tmp_path / "id=7" / "t", {"id": "long"})
    table.append([{"id": 1}])
    assert [tuple(r) for r in native(spark, table).collect()] == [(1,)]


def test_other_files_in_the_directory_are_never_read(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.append([{"id": 1}])
    pq.write_table(pa.table({"id": [2]}), table.path / "orphan.parquet")
    assert native(spark, table).count() == 1


# --- partitions

PARTITIONS = {
    "string": ["a", "a b", "a/b=c%", "ü", None],
    "integer": [-1, 0, 2147483647, None],
    "date": [dt.date(1, 1, 1), dt.date(2024, 2, 29), None],
    "boolean": [True, False, None],
    "double": [0.5, -1e300, math.inf, None],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-0.01"), None],
    "timestamp": [dt.datetime(2024, 1, 2, 3, 4, 5, 6, UTC), dt.datetime(1600, 1, 1, tzinfo=UTC), None],
    "timestamp_ntz": [dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(1582, 10, 4, 1), None],
    "binary": [b"ab", None],
}


@pytest.mark.one_case_in(4)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", sorted(PARTITIONS))
@pytest.mark.parametrize("mapped", [False, True])
def test_partition_values_of_every_type_come_from_the_log(
    spark: SparkSession, tmp_path: Path, kind: str, mapped: bool
) -> None:
    table = build(
        tmp_path / "t", {"id": "long", "p": kind}, partition_columns=["p"], properties=BY_NAME if mapped else {}
    )
    table.append([{"id": i, "p": value} for i, value in enumerate(PARTITIONS[kind])])
    assert len(agree(spark, table)) == len(PARTITIONS[kind])
    df = native(spark, table)
    assert df.filter("p IS NULL").count() == 1
    assert df.groupBy("p").count().count() == len(PARTITIONS[kind])
    assert df.alias("a").join(df.alias("b"), "p").count() == len(PARTITIONS[kind]) - 1


@pytest.mark.usefixtures("way")
def test_both_forms_of_a_partition_timestamp_and_the_sessions_zone(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "p": "timestamp"}, partition_columns=["p"])
    for i, text in enumerate(["2024-01-02 03:04:05", "2024-01-02T03:04:05.000006Z"]):
        add = table.write_file([{"id": i}], partition_values={"p": None})
        add["add"]["partitionValues"] = {"p": text}
        table.commit([add])
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    for zone in (spark, session):
        micros = [r[0] for r in native(zone, table).selectExpr("unix_micros(p) m").sort("m").collect()]
        assert micros == [r[0] for r in arrow(zone, table).selectExpr("unix_micros(p) m").sort("m").collect()]


@pytest.mark.usefixtures("way")
def test_files_in_hive_directories_that_contradict_the_log_have_the_logs_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = build(tmp_path / "t", {"id": "long", "p": "string"}, partition_columns=["p"])
    table.append([{"id": 1, "p": "a"}, {"id": 2, "p": "b"}])
    add = table.active()[0]
    add["add"]["partitionValues"] = {"p": "z"}
    table.commit([add])
    assert sorted(tuple(r) for r in native(spark, table).collect()) == sorted([(1, "z"), (2, "b")])
    assert native(spark, table).filter("p = 'z'").count() == 1
    assert native(spark, table).filter("p = 'a'").count() == 0


@pytest.mark.usefixtures("way")
def test_deletion_vectors_and_partition_values_of_files_anywhere_come_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = build(
        tmp_path / "t", {"id": "long", "p": "string"}, partition_columns=["p"], properties={**BY_NAME, **VECTORS}
    )
    table.append([{"id": i, "p": "ab"[i % 2]} for i in range(20)])
    table.commit(table.delete_rows(table.active()[0], [0, 9]))
    assert len(agree(spark, table)) == 18
    assert len(agree(spark, table, where="p = 'a' AND id > 3")) == len(
        [r for r in expected(table) if r[1] == "a" and r[0] > 3]
    )


# --- columns


def test_columns_that_files_lack_or_have_besides(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.append([{"id": 1}])
    table.commit([table.metadata({"id": "long", "new": "string", "s": {"x": "long"}, "nothing": "void"})])
    table.append([{"id": 2, "new": "n", "s": {"x": 5}, "nothing": None}])
    assert len(agree(spark, table)) == 2
    assert native(spark, table).filter("new IS NULL").count() == 1
    table.commit([table.metadata({"id": "long"})])
    assert len(agree(spark, table)) == 2


def test_nested_fields_that_files_lack_do_not_make_their_struct_null(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "s": {"a": "long"}, "l": [{"a": "long"}]})
    table.append([{"id": 1, "s": {"a": 1}, "l": [{"a": 1}]}, {"id": 2, "s": None, "l": []}])
    table.commit([table.metadata({"id": "long", "s": {"a": "long", "b": "long"}, "l": [{"a": "long", "b": "long"}]})])
    agree(spark, table)
    agree(spark, table, columns="s.b")
    agree(spark, table, columns="id", where="s.b IS NULL")
    agree(spark, table, columns="s.b", where="s.a = 1")
    df = native(spark, table)
    assert df.filter("s IS NOT NULL").select("s.b").count() == 1
    assert [r.n for r in df.selectExpr("size(l) n").sort("n").collect()] == [0, 1]


def test_mapped_names_at_every_depth(spark: SparkSession, tmp_path: Path) -> None:
    schema = {
        "id": "long", "s": {"x": "long", "y": {"z": "double", "w": "string"}}, "l": [{"x": "long"}],
        "a.b `c`": "string",
    }  # fmt: skip
    table = build(tmp_path / "t", schema, properties=BY_NAME)
    table.append(
        [
            {"id": 1, "s": {"x": 1, "y": {"z": 1.5, "w": "w"}}, "l": [{"x": 1}, None], "a.b `c`": "odd"},
            {"id": 2, "s": {"x": None, "y": None}, "l": None, "a.b `c`": None},
            {"id": 3, "s": None, "l": [], "a.b `c`": ""},
        ]
    )
    assert len(agree(spark, table)) == 3
    assert len(agree(spark, table, columns="s.y.w,id", where="s.x = 1")) == 1
    df = native(spark, table)
    assert [r.id for r in df.filter("s.y.z > 1").collect()] == [1]
    assert [r.id for r in df.filter("`a.b ``c``` = 'odd'").collect()] == [1]
    assert df.filter("s IS NULL").count() == 1
    assert df.filter("s IS NOT NULL AND s.y IS NULL").count() == 1


WIDENED = [
    ("byte", "short"), ("byte", "integer"), ("byte", "long"), ("byte", "double"), ("byte", "decimal(10,0)"),
    ("short", "integer"), ("short", "long"), ("short", "double"), ("short", "decimal(12,2)"),
    ("integer", "long"), ("integer", "double"), ("integer", "decimal(12,2)"), ("long", "decimal(22,2)"),
    ("float", "double"), ("decimal(5,1)", "decimal(9,3)"), ("decimal(5,1)", "decimal(20,1)"),
    ("decimal(20,1)", "decimal(30,5)"), ("date", "timestamp_ntz"),
]  # fmt: skip


@pytest.mark.parametrize("vectorised", ["true", "false"])
def test_columns_of_every_widened_type_are_read_and_filtered_alike(
    spark: SparkSession, tmp_path: Path, vectorised: str
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
    before: dict[str, Any] = {f"c{i}": old for i, (old, _) in enumerate(WIDENED)}
    after: dict[str, Any] = {f"c{i}": new for i, (_, new) in enumerate(WIDENED)}
    table = build(
        tmp_path / "t", {**before, "l": ["integer"]}, features=(["typeWidening", "timestampNtz"], ["typeWidening"])
    )
    day = {"date": dt.date(2020, 1, 2)}
    table.append([{**{n: day.get(t, Decimal(5) if "decimal" in t else 5) for n, t in before.items()}, "l": [5, None]}])
    table.commit([table.metadata({**after, "l": ["long"]})])
    assert len(agree(session, table)) == 1
    ours, other = native(session, table), arrow(session, table)
    for name, kind in after.items():
        tests = ["= 5", "< 5.5", "> 4.5", "<= 4.5", "> 5.5", "IN (5)", "<> 5"]
        if kind == "timestamp_ntz":
            tests = ["= timestamp_ntz'2020-01-02 00:00:00'", "< timestamp_ntz'2020-01-02 00:00:01'"]
        counts = [f"count_if({name} {test})" for test in tests]
        wanted = other.selectExpr(*counts).first()
        assert wanted is not None
        found = [ours.filter(f"{name} {test}").count() for test in tests]
        assert found == list(wanted), (name, kind)


def test_renamed_columns_are_read_from_files_of_before(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"old": "long", "s": {"x": "long", "y": "long"}}, properties=BY_NAME,
                  physical_names={"old": "new", "s.x": "y", "s.y": "x"})  # fmt: skip
    table.append([{"old": 1, "s": {"x": 10, "y": 20}}, {"old": 2, "s": None}])
    found = agree(spark, table)
    assert found == ["Row(old=1, s=Row(x=10, y=20))", "Row(old=2, s=None)"]


def test_varchar_and_not_null_columns_are_as_by_the_other_engine_and_char_is_left_to_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    def field(name: str, kind: str, nullable: bool, **metadata: str) -> dict[str, Any]:
        return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}

    fields = [
        field("id", "long", False),
        field("c", "string", True, __CHAR_VARCHAR_TYPE_STRING="char(5)"),
        field("v", "string", True, __CHAR_VARCHAR_TYPE_STRING="varchar(5)"),
    ]
    table = build(tmp_path / "t", {"type": "struct", "fields": fields})
    table.append([{"id": 1, "c": "ab", "v": "ab"}, {"id": 2, "c": "ab   ", "v": "ab "}, {"id": 3, "c": None, "v": ""}])
    assert len(agree(spark, table, columns="id,v")) == 3
    ours, other = (read(spark, table, columns="id,v") for read in (native, arrow))
    for predicate in ("v = 'ab'", "v = 'ab '", "v LIKE 'ab%'", "v > 'ab'", "id = 1"):
        assert_df_equality(ours.filter(predicate), other.filter(predicate), ignore_row_order=True, ignore_nullable=True)
    df = delta_pyds.read(spark, str(table.path))
    assert "'c' is of type char" in str(delta_pyds.explain(df))
    assert df.filter("c = 'ab'").count() == 2


def test_floating_point_filters_find_what_parquet_statistics_leave_out(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "d": "double", "f": "float", "s": {"d": "double"}})
    values = [1.0, math.nan, -0.0, math.inf]
    for i, v in enumerate(values):
        table.append([{"id": i, "d": v, "f": v, "s": {"d": v}}, {"id": i + 10, "d": 0.5, "f": 0.5, "s": {"d": 0.5}}])
    ours, other = native(spark, table), arrow(spark, table)
    for column in ("d", "f", "s.d"):
        for test in ("> 5", ">= 1", "= 0.0", "= 0", "in (0.0D)", "= double('NaN')", "<> 1", "< 0.5", "<= -0.0D"):
            predicate = f"{column} {test}"
            assert rows(ours.filter(predicate)) == rows(other.filter(predicate)), predicate


def test_long_ors_and_lists_of_floating_point_numbers_are_what_spark_says_of_ors(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Beyond ten constants Spark looks a value up in a set, which need not know that both zeros are one number."""
    table = build(tmp_path / "t", {"id": "long", "d": "double", "f": "float"})
    values = [-0.0, 0.0, math.nan, None, 1.0, 2.5, math.inf]
    for start in (0, 10):
        table.append([{"id": start + i, "d": v, "f": v} for i, v in enumerate(values)])
    ours = arrow(spark, table)
    for column, number in (("d", "D"), ("f", "F")):
        for constants in ("0.0#", "-0.0#", "CAST('NaN' AS #)", "0.0# CAST('NaN' AS #)", "1.0#"):
            names = constants.replace("AS #", "AS " + {"D": "double", "F": "float"}[number]).replace("#", number)
            texts = [*names.replace(" CAST", "|CAST").split("|"), *(f"{i}.0{number}" for i in range(100, 116))]
            chain = " OR ".join(f"{column} = {text}" for text in texts)
            for where in (chain, f"NOT ({chain})", f"{column} IN ({', '.join(texts)})"):
                by_spark = rows(ours.filter(where if " IN " not in where else chain))
                assert by_spark and agree(spark, table, where=where) == by_spark, where


# --- what a read is


@pytest.mark.usefixtures("way")
def test_a_dataframe_stays_at_its_version_and_serves_many_queries(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"}, properties=VECTORS)
    table.append([{"id": i} for i in range(10)])
    table.commit(table.delete_rows(table.active()[0], [0]))
    df = native(spark, table)
    table.append([{"id": 99}])
    table.commit(table.delete_rows(table.active()[0], [0, 1, 2]))
    assert df.count() == 9
    assert df.filter("id = 1").union(df.filter("id = 2")).count() == 2
    assert df.alias("a").join(df.alias("b"), "id").count() == 9
    assert df.filter("id = 5").count() == 1
    assert df.count() == 9
    assert native(spark, table, version=1).count() == 10
    assert native(spark, table).count() == 8


def test_an_empty_table_and_a_where_that_leaves_no_file(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "s": {"x": "string"}})
    assert agree(spark, table) == []
    table.append([{"id": 1, "s": None}])
    assert agree(spark, table, where="id = 2") == []
    assert native(spark, table, where="id = 2").count() == 0


def test_counting_needs_no_column(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "p": "string"}, partition_columns=["p"])
    table.append([{"id": i, "p": "x"} for i in range(7)])
    assert native(spark, table).count() == 7
    assert native(spark, table).groupBy().count().collect()[0][0] == 7


def test_comments_of_columns_are_shown_as_by_the_other_engine(spark: SparkSession, tmp_path: Path) -> None:
    fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {"comment": "the key"}}]
    table = build(tmp_path / "t", {"type": "struct", "fields": fields})
    table.append([{"id": 1}])
    assert native(spark, table).schema == arrow(spark, table).schema
    assert native(spark, table).schema["id"].metadata == {"comment": "the key"}


@pytest.fixture
def changed(spark: SparkSession) -> Iterator[SparkSession]:
    session = spark.newSession()
    for key, value in {
        "spark.sql.files.ignoreCorruptFiles": "true",
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.parquet.mergeSchema": "true",
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.parquet.enableVectorizedReader": "false",
    }.items():
        session.conf.set(key, value)
    yield session


def test_settings_that_can_be_pinned_do_not_matter(changed: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "ts": "timestamp", "day": "date", "p": "integer"},
                  partition_columns=["p"], properties=VECTORS)  # fmt: skip
    table.append([{"id": i, "ts": dt.datetime(1500, 1, 1, tzinfo=UTC), "day": dt.date(1400, 1, 1), "p": i % 2}
                  for i in range(6)])  # fmt: skip
    table.commit(table.delete_rows(table.active()[0], [0]))
    assert len(agree(changed, table)) == 5
    assert len(agree(changed, table, where="ts < '1600-01-01 00:00:00' AND day = DATE '1400-01-01'")) == 5
    df = native(changed, table)
    for file in table.path.rglob("*.parquet"):
        file.unlink()
    with pytest.raises((PySparkException, Py4JJavaError), match="FILE_NOT_EXIST"):
        df.collect()


def test_ids_of_fields_mean_nothing_where_columns_go_by_name(changed: SparkSession, tmp_path: Path) -> None:
    """The reference turns reading by id on in every session that it is used in."""
    changed.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    for properties in ({}, BY_NAME):
        named = {"type": "struct", "fields": [_with_id("x", 2), _with_id("y", 1)]}
        table = build(tmp_path / f"t{len(properties)}", {"a": "long", "b": "long", "s": named}, properties=properties)
        table.append([{"a": 10, "b": 11, "s": {"x": 20, "y": 30}}])
        [file] = table.path.glob("*.parquet")
        content = pq.read_table(file)
        pq.write_table(content.cast(pa.schema(_with_swapped_ids(content.schema))), file)
        table.commit([table.remove(table.active()[0]), table.add("again.parquet", size=file.stat().st_size)])
        file.rename(table.path / "again.parquet")
        assert delta_pyds.explain(delta_pyds.read(changed, str(table.path))).engine == "native"
        [row] = native(changed, table).toArrow().to_pylist()
        assert row == {"a": 10, "b": 11, "s": {"x": 20, "y": 30}}
        assert native(changed, table).where("s.x = 20 AND b = 11").count() == 1


def _with_id(name: str, number: int) -> dict[str, Any]:
    """A field of a schema in which somebody left the metadata that Spark takes ids from."""
    return {"name": name, "type": "long", "nullable": True, "metadata": {"parquet.field.id": number}}


def _with_swapped_ids(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields with ids in their order from 1 on, but the first two exchanged."""
    numbers = [2, 1, 3, 4]
    swapped = []
    for number, field in zip(numbers, fields, strict=False):
        kind = pa.struct(_with_swapped_ids(field.type)) if pa.types.is_struct(field.type) else field.type
        swapped.append(pa.field(field.name, kind, metadata={"PARQUET:field_id": str(number)}))
    return swapped


@pytest.mark.parametrize(
    ("key", "value"), [("spark.sql.caseSensitive", "true"), ("spark.sql.parquet.int96TimestampConversion", "true")]
)
def test_settings_that_cannot_be_pinned_send_a_read_to_the_other_engine(
    spark: SparkSession, tmp_path: Path, key: str, value: str
) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.append([{"id": 1}])
    session = spark.newSession()
    session.conf.set(key, value)
    df = delta_pyds.read(session, str(table.path))
    assert delta_pyds.explain(df).engine == "arrow"
    assert delta_pyds.explain(df).reasons == (f"{key} is {value}",)
    assert df.count() == 1
    with pytest.raises(UnsupportedOperationError, match=key):
        native(session, table)


# --- which engine


def test_auto_takes_the_native_engine_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.append([{"id": 1}])
    report = delta_pyds.explain(delta_pyds.read(spark, str(table.path)))
    assert (report.engine, report.reasons, report.version, report.num_files) == ("native", (), 1, 1)
    assert delta_pyds.explain(arrow(spark, table)).engine == "arrow"
    with pytest.raises(OptionError, match="the engine is 'jar'"):
        delta_pyds.read(spark, str(table.path), engine="jar")
    with pytest.raises(OptionError, match="was not returned by delta_pyds\\.read, a query"):
        delta_pyds.explain(native(spark, table).filter("id = 1"))


def test_auto_gives_a_variant_to_the_other_engine(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "v": "variant"})
    report = delta_pyds.explain(delta_pyds.read(spark, str(table.path)))
    assert report.engine == "arrow"
    assert "the column 'v' is of type variant" in str(report)
    with pytest.raises(UnsupportedOperationError, match="column 'v' is of type variant"):
        native(spark, table)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("kind", "content", "options", "reason"),
    [
        ("timestamp", pa.array([1, -1], pa.timestamp("ns", tz="UTC")), {"version": "2.6"}, r"as timestamp\[ns"),
        ("integer", pa.array([7], pa.uint16()), {}, "as uint16"),
        ("long", pa.array([7], pa.uint32()), {}, "as uint32"),
        ("string", pa.array(["a"]), {"compression": "brotli"}, "compressed with brotli"),
    ],
)
def test_files_that_spark_does_not_read_as_we_do_are_found_by_their_footers_on_request(
    spark: SparkSession, tmp_path: Path, kind: str, content: pa.Array, options: Any, reason: str
) -> None:
    table = build(tmp_path / "t", {"id": "long", "c": kind})
    pq.write_table(pa.table({"id": pa.array(range(len(content))), "c": content}), table.path / "x.parquet", **options)
    table.commit([table.add("x.parquet", size=(table.path / "x.parquet").stat().st_size)])
    assert delta_pyds.explain(delta_pyds.read(spark, str(table.path))).engine == "native"
    with pytest.raises(UnsupportedOperationError, match=reason):
        native(spark, table, check_footers=True)
    assert delta_pyds.explain(delta_pyds.read(spark, str(table.path), check_footers=True)).engine == "arrow"
    if kind != "string":
        assert native(spark, table, columns="id", check_footers=True).count() == len(content)


def test_damaged_pages_are_noticed_by_sparks_reader_too(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    delta_pyds.write(spark.range(1000), path, options={"compression": "none"})
    file = next(iter(Path(path).glob("*.parquet")))
    content = file.read_bytes()
    file.write_bytes(content[:2000] + bytes([content[2000] ^ 1]) + content[2001:])
    for engine in ("native", "arrow"):
        with pytest.raises(Exception, match=r"checksum|CRC|crc"):
            delta_pyds.read(spark, path, engine=engine).agg({"id": "sum"}).collect()
        lax = delta_pyds.read(spark, path, engine=engine, verify_page_checksums=False)
        assert lax.agg({"id": "sum"}).collect()[0][0] != 499500


def test_one_strange_file_among_many_is_found(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "c": "long"})
    for i in range(40):
        table.append([{"id": i, "c": i}])
    pq.write_table(pa.table({"id": [40], "c": pa.array([7], pa.uint32())}), table.path / "x.parquet")
    table.commit([table.add("x.parquet", size=(table.path / "x.parquet").stat().st_size)])
    for _ in range(2):
        found = delta_pyds.explain(delta_pyds.read(spark, str(table.path), check_footers=True))
        assert "as uint32" in found.reasons[0]
    checked = native(spark, table, columns="id", check_footers=True)
    assert checked.count() == 41
    assert delta_pyds.explain(checked).checked_footers == 41
    assert "41 files, 41 footers checked" in str(delta_pyds.explain(checked))
    assert delta_pyds.explain(native(spark, table)).checked_footers == 0
    assert rows(native(spark, table)) == rows(arrow(spark, table))


@pytest.mark.parametrize("found", [None, 1])
def test_a_null_in_a_not_null_column_is_for_the_other_engine_to_refuse(
    spark: SparkSession, tmp_path: Path, found: int | None
) -> None:
    fields = [{"name": "id", "type": "long", "nullable": False, "metadata": {}}]
    table = build(tmp_path / "t", {"type": "struct", "fields": fields})
    pq.write_table(pa.table({"id": pa.array([7, found], pa.int64())}), table.path / "x.parquet")
    table.commit([table.add("x.parquet", size=(table.path / "x.parquet").stat().st_size)])
    df = delta_pyds.read(spark, str(table.path), check_footers=True)
    if found is None:
        assert "NOT NULL" in delta_pyds.explain(df).reasons[0]
        with pytest.raises(PySparkException, match="NOT NULL"):
            df.collect()
    else:
        assert delta_pyds.explain(df).engine == "native"
        assert df.count() == 2


def test_timestamps_of_the_julian_calendar_are_left_to_the_other_engine_and_dates_are_moved(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = build(tmp_path / "t", {"day": "date", "ts": "timestamp"})
    old = pa.schema([("day", pa.date32()), ("ts", pa.timestamp("us", tz="UTC"))], {"org.apache.spark.version": "2.4.8"})
    content = pa.table({"day": [dt.date(1400, 1, 1)], "ts": [dt.datetime(2020, 1, 1, tzinfo=UTC)]}, schema=old)
    pq.write_table(content, table.path / "x.parquet")
    table.commit([table.add("x.parquet", size=(table.path / "x.parquet").stat().st_size)])
    df = delta_pyds.read(spark, str(table.path), check_footers=True)
    assert "Julian" in delta_pyds.explain(df).reasons[0]
    assert rows(df.select("day")) == agree(spark, table, columns="day") == ["Row(day=datetime.date(1399, 12, 24))"]


def test_what_is_wrong_with_a_table_is_told_as_ever(spark: SparkSession, tmp_path: Path) -> None:
    for engine in ("auto", "native", "arrow"):
        with pytest.raises(TableNotFoundError):
            delta_pyds.read(spark, str(tmp_path / "none"), engine=engine)
    table = build(tmp_path / "t", {"id": "long"})
    with pytest.raises(ColumnNotFoundError, match="nope"):
        delta_pyds.read(spark, str(table.path), where="nope = 1")


def test_a_file_that_is_missing_is_an_error_of_either_engine(spark: SparkSession, tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.append([{"id": 1}])
    [file] = table.path.glob("*.parquet")
    df = native(spark, table)
    file.unlink()
    with pytest.raises((PySparkException, Py4JJavaError), match=rf"(?s)FILE_NOT_EXIST.*{file.name}"):
        df.collect()
    with pytest.raises((PySparkException, Py4JJavaError), match=rf"(?s)FILE_NOT_EXIST.*{file.name}"):
        native(spark, table).collect()
    with pytest.raises(StorageError):
        native(spark, table, check_footers=True)
    with pytest.raises(PySparkException, match="does not exist"):
        arrow(spark, table).collect()


@pytest.mark.parametrize("where", [None, "id > 100"])
def test_a_read_of_no_file_starts_no_job(spark: SparkSession, tmp_path: Path, where: str | None) -> None:
    table = build(tmp_path / "t", {"id": "long", "p": "string", "s": {"x": "double"}}, partition_columns=["p"])
    if where:
        table.append([{"id": 1, "p": "a", "s": {"x": 1.0}}], partition_values={"p": "a"})
    group = f"no file {where}"
    spark.sparkContext.setJobGroup(group, group)
    try:
        df = native(spark, table, where=where)
        assert (df.collect(), df.filter("p = 'a'").select("s.x").collect()) == ([], [])
        assert df.schema == arrow(spark, table).schema
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
