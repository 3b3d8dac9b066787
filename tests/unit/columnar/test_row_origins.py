"""Origins of written rows: packed, and asked for without unpacking."""

from __future__ import annotations

import pyarrow as pa
import pytest

from delta_pyds.columnar.row_origins import (
    UNKNOWN,
    may_come_from,
    of_source_rows,
    of_table_rows,
    pack,
    rows_of_files,
    unpack,
)


def _of(*rows: tuple[int, int]) -> pa.Array:
    files, positions = zip(*rows, strict=True)
    return of_table_rows(pa.array(files, pa.int32()), pa.array(positions, pa.int64()))


_NOTHING = pa.array([], pa.int64())
_TABLE = _of((2, 5), (2, 6), (4, 0))
_SOURCE = of_source_rows(pa.array([0, 3], pa.int64()))


@pytest.mark.parametrize("origins", [_NOTHING, _TABLE, _SOURCE, pa.array([UNKNOWN, 1 << 62, -1], pa.int64())])
def test_numbers_are_packed(origins: pa.Array) -> None:
    assert unpack(pack(origins)).equals(origins)


@pytest.mark.parametrize(
    ("origins", "files", "source", "expected"),
    [
        (_NOTHING, [0, 1], True, False),
        (_TABLE, [2], False, True),
        (_TABLE, [0, 4], False, True),
        # between the smallest and the largest one
        (_TABLE, [3], False, True),
        (_TABLE, [0, 1, 5], True, False),
        (_TABLE, [], True, False),
        (_SOURCE, [0, 1], False, False),
        (_SOURCE, [], True, True),
        (pa.concat_arrays([_SOURCE, _TABLE]), [], True, True),
        (pa.concat_arrays([_SOURCE, _TABLE]), [1], False, True),
        (pa.concat_arrays([_SOURCE, _TABLE]), [5], False, False),
    ],
)
def test_files_of_other_rows_need_not_be_unpacked(
    origins: pa.Array, files: list[int], source: bool, expected: bool
) -> None:
    assert may_come_from(pack(origins), files, source=source) is expected


def test_rows_of_files() -> None:
    origins = pa.concat_arrays([_SOURCE, _TABLE, pa.array([UNKNOWN], pa.int64())])
    assert rows_of_files(origins, [2, 3]).to_pylist() == [2, 3]
    assert rows_of_files(origins, [4]).to_pylist() == [4]
    assert rows_of_files(origins, []).to_pylist() == []
