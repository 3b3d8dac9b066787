from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.columnar.parquet_footer import ParquetFooter, open_parquet
from delta_pyds.data.read.row_groups import RowGroup, row_groups_in, runs
from tests.support.parquet_footers import (
    COMPRESSED,
    DATA_PAGE,
    DICTIONARY_PAGE,
    I64,
    META_DATA,
    chunks,
    read_footer,
    with_footer,
)

# of each column: where its first page and its dictionary begin, and its compressed size
_PLACES = [(24, 4, 100), (104, None, 100), (204, 0, 200), (304, None, 0), (999, None, 50), (1049, None, 0)]


def _file() -> pa.BufferReader:
    """A file with the footer of three row groups of ten rows and two columns."""
    file = io.BytesIO()
    pq.write_table(pa.table({"a": range(30), "b": range(30)}), file, row_group_size=10)
    footer = read_footer(file.getvalue())
    for chunk, (data_page, dictionary, size) in zip(chunks(footer), _PLACES, strict=True):
        meta = chunk[META_DATA][1]
        meta[DATA_PAGE], meta[COMPRESSED] = [I64, data_page], [I64, size]
        del meta[DICTIONARY_PAGE]
        if dictionary is not None:
            meta[DICTIONARY_PAGE] = [I64, dictionary]
    return pa.BufferReader(with_footer(file.getvalue(), footer))


FILE = _file()
METADATA = open_parquet(FILE).metadata
FOOTER = ParquetFooter(METADATA, FILE)


@pytest.mark.parametrize("cut", range(1, 500))
def test_each_row_group_is_in_one_of_two_splits(cut: int) -> None:
    first, second = (row_groups_in(METADATA, FOOTER, *split, 500) for split in ((0, cut), (cut, 500 - cut)))
    assert [g.index for g in first + second] == [0, 1, 2]
    # the middles: 4 + 100, 204 + 100, and at the end for what claims to lie after it
    assert len(first) == (cut > 104) + (cut > 304) + (cut > 499)


def test_first_rows_count_from_the_start_of_the_file() -> None:
    assert row_groups_in(METADATA, FOOTER, 200, None, 500) == [RowGroup(1, 10, 10), RowGroup(2, 20, 10)]


def test_runs_join_neighbours_up_to_the_limit() -> None:
    groups = [RowGroup(i, 10 * i, 10) for i in (0, 1, 2, 4, 5)] + [RowGroup(6, 60, 1000)]
    assert [[g.index for g in run] for run in runs(groups, 20)] == [[0, 1], [2], [4, 5], [6]]
    assert list(runs([], 20)) == []
