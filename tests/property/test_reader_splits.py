from __future__ import annotations

import dataclasses
import tempfile
from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import LONG, STRING
from tests.support.bitmaps import write_vectors
from tests.support.sampling import examples
from tests.support.scans import scan, state_of, struct, write


@given(
    num_rows=st.integers(0, 400),
    row_group_size=st.integers(1, 150),
    cuts=st.lists(st.floats(0, 1), max_size=6),
    deleted=st.sets(st.integers(0, 399), max_size=200),
    batch_rows=st.integers(1, 200),
)
@settings(max_examples=examples(80), deadline=None)
def test_any_splits_of_a_file_give_each_live_row_once_with_its_position(
    num_rows: int, row_group_size: int, cuts: list[float], deleted: set[int], batch_rows: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        table = pa.table(
            {"a": pa.array(range(num_rows), pa.int64()), "s": pa.array(map(str, range(num_rows)), pa.string())}
        )
        whole = write(root / "f.parquet", table, row_group_size=row_group_size)
        gone = sorted(d for d in deleted if d < num_rows)
        descriptor = msgspec.convert(write_vectors(root, [gone])[0], DeletionVectorDescriptor)
        bounds = sorted({0, whole.size_bytes, *(int(c * whole.size_bytes) for c in cuts)})
        splits = [
            dataclasses.replace(whole, start=start, length=end - start, deletion_vector=descriptor if gone else None)
            for start, end in pairwise(bounds)
        ]
        state = state_of(root, struct(("s", STRING), ("a", LONG)), row_position=True, batch_rows=batch_rows)
        got = scan(state, *splits)
        live = [i for i in range(num_rows) if i not in set(gone)]
        assert sorted(got.column("_row_position").to_pylist()) == live
        assert got.column("a").to_pylist() == got.column("_row_position").to_pylist()
        assert got.column("s").to_pylist() == [str(i) for i in got.column("a").to_pylist()]
