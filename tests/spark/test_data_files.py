"""Files that Spark itself wrote, read by our reader and by Spark: the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.errors import SchemaMismatchError
from delta_pyds.protocol.schema import StructType, parse_schema
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.scans import scan, state_of
from tests.support.variants import decode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

EVERYTHING = """
    SELECT id, CAST(id AS tinyint) b, CAST(id AS smallint) s, CAST(id AS int) i, id / 3.0D d, CAST(id AS float) f,
      id % 2 = 0 yes, concat('ü', id) t, CAST(concat('x', id) AS binary) bin,
      date_add(DATE'0001-01-01', CAST(id * 900000 AS int)) day,
      timestamp_micros(-62135596800000000 + id * 70000000000000000) ts,
      TIMESTAMP_NTZ'1969-12-31 23:59:59.999999' + make_dt_interval(CAST(id AS int)) ntz,
      CAST(id - 0.05 AS decimal(5, 2)) d5, CAST(id AS decimal(18, 3)) d18, CAST(id AS decimal(38, 10)) d38,
      IF(id = 1, NULL, array(id, NULL, 2)) l, array(named_struct('x', id, 'y', 'a')) ls,
      array(array(1), NULL, array()) ll,
      IF(id = 2, NULL, map('k', id, 'n', NULL)) m, map(id, named_struct('x', array(id))) ms,
      named_struct('a', id, 'b', IF(id = 3, NULL, named_struct('c', 'z', 'l', array(id)))) st
    FROM range(5)
"""


def _files(directory: Path) -> Iterator[ScanFile]:
    for path in sorted(directory.glob("*.parquet")):
        yield ScanFile(str(path), path.stat().st_size)


def _ours(frame: DataFrame, directory: Path, schema: StructType | None = None) -> pa.Table:
    table_schema = schema or parse_schema(frame.schema.json())
    return scan(state_of(directory, table_schema), *_files(directory))


def _plain(table: pa.Table) -> list[str]:
    """Rows without Python's limits on dates, in any order."""
    return sorted(map(str, zip(*map(_counts, table.columns), strict=True)))


def _counts(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()
    return column.to_pylist()


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_all_types_in_all_layouts_of_spark(spark: SparkSession, tmp_path: Path, legacy: str, timestamps: str) -> None:
    conf = {"spark.sql.parquet.writeLegacyFormat": legacy, "spark.sql.parquet.outputTimestampType": timestamps}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        frame = spark.sql(EVERYTHING)
        frame.coalesce(1).write.parquet(str(tmp_path / "t"))
    finally:
        for key in conf:
            spark.conf.unset(key)
    ours = _ours(frame, tmp_path / "t")
    assert ours.schema.equals(arrow_schema(parse_schema(frame.schema.json())))
    assert _plain(ours) == _plain(spark.read.schema(frame.schema).parquet(str(tmp_path / "t")).toArrow())


def test_required_fields_of_spark_files(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT array(named_struct('x', id)) l, map(id, id) m, named_struct('y', id) s FROM range(3)")
    field = parse_schema(frame.schema.json()).fields[0]
    assert not field.nullable
    for legacy in ("true", "false"):
        frame.write.mode("overwrite").option("spark.sql.parquet.writeLegacyFormat", legacy).parquet(str(tmp_path / "t"))
        assert _plain(_ours(frame, tmp_path / "t")) == _plain(frame.toArrow())


def test_dates_that_spark_wrote_in_the_old_calendar(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT date_add(DATE'0001-01-01', CAST(id * 13 AS int)) d FROM range(48000)")
    writing = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    }
    for key, value in writing.items():
        spark.conf.set(key, value)
    try:
        frame.coalesce(1).write.parquet(str(tmp_path / "d"))
        old = spark.sql(
            "SELECT TIMESTAMP'1500-03-04 05:06:07.000008' ts UNION ALL SELECT TIMESTAMP'1899-12-31 23:00:00'"
        )
        old.coalesce(1).write.parquet(str(tmp_path / "t"))
    finally:
        for key in writing:
            spark.conf.unset(key)
    for values, name in ((frame, "d"), (old, "t")):
        # Spark moves the ten days that never were, too; the zone that the file names is the session's, UTC
        assert _plain(_ours(values, tmp_path / name)) == _plain(spark.read.parquet(str(tmp_path / name)).toArrow())


def test_types_that_spark_refuses_are_refused_alike(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT TIMESTAMP'2020-01-01 00:00:00' ts, 5L l, 1.5D d, CAST(1 AS decimal(10, 2)) dec, 'a' s")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        frame.write.parquet(str(tmp_path / "t"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    for column, narrower in (
        ("l", "int"),
        ("d", "float"),
        ("dec", "decimal(8,2)"),
        ("dec", "decimal(10,1)"),
        ("s", "bigint"),
        ("ts", "timestamp_ntz"),
    ):
        wanted = spark.sql(f"SELECT CAST(NULL AS {narrower}) {column}").schema
        with pytest.raises(SchemaMismatchError):
            _ours(frame, tmp_path / "t", parse_schema(wanted.json()))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    "shape", ["", "a bigint", "a string, b struct<c: int>, l array<string>", "a decimal(10,2), l array<variant>"]
)
def test_variants_as_spark_shreds_them(spark: SparkSession, tmp_path: Path, shape: str) -> None:
    texts = [
        '{"a": 1, "b": {"c": 5, "d": "x"}, "l": ["p", "q", 3]}',
        '{"a": "text", "e": null}',
        "7",
        '"s"',
        "[1, {}]",
        "null",
        '{"l": [], "a": 1.25}',
        "true",
    ]
    rows = ", ".join(f"('{t}')" for t in texts)
    frame = spark.sql(f"SELECT parse_json(t) v FROM VALUES {rows}, (NULL) AS (t)")
    writing = {
        "spark.sql.variant.writeShredding.enabled": str(bool(shape)).lower(),
        "spark.sql.variant.forceShreddingSchemaForTest": shape,
    }
    for key, value in writing.items():
        spark.conf.set(key, value)
    try:
        frame.coalesce(1).write.parquet(str(tmp_path / "v"))
    finally:
        for key in writing:
            spark.conf.unset(key)
    import pyarrow.parquet as pq

    (file,) = _files(tmp_path / "v")
    assert ("typed_value" in str(pq.read_schema(file.path))) == bool(shape)
    got = [v and decode(v["value"], v["metadata"]) for v in _ours(frame, tmp_path / "v").column("v").to_pylist()]
    assert got == [*(json.loads(t) for t in texts), None]


def test_variants_go_back_into_spark(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("""SELECT id, parse_json(concat('{"a":', id, ',"b":[true,{"c":"x"}]}')) v FROM range(3)""")
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "true")
    spark.conf.set("spark.sql.variant.forceShreddingSchemaForTest", "a bigint, b array<variant>")
    try:
        frame.coalesce(1).write.parquet(str(tmp_path / "v"))
    finally:
        spark.conf.unset("spark.sql.variant.writeShredding.enabled")
        spark.conf.unset("spark.sql.variant.forceShreddingSchemaForTest")
    ours = _ours(frame, tmp_path / "v")
    batches = ours.to_batches()

    def give(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    back = spark.range(1).coalesce(1).mapInArrow(give, frame.schema)
    rows = back.selectExpr("id", "variant_get(v, '$.b[1].c', 'string') c", "variant_get(v, '$.a', 'long') a").collect()
    assert [(r.id, r.c, r.a) for r in rows] == [(0, "x", 0), (1, "x", 1), (2, "x", 2)]
