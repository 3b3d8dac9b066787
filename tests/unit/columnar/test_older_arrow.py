"""Replacements for functions that older versions of pyarrow lack, next to these functions where they exist."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar import older_arrow
from delta_pyds.columnar.older_arrow import concat_batches, rows_with_dicts

MAP = pa.map_(pa.string(), pa.string())
TYPES: list[tuple[str, pa.DataType]] = [
    ("plain", pa.int64()),
    ("map", MAP),
    ("struct", pa.struct([("map", MAP), ("n", pa.int64())])),
    ("list", pa.list_(MAP)),
    ("large", pa.large_list(pa.struct([("map", MAP)]))),
    ("maps", pa.map_(pa.string(), MAP)),
]
ROWS: list[dict[str, Any]] = [
    {
        "plain": 1,
        "map": [("a", "b"), ("c", None)],
        "struct": {"map": [("d", "e")], "n": 2},
        "list": [[("f", "g")], None, []],
        "large": [{"map": [("h", "i")]}, None],
        "maps": [("j", [("k", "l")]), ("m", None)],
    },
    dict.fromkeys((name for name, _ in TYPES), None),
]
BATCH = pa.RecordBatch.from_pylist(ROWS, schema=pa.schema(TYPES))


@pytest.fixture(params=["as it is", "older"], autouse=True)
def arrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "older":
        monkeypatch.setattr(older_arrow, "_CONCATENATES", False)
        monkeypatch.setattr(older_arrow, "_HAS_DICTS", False)


def test_maps_are_dicts_at_every_depth() -> None:
    assert rows_with_dicts(BATCH) == [
        {
            "plain": 1,
            "map": {"a": "b", "c": None},
            "struct": {"map": {"d": "e"}, "n": 2},
            "list": [{"f": "g"}, None, {}],
            "large": [{"map": {"h": "i"}}, None],
            "maps": {"j": {"k": "l"}, "m": None},
        },
        ROWS[1],
    ]
    assert rows_with_dicts(BATCH.slice(0, 0)) == []


def test_a_key_twice_is_an_error() -> None:
    twice = pa.array([[("a", "b"), ("twice", "c"), ("twice", "d")]], MAP)
    with pytest.raises(KeyError, match="twice"):
        rows_with_dicts(pa.RecordBatch.from_arrays([twice], names=["c"]))


def test_batches_are_concatenated() -> None:
    batches = [BATCH.slice(1), BATCH, BATCH.slice(0, 0)]
    got = concat_batches(batches)
    assert got.schema.equals(BATCH.schema, check_metadata=True)
    assert got.to_pylist() == [row for batch in batches for row in batch.to_pylist()]
