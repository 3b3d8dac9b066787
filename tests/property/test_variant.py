from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.protocol.schema import VARIANT
from tests.support.sampling import examples
from tests.support.scans import scan, state_of, struct, write
from tests.support.variants import MISSING, decode, shredded_array

_keys = st.sampled_from(["a", "b", "c", "ü", "z" * 70])
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=10,
)
_shapes = st.recursive(
    st.sampled_from([None, pa.int64(), pa.int32(), pa.string(), pa.float64(), pa.bool_()]),
    lambda inner: inner.map(lambda s: [s]) | st.dictionaries(_keys, inner, min_size=1, max_size=3),
    max_leaves=6,
)


@given(st.lists(_values | st.just(MISSING), min_size=1, max_size=8), _shapes)
@settings(max_examples=examples(150), deadline=None)
def test_any_shredding_of_any_values_is_undone(values: list[Any], shape: Any) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = write(Path(directory) / "f", pa.table({"v": shredded_array(values, shape)}))
        rows = scan(state_of(Path(directory), struct(("v", VARIANT))), file).column("v").to_pylist()
    assert [r and decode(r["value"], r["metadata"]) for r in rows] == [None if v is MISSING else v for v in values]
