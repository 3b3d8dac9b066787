from __future__ import annotations

from dataclasses import dataclass

import pytest

from delta_pyds.data.row_groups import RowGroup, row_groups_in, runs


@dataclass
class _Column:
    data_page_offset: int
    total_compressed_size: int
    dictionary_page_offset: int | None = None


@dataclass
class _Group:
    columns: list[_Column]
    num_rows: int = 10

    @property
    def num_columns(self) -> int:
        return len(self.columns)

    def column(self, i: int) -> _Column:
        return self.columns[i]


@dataclass
class _Footer:
    groups: list[_Group]

    @property
    def num_row_groups(self) -> int:
        return len(self.groups)

    def row_group(self, i: int) -> _Group:
        return self.groups[i]


FOOTER = _Footer(
    [_Group([_Column(24, 100, 4), _Column(104, 100)]), _Group([_Column(204, 200, 0)]), _Group([_Column(999, 50)])]
)


@pytest.mark.parametrize("cut", range(1, 500))
def test_each_row_group_is_in_one_of_two_splits(cut: int) -> None:
    first, second = (row_groups_in(FOOTER, *split, 500) for split in ((0, cut), (cut, 500 - cut)))
    assert [g.index for g in first + second] == [0, 1, 2]
    # the middles: 4 + 100, 204 + 100, and at the end for what claims to lie behind it
    assert len(first) == (cut > 104) + (cut > 304) + (cut > 499)


def test_first_rows_count_from_the_start_of_the_file() -> None:
    assert row_groups_in(FOOTER, 200, None, 500) == [RowGroup(1, 10, 10), RowGroup(2, 20, 10)]


def test_runs_join_neighbours_up_to_the_limit() -> None:
    groups = [RowGroup(i, 10 * i, 10) for i in (0, 1, 2, 4, 5)] + [RowGroup(6, 60, 1000)]
    assert [[g.index for g in run] for run in runs(groups, 20)] == [[0, 1], [2], [4, 5], [6]]
    assert list(runs([], 20)) == []
