"""Footers of files that a table takes over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.data.convert.parquet_summary import ParquetSummaries
from delta_pyds.storage.resolve import resolve_storage

TABLES = Path(__file__).parents[4] / "examples" / "tables"

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "byte": st.none() | st.integers(-128, 127),
            "int": st.none() | st.integers(-(2**31), 2**31 - 1),
            "long": st.none() | st.integers(-(2**63), 2**63 - 1),
            "text": st.none() | st.text(max_size=70),
            "bytes": st.none() | st.binary(max_size=40),
            "flag": st.none() | st.booleans(),
            "number": st.none() | st.floats(),
            "day": st.none() | st.dates(),
            "at": st.none() | st.datetimes(),
            "price": st.none() | st.decimals(-9999, 9999, places=2),
            "wide": st.none() | st.decimals(-(10**30), 10**30, places=2),
            "inner": st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(0, 5)}),
            "list": st.none() | st.lists(st.integers(0, 5), max_size=2),
        }
    ),
    max_size=12,
)
SCHEMA = pa.schema(
    {
        "byte": pa.int8(), "int": pa.int32(), "long": pa.int64(), "text": pa.string(), "bytes": pa.binary(),
        "flag": pa.bool_(), "number": pa.float64(), "day": pa.date32(), "at": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(6, 2), "wide": pa.decimal128(38, 2), "inner": pa.struct({"a": pa.int64()}),
        "list": pa.list_(pa.int32()),
    }
)  # fmt: skip


def summaries(root: Path) -> ParquetSummaries:
    return ParquetSummaries(resolve_storage(str(root)), str(root), prefix_length=32, statistics_of=lambda _: None)


@given(ROWS, st.integers(1, 12), st.booleans())
def test_statistics_are_those_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], group: int, int96: bool
) -> None:
    path = tmp_path_factory.mktemp("footer") / "f.parquet"
    table = pa.Table.from_pylist(rows, SCHEMA)
    pq.write_table(table, path, row_group_size=group, store_schema=False, use_deprecated_int96_timestamps=int96)
    found = summaries(path.parent).of(str(path))
    assert found.num_rows == len(rows)
    statistics = {".".join(leaf): (count, bounds) for leaf, count, bounds in found.statistics}
    if not rows:
        return
    for name in ("byte", "int", "long", "text", "bytes", "flag", "number", "day", "price", "wide"):
        assert statistics[name][0] == sum(row[name] is None for row in rows)
    for name in ("byte", "int", "long"):
        values = [row[name] for row in rows if row[name] is not None]
        assert statistics[name][1] == ((str(min(values)), str(max(values))) if values else None)
    inner = [row["inner"]["a"] for row in rows if row["inner"] is not None and row["inner"]["a"] is not None]
    assert statistics["inner.a"][1] == ((str(min(inner)), str(max(inner))) if inner else None)
    days = [row["day"] for row in rows if row["day"] is not None]
    assert statistics["day"][1] == ((f'"{min(days)}"', f'"{max(days)}"') if days else None)
    assert (statistics["at"][1] is None) == (int96 or all(row["at"] is None for row in rows))


def test_a_writer_that_nobody_knows_may_cut_a_maximum(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"long": ["a" * 16], "short": ["b" * 15]}), path)
    path.write_bytes(path.read_bytes().replace(b"parquet-cpp-arrow", b"parquet-cpp-other"))
    bounds = {leaf: found for (leaf,), _, found in summaries(tmp_path).of(str(path)).statistics}
    assert bounds == {"long": None, "short": (f'"{"b" * 15}"', f'"{"b" * 15}"')}


def test_files_that_are_not_alike_have_their_own_columns(tmp_path: Path) -> None:
    tables = [pa.table({"a": [1]}), pa.table({"a": [2]}), pa.table({"a": ["x"]}), pa.table({"b": [3]})]
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    found = summaries(tmp_path)
    shown = [found.of(str(tmp_path / f"{number}.parquet")) for number in range(len(tables))]
    assert [(s.columns[0].name, s.columns[0].data_type.name, s.statistics[0][2]) for s in shown] == [
        ("a", "long", ("1", "1")), ("a", "long", ("2", "2")), ("a", "string", ('"x"', '"x"')),
        ("b", "long", ("3", "3")),
    ]  # fmt: skip


def test_files_of_spark_too() -> None:
    files = [path for path in TABLES.rglob("*.parquet") if "_delta_log" not in path.parts]
    assert files
    for path in files:
        assert pq.ParquetFile(path).metadata.created_by.startswith("parquet-mr")
        assert any(bounds for _, _, bounds in summaries(path.parent).of(str(path)).statistics), path
