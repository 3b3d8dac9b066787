"""Files that we wrote, read by Spark itself: the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.protocol.schema import (
    LONG,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DecimalType,
    StructField,
    StructType,
    schema_to_string,
)
from tests.support.scans import every_type, sample, struct
from tests.support.writes import batch_of, on_disk, write_files, write_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

EVERYTHING = struct(
    *(
        (f"c{i}", t)
        for i, t in enumerate([*every_type(), *(DecimalType(p, p // 2) for p in (1, 9, 10, 18, 19, 38))])
        if not any(word in schema_to_string(struct(("c", t))) for word in ("void", "variant"))
    )
)


def _spark_type(schema: StructType, id_key: str = "delta.columnMapping.id") -> Any:
    from pyspark.sql.types import StructType as SparkStructType

    return SparkStructType.fromJson(json.loads(schema_to_string(schema).replace("delta.columnMapping.id", id_key)))


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("vectorized", ["true", "false"])
@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4", "uncompressed"])
def test_all_types_are_read_by_spark(spark: SparkSession, tmp_path: Path, vectorized: str, codec: str) -> None:
    random = Random(11)
    rows = [{f.name: sample(f.data_type, random) for f in EVERYTHING} for _ in range(200)]
    batch = batch_of(EVERYTHING, rows)
    (file,) = write_files(write_state(tmp_path, EVERYTHING, compression=codec), batch.slice(0, 50), batch.slice(50))
    assert file.num_records == 200
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        frame = spark.read.schema(_spark_type(EVERYTHING)).parquet(str(tmp_path))
        assert _rows(frame.toArrow()) == _rows(pa.Table.from_batches([batch]))
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_spark_finds_the_types_in_the_files_themselves(spark: SparkSession, tmp_path: Path) -> None:
    state = write_state(tmp_path, EVERYTHING)
    write_files(state, batch_of(EVERYTHING, [dict.fromkeys(EVERYTHING.names)]))
    found = spark.read.parquet(str(tmp_path)).schema
    assert found.simpleString() == _spark_type(EVERYTHING).simpleString()


def test_variants_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    schema = struct(("id", LONG), ("v", VARIANT), ("l", ArrayType(VARIANT)))
    five, null = ({"value": value, "metadata": b"\x01\x00\x00"} for value in (b"\x0c\x05", b"\x00"))
    rows = [{"id": 0, "v": five, "l": [five, None]}, {"id": 1, "v": None, "l": []}, {"id": 2, "v": null, "l": None}]
    write_files(write_state(tmp_path, schema), batch_of(schema, rows))
    frame = spark.read.schema("id long, v variant, l array<variant>").parquet(str(tmp_path)).orderBy("id")
    shown = frame.selectExpr("to_json(v)", "v IS NULL", "transform(l, e -> to_json(e))").collect()
    assert [tuple(row) for row in shown] == [("5", False, ["5", None]), (None, True, []), ("null", False, None)]


def test_spark_reads_by_field_id(spark: SparkSession, tmp_path: Path) -> None:
    def mapped(name: str, data_type: Any, number: int) -> StructField:
        metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
        return StructField(name, data_type, True, metadata)

    inner = struct(mapped("x", LONG, 3), mapped("l", ArrayType(struct(mapped("y", STRING, 5))), 4))
    schema = struct(mapped("a b", LONG, 1), mapped("s", inner, 2))
    row = {"a b": 1, "s": {"x": 2, "l": [{"y": "z"}]}}
    write_files(write_state(tmp_path, schema, column_mapping_mode="id"), batch_of(schema, [row]))
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    try:
        frame = spark.read.schema(_spark_type(schema, "parquet.field.id")).parquet(str(tmp_path))
        assert frame.toArrow().to_pylist() == [row]
    finally:
        spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


def test_spark_prunes_nothing_that_matches_by_our_footers(spark: SparkSession, tmp_path: Path) -> None:
    schema = struct(("id", LONG), ("m", DecimalType(38, 2)), ("t", STRING))
    batch = batch_of(schema, [{"id": i, "m": i - 500, "t": f"{i:05d}" * (1 + i % 3)} for i in range(1000)])
    write_files(write_state(tmp_path, schema, max_records_per_file=100), batch)
    frame = spark.read.schema(_spark_type(schema)).parquet(str(tmp_path))
    for condition, count in (("id < 150", 150), ("m = -500", 1), ("t >= '00990'", 10), ("m > 498", 1)):
        assert frame.where(condition).count() == count


def test_directories_are_those_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    values = [chr(i) for i in range(32, 127) if chr(i) != "/"] + ["a/b", "é", "日本", "\x01", "\x7f", " x ", "\t", None]
    schema = struct(("id", LONG), ("p =", STRING))
    frame = spark.createDataFrame([(i, v) for i, v in enumerate(values)], "id long, `p =` string")
    frame.coalesce(1).write.partitionBy("p =").parquet(str(tmp_path / "theirs"))
    state = write_state(tmp_path / "ours", schema, partition_columns=("p =",))
    files = write_files(state, batch_of(schema, [{"id": i, "p =": v} for i, v in enumerate(values)]))
    theirs = {path.parent.name for path in (tmp_path / "theirs").rglob("*.parquet")}
    assert {on_disk(state, f).parent.name for f in files} == theirs


def test_void_columns_that_spark_cannot_write_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    schema = struct(("id", LONG), ("v", VOID))
    writer = DataFileWriter(write_state(tmp_path, schema), 0)
    writer.write(batch_of(schema, [{"id": 1, "v": None}]))
    writer.close()
    frame: DataFrame = spark.read.parquet(str(tmp_path))
    assert frame.columns == ["id"]
