"""Rows that do not match are dropped, and what only they need is not decoded."""

from __future__ import annotations

import dataclasses
import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.columnar.parquet_footer import ParquetFooter, open_parquet
from delta_pyds.data.file_schema import file_columns
from delta_pyds.data.read.footer_statistics import RowGroupStatistics
from delta_pyds.data.read.row_groups import RowGroup
from delta_pyds.data.read.transform import FileColumnBinder
from delta_pyds.expr.nodes import And, Column, Comparison, Expr, In, IsNull, Literal, Not, Or
from delta_pyds.expr.stats_rewrite import skipping
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import (
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.bitmaps import write_vectors
from tests.support.parquet_footers import CREATED_BY, read_footer, with_footer
from tests.support.scans import Decoded, scan, state_of, struct, write

SCHEMA = struct(("a", LONG), ("s", STRING), ("l", ArrayType(LONG)))
ROWS = 1000


def _table() -> pa.Table:
    return pa.table(
        {"a": list(range(ROWS)), "s": [f"v{i:04}" for i in range(ROWS)], "l": [[i, -i] for i in range(ROWS)]}
    )


def _compare(path: str, op: str, value: Any, data_type: DataType = LONG) -> Expr:
    return Comparison(op, Column(tuple(path.split(".")), data_type), Literal(value, data_type))


def _scan(tmp_path: Path, file: ScanFile, predicate: Expr, output: StructType = SCHEMA, **given: Any) -> pa.Table:
    inputs = given.pop("inputs", SCHEMA)
    state = state_of(tmp_path, output, inputs=inputs, predicate=predicate, row_position=True, batch_rows=97, **given)
    return scan(state, file)


@pytest.mark.parametrize("row_group_size", [1000, 250, 90, 7])
def test_matching_rows_with_their_positions(tmp_path: Path, row_group_size: int) -> None:
    file = write(tmp_path / "f", _table(), row_group_size=row_group_size)
    predicate = Or((_compare("a", "<", 5), In(Column(("a",), LONG), (333, 600, 999))))
    got = _scan(tmp_path, file, predicate)
    wanted = [0, 1, 2, 3, 4, 333, 600, 999]
    assert got.column("_row_position").to_pylist() == wanted
    assert got.select(["a", "s", "l"]).to_pylist() == _table().take(wanted).to_pylist()


def test_predicate_and_deletion_vector_together(tmp_path: Path) -> None:
    file = write(tmp_path / "f", _table(), row_group_size=130)
    gone = [0, 2, 500, *range(520, 700)]
    vector = msgspec.convert(write_vectors(tmp_path, [gone])[0], DeletionVectorDescriptor)
    predicate = Or((_compare("a", "<", 5), _compare("a", ">=", 499)))
    got = _scan(tmp_path, dataclasses.replace(file, deletion_vector=vector), predicate)
    wanted = [i for i in range(ROWS) if (i < 5 or i >= 499) and i not in gone]
    assert got.column("_row_position").to_pylist() == got.column("a").to_pylist() == wanted
    assert got.column("s").to_pylist() == [f"v{i:04}" for i in wanted]


def test_the_rest_of_a_row_group_is_decoded_only_when_a_row_is_left(tmp_path: Path, decoded: Decoded) -> None:
    file = write(tmp_path / "f", _table(), row_group_size=250)
    assert _scan(tmp_path, file, _compare("a", "=", 600)).num_rows == 1
    assert decoded == [((0,), (0,)), ((1,), (0,)), ((2,), (0,)), ((2,), (1, 2)), ((3,), (0,))]


def test_long_batches_decide_no_two_row_groups_together(tmp_path: Path, decoded: Decoded) -> None:
    rows = pa.table({"a": pa.array(range(120_000)), "s": pa.repeat(pa.scalar("v"), 120_000)})
    output = struct(("a", LONG), ("s", STRING))
    file = write(tmp_path / "f", rows, row_group_size=40_000)
    state = state_of(tmp_path, output, inputs=output, predicate=_compare("a", "=", 90_000), batch_rows=1 << 18)
    assert scan(state, file).to_pylist() == [{"a": 90_000, "s": "v"}]
    assert {groups for groups, leaves in decoded if leaves == (1,)} == {(2,)}


def test_row_groups_are_ruled_out_by_their_footers(tmp_path: Path, decoded: Decoded) -> None:
    file = write(tmp_path / "f", _table(), row_group_size=250)
    predicate = _compare("a", "=", 600)
    assert _scan(tmp_path, file, predicate, skip=skipping(predicate, ())).column("a").to_pylist() == [600]
    assert decoded == [((2,), (0,)), ((2,), (1, 2))]


def test_skipping_alone_drops_no_row_of_a_row_group_that_is_kept(tmp_path: Path) -> None:
    file = write(tmp_path / "f", _table(), row_group_size=250)
    state = state_of(tmp_path, SCHEMA, inputs=SCHEMA, skip=skipping(_compare("a", "=", 600), ()))
    assert scan(state, file).column("a").to_pylist() == list(range(500, 750))


def test_nothing_is_decoded_twice_when_the_predicate_needs_all(tmp_path: Path, decoded: Decoded) -> None:
    file = write(tmp_path / "f", _table())
    both = And((_compare("a", ">", 10), _compare("s", "<", "v0013", STRING)))
    got = _scan(tmp_path, file, both, output=struct(("s", STRING), ("a", LONG)))
    assert got.column("a").to_pylist() == [11, 12]
    assert decoded == [((0,), (0, 1))]


def test_predicate_on_a_column_that_is_not_returned(tmp_path: Path) -> None:
    file = write(tmp_path / "f", _table(), row_group_size=300)
    got = _scan(tmp_path, file, _compare("a", ">=", 998), output=struct(("s", STRING)))
    assert got.column("s").to_pylist() == ["v0998", "v0999"]
    assert _scan(tmp_path, file, _compare("a", ">=", 998), output=StructType(())).column(
        "_row_position"
    ).to_pylist() == [998, 999]


def test_predicate_on_part_of_a_nested_column(tmp_path: Path, decoded: Decoded) -> None:
    rows = [{"x": i, "y": f"y{i}"} if i % 10 else None for i in range(100)]
    file = write(tmp_path / "f", pa.table({"s": rows, "b": list(range(100))}))
    part, whole = struct(("s", struct(("x", LONG)))), struct(("s", struct(("x", LONG), ("y", STRING))), ("b", LONG))
    got = _scan(tmp_path, file, _compare("s.x", ">=", 89), output=whole, inputs=part)
    assert got.column("s").to_pylist() == [r for r in rows[89:] if r]
    assert got.column("b").to_pylist() == [89, *range(91, 100)]
    assert decoded == [((0,), (0,)), ((0,), (0, 1, 2))]
    missing = _scan(tmp_path, file, IsNull(Column(("s", "x"), LONG)), output=whole, inputs=part)
    assert missing.column("b").to_pylist() == list(range(0, 100, 10))


def test_predicate_on_partition_and_missing_columns(tmp_path: Path) -> None:
    file = dataclasses.replace(write(tmp_path / "f", _table()), partition_values=("5",))
    schema = struct(("p", LONG), ("new", STRING), ("a", LONG))
    options: dict[str, Any] = {"output": schema, "inputs": schema, "partition_columns": ("p",)}
    small = _compare("a", "<", 3)
    for predicate, wanted in (
        (And((_compare("p", "=", 5), small)), 3),
        (And((_compare("p", "=", 6), small)), 0),
        (_compare("p", "=", 5), ROWS),
        (_compare("p", "=", 6), 0),
        (And((IsNull(Column(("new",), STRING)), small)), 3),
        (_compare("new", "=", "x", STRING), 0),
    ):
        for skip in (None, skipping(predicate, ("p",))):
            assert _scan(tmp_path, file, predicate, skip=skip, **options).num_rows == wanted


def test_column_of_another_case_and_wider_type_is_compared_as_the_table_has_it(tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table({"A": pa.array([1, 2, None], pa.int8())}))
    schema = struct(("a", LONG))
    predicate = _compare("a", ">", 1)
    got = _scan(tmp_path, file, predicate, output=schema, inputs=schema, skip=skipping(predicate, ()))
    assert got.column("a").to_pylist() == [2]


# --- footers


def _kept(tmp_path: Path, array: pa.Array, data_type: DataType, op: str, value: Any, **options: Any) -> list[Any]:
    """The values that are left when row groups of two rows are ruled out by their footers alone."""
    footer = options.pop("footer", None)
    table = pa.table({"c": array}).replace_schema_metadata(footer)
    file = write(tmp_path / "f", table, row_group_size=2, **options)
    skip = skipping(_compare("c", op, value, data_type), ())
    return scan(state_of(tmp_path, struct(("c", data_type)), skip=skip), file).column("c").to_pylist()


def test_footer_bounds_of_every_comparable_type(tmp_path: Path) -> None:
    def stamps(values: list[int]) -> pa.Array:
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", tz="UTC"))

    cents = [Decimal(i).scaleb(-2) for i in range(1, 5)]
    whole = {"store_decimal_as_integer": True}
    cases: list[tuple[pa.Array, DataType, Any, dict[str, Any]]] = [
        (pa.array([1, 2, 3, 4]), LONG, 3, {}),
        (pa.array([0.5, 1.5, 2.5, 3.5]), DOUBLE, 2.5, {}),
        (pa.array(["a", "b", "c", "d"]), STRING, "c", {}),
        (pa.array([1, 2, 3, 4], pa.int32()).cast(pa.date32()), DATE, 3, {}),
        (stamps([1, 2, 3, 4]), TIMESTAMP, 3, {}),
        (pa.array(cents, pa.decimal128(5, 2)), DecimalType(5, 2), cents[2], whole),
        (pa.array(cents, pa.decimal128(12, 2)), DecimalType(12, 2), cents[2], whole),
    ]
    for array, data_type, value, options in cases:
        assert _kept(tmp_path, array, data_type, "=", value, **options) == array.to_pylist()[2:]


def test_nan_is_never_ruled_out_by_a_footer(tmp_path: Path) -> None:
    got = _kept(tmp_path, pa.array([1.0, math.nan, 1.0, 2.0]), DOUBLE, ">", 5.0)
    assert [str(v) for v in got[:2]] == ["1.0", "nan"]


def test_footers_in_doubt_rule_out_nothing(tmp_path: Path) -> None:
    days = pa.array([-500_000, -499_999, 0, 1], pa.int32()).cast(pa.date32())
    old = {"org.apache.spark.version": "2.4.0"}
    assert len(_kept(tmp_path, days, DATE, "<", -400_000)) == 2
    assert len(_kept(tmp_path, days, DATE, "<", -400_000, footer=old)) == 4
    stamps = pa.array([1, 2, 3, 4], pa.int64()).cast(pa.timestamp("us"))
    assert len(_kept(tmp_path, stamps, TIMESTAMP, "=", 3, use_deprecated_int96_timestamps=True)) == 4
    # another type than the table's, and no statistics at all
    assert len(_kept(tmp_path, pa.array([1, 2, 3, 4], pa.int32()), LONG, "=", 3)) == 4
    assert len(_kept(tmp_path, pa.array([1, 2, 3, 4]), LONG, "=", 3, write_statistics=False)) == 4


def test_null_counts_of_footers(tmp_path: Path) -> None:
    table = pa.table(
        {"c": [1, 2, None, None, None, 3], "s": [{"x": 1}, {"x": 1}, {"x": None}, None, {"x": 2}, {"x": 2}]}
    )
    file = write(tmp_path / "f", table, row_group_size=2)
    schema = struct(("c", LONG), ("s", struct(("x", LONG))), ("new", LONG))

    def kept(predicate: Expr) -> list[int]:
        state = state_of(tmp_path, schema, inputs=schema, skip=skipping(predicate, ()), row_position=True)
        return scan(state, file).column("_row_position").to_pylist()

    c, x, new = Column(("c",), LONG), Column(("s", "x"), LONG), Column(("new",), LONG)
    assert kept(IsNull(c)) == [2, 3, 4, 5]
    assert kept(Not(IsNull(c))) == [0, 1, 4, 5]
    assert kept(IsNull(x)) == [2, 3]
    assert kept(Not(IsNull(x))) == [0, 1, 4, 5]
    assert kept(IsNull(new)) == [0, 1, 2, 3, 4, 5]
    assert kept(Not(IsNull(new))) == []


@pytest.mark.parametrize(
    ("writer", "length", "trusted"),
    [("other 1.0", 16, False), ("other 1.0", 15, True), ("parquet-mr version 1.12.0", 64, True)],
)
def test_long_maxima_of_unknown_writers_are_not_trusted(writer: str, length: int, trusted: bool) -> None:
    high = b"x" * length
    file = io.BytesIO()
    pq.write_table(pa.table({"c": ["a" * 40, high.decode()]}), file)
    footer = read_footer(file.getvalue())
    footer[CREATED_BY][1] = writer.encode()
    source = pa.BufferReader(with_footer(file.getvalue(), footer))
    metadata = open_parquet(source).metadata
    binding = FileColumnBinder("f", file_columns(pa.schema([("c", pa.string())])), "none").bind(
        StructField("c", STRING)
    )
    null = pa.scalar(None)
    statistics = RowGroupStatistics(
        metadata, ParquetFooter(metadata, source), [RowGroup(0, 0, 2)], lambda _: binding, lambda _: null, julian=False
    )
    low, top = statistics.minimum(("c",)), statistics.maximum(("c",))
    assert low is not None and low.to_pylist() == ["a" * 40]
    assert top is not None and top.to_pylist() == [high.decode() if trusted else None]
