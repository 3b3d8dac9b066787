"""What a second look at the reader found: each was wrong once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.evaluate import matches
from delta_pyds.data.read import batch_size, data_file
from delta_pyds.data.read.batch_size import PROBE_ROWS
from delta_pyds.data.read.reader import read
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.schema import LONG, STRING, ArrayType, DataType, MapType, StructField, StructType
from tests.support.scans import scan, state_of, struct, write


def where(text: str, schema: StructType) -> dict[str, Any]:
    return {"predicate": parse_predicate(text, schema, time_zone="UTC").expr, "inputs": schema}


@pytest.mark.parametrize("text", ["s.a >= 0", "s IS NOT NULL", "l IS NULL OR i >= 0"])
def test_a_null_where_there_must_be_none_matters_only_in_columns_that_are_returned(tmp_path: Path, text: str) -> None:
    inner = struct(StructField("a", LONG, nullable=False))
    schema = struct(("i", LONG), ("s", inner), ("l", ArrayType(LONG, False)))
    rows = pa.table({"i": [1, 2], "s": [{"a": 1}, {"a": None}], "l": [[1], [None]]})
    file = write(tmp_path / "f", rows)
    got = scan(state_of(tmp_path, struct(("i", LONG)), **where(text, schema)), file)
    assert got.column("i").to_pylist() == ([1] if text.startswith("s.a") else [1, 2])


def test_a_required_struct_below_a_null_hides_the_nulls_of_its_fields(tmp_path: Path) -> None:
    deep = pa.struct([pa.field("a", pa.struct([pa.field("b", pa.int64())]), nullable=False)])
    file = write(tmp_path / "f", pa.table({"s": pa.array([{"a": {"b": 1}}, None, {"a": {"b": 3}}], deep)}))
    schema = struct(("s", struct(("a", struct(StructField("b", LONG, nullable=False))))))
    assert scan(state_of(tmp_path, schema), file).column("s").to_pylist() == [{"a": {"b": 1}}, None, {"a": {"b": 3}}]


@pytest.mark.parametrize("kind", [ArrayType(LONG), MapType(STRING, LONG), struct(("x", LONG))])
def test_a_column_of_nothing_is_null_for_every_type(tmp_path: Path, kind: DataType) -> None:
    file = write(tmp_path / "f", pa.table({"c": pa.nulls(2), "i": [1, 2]}))
    assert scan(state_of(tmp_path, struct(("c", kind))), file).column("c").to_pylist() == [None, None]


def test_like_counts_a_byte_that_is_no_character_as_one() -> None:
    schema = struct(("s", STRING))
    values = pa.array([b"a\xffb", b"axb", b"ab", None], pa.binary()).view(pa.string())
    for text, expected in [("s LIKE 'a_b'", [True, True, False, False]), ("s NOT LIKE 'a%b'", [False] * 4)]:
        predicate = parse_predicate(text, schema, time_zone="UTC").expr
        assert matches(predicate, lambda _: values, 4).to_pylist() == expected


def test_wide_values_behind_a_dictionary_are_looked_at_before_many_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    original = data_file.DataFile.decode

    def remember(self: Any, groups: Any, leaves: Any, rows: int, **kwargs: Any) -> Any:
        sizes.append(rows)
        return original(self, groups, leaves, rows, **kwargs)

    monkeypatch.setattr(data_file.DataFile, "decode", remember)
    wide = ["x" * 20_000, "y" * 20_000]
    file = write(tmp_path / "f", pa.table({"s": pa.array([wide[i % 2] for i in range(8_000)])}))
    batches = list(read(state_of(tmp_path, struct(("s", STRING))), file))
    assert sizes[0] == PROBE_ROWS
    assert sizes[1] < 8_000
    assert sum(b.num_rows for b in batches) == 8_000
    assert max(b.nbytes for b in batches) < 140_000_000


def test_values_that_repeat_the_one_before_are_looked_at_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their bytes in the footer are those of the first: 256 rows of them may be more than there is memory."""
    largest, original = [0], data_file.DataFile.decode

    def remember(self: Any, *args: Any) -> Any:
        for batch in original(self, *args):
            largest.append(batch.nbytes)
            yield batch

    monkeypatch.setattr(data_file.DataFile, "decode", remember)
    monkeypatch.setattr(batch_size, "_PROBE_BYTES", 1 << 26)
    monkeypatch.setattr(batch_size, "MAX_BATCH_BYTES", 1 << 21)
    encoding = {"use_dictionary": False, "column_encoding": {"s": "DELTA_BYTE_ARRAY"}}
    file = write(tmp_path / "f", pa.table({"s": ["x" * 300_000] * 300}), **encoding)
    state = state_of(tmp_path, struct(("s", STRING)))
    assert sum(b.num_rows for b in read(state, file)) == 300
    assert max(largest) < 1 << 22
