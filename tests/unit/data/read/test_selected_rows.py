"""Files of which only the rows that a deletion vector names are read, less those of another one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from delta_pyds.columnar.evaluate import matches
from delta_pyds.data.read.deletion_vector import DeletedRows, SelectedRows
from delta_pyds.errors import DeletionVectorError, FileNotFoundInStorageError
from delta_pyds.expr.nodes import Column, Comparison, Literal
from delta_pyds.expr.stats_rewrite import skipping
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import LONG, STRING, StructType
from delta_pyds.tasks.scan_state import RowIdColumns, ScanFile
from tests.support.bitmaps import write_vectors
from tests.support.scans import Decoded, row_groups, scan, state_of, struct, write

NUMBERS = struct(("a", LONG), ("s", STRING))


def _numbers(tmp_path: Path, rows: int = 1000, **options: Any) -> ScanFile:
    table = pa.table({"a": pa.array(range(rows), pa.int64()), "s": [f"v{i}" for i in range(rows)]})
    return write(tmp_path / "part-0.parquet", table, **options)


def _vector(tmp_path: Path, positions: list[int], storage: str = "u") -> DeletionVectorDescriptor:
    return msgspec.convert(write_vectors(tmp_path, [positions], storage=storage)[0], DeletionVectorDescriptor)


def _select(tmp_path: Path, file: ScanFile, selected: list[int], deleted: list[int] | None = None) -> ScanFile:
    return dataclasses.replace(
        file,
        selected=_vector(tmp_path, selected, "i"),
        deletion_vector=None if deleted is None else _vector(tmp_path, deleted),
    )


@pytest.mark.parametrize(
    "positions", [[], [0], [999], list(range(0, 1000, 3)), list(range(300, 600)), list(range(1000))]
)
@pytest.mark.parametrize("deleted", [None, [], [0, 999], list(range(0, 1000, 2)), list(range(1000))])
@pytest.mark.parametrize("options", [{}, {"row_group_size": 77}], ids=str)
def test_only_selected_rows_that_are_not_deleted_come_back(
    tmp_path: Path, positions: list[int], deleted: list[int] | None, options: dict[str, Any]
) -> None:
    file = _select(tmp_path, _numbers(tmp_path, **options), positions, deleted)
    got = scan(state_of(tmp_path, NUMBERS, row_position=True, batch_rows=150), file)
    wanted = sorted(set(positions) - set(deleted or []))
    assert got.column("a").to_pylist() == wanted
    assert got.column("s").to_pylist() == [f"v{i}" for i in wanted]
    assert got.column("_row_position").to_pylist() == wanted


def test_what_a_deletion_vector_adds_to_another_and_takes_back_from_it(tmp_path: Path) -> None:
    file = _numbers(tmp_path, 10)
    before, after = [1, 2, 3], [2, 3, 4, 5]
    deleted = scan(state_of(tmp_path, NUMBERS), _select(tmp_path, file, after, before))
    restored = scan(state_of(tmp_path, NUMBERS), _select(tmp_path, file, before, after))
    assert (deleted.column("a").to_pylist(), restored.column("a").to_pylist()) == ([4, 5], [1])


def test_row_groups_without_a_selected_row_are_not_decoded(tmp_path: Path, decoded: Decoded) -> None:
    numbers = _numbers(tmp_path, 600, row_group_size=100)
    file = _select(tmp_path, numbers, [5, 150, 399, 400], [150])
    assert scan(state_of(tmp_path, NUMBERS), file).column("a").to_pylist() == [5, 399, 400]
    assert row_groups(decoded) == [0, 3, 4]


def test_a_file_of_which_nothing_is_left_is_not_decoded(tmp_path: Path, decoded: Decoded) -> None:
    file = _select(tmp_path, _numbers(tmp_path), [1, 2], [2, 1, 7])
    assert scan(state_of(tmp_path, NUMBERS), file).num_rows == 0
    assert decoded == []


def test_no_columns_still_counts_selected_rows(tmp_path: Path) -> None:
    file = _select(tmp_path, _numbers(tmp_path, row_group_size=300), [0, 1, 300, 999], [1])
    state = state_of(tmp_path, StructType(()), batch_rows=256, row_position=True)
    assert scan(state, file).column("_row_position").to_pylist() == [0, 300, 999]


def test_row_ids_of_selected_rows_count_from_the_start_of_the_file(tmp_path: Path) -> None:
    file = _select(tmp_path, _numbers(tmp_path, row_group_size=100), [3, 250])
    based = dataclasses.replace(file, base_row_id=1000, default_row_commit_version=4)
    got = scan(state_of(tmp_path, struct(("a", LONG)), row_ids=RowIdColumns(None, None)), based)
    assert got.to_pylist() == [
        {"a": 3, "_row_id": 1003, "_row_commit_version": 4},
        {"a": 250, "_row_id": 1250, "_row_commit_version": 4},
    ]


@pytest.mark.parametrize("skips", [True, False])
def test_predicate_and_selection_must_both_hold(tmp_path: Path, decoded: Decoded, skips: bool) -> None:
    numbers = _numbers(tmp_path, row_group_size=100)
    predicate = Comparison(">=", Column(("a",), LONG), Literal(450, LONG))
    state = state_of(
        tmp_path,
        struct(("s", STRING)),
        inputs=NUMBERS,
        predicate=predicate,
        skip=skipping(predicate, ()) if skips else None,
        row_position=True,
    )
    got = scan(state, _select(tmp_path, numbers, [10, 440, 460, 470, 910], [470]))
    assert got.column("s").to_pylist() == ["v460", "v910"]
    assert got.column("_row_position").to_pylist() == [460, 910]
    assert sorted(set(row_groups(decoded))) == ([4, 9] if skips else [0, 4, 9])


def test_predicate_is_not_evaluated_where_nothing_is_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def remember(predicate: Any, columns: Any, num_rows: int) -> Any:
        lengths.append(num_rows)
        return matches(predicate, columns, num_rows)

    monkeypatch.setattr("delta_pyds.data.read.reader.matches", remember)
    predicate = Comparison(">", Column(("a",), LONG), Literal(0, LONG))
    state = state_of(tmp_path, NUMBERS, predicate=predicate, batch_rows=100)
    file = _select(tmp_path, _numbers(tmp_path), [120, 130, 999])
    assert scan(state, file).column("a").to_pylist() == [120, 130, 999]
    assert lengths == [100, 100]


def test_selection_of_another_file_is_refused(tmp_path: Path) -> None:
    numbers = _numbers(tmp_path, 10)
    for file in (_select(tmp_path, numbers, [1, 10]), _select(tmp_path, numbers, [1], [10])):
        with pytest.raises(DeletionVectorError, match=r"part-0\.parquet") as caught:
            scan(state_of(tmp_path, NUMBERS), file)
        assert caught.value.code == "DELTA_DELETION_VECTOR_INVALID_ROW_INDEX"


def test_selection_that_is_gone_is_refused_and_not_read_as_every_row(tmp_path: Path) -> None:
    file = dataclasses.replace(_numbers(tmp_path, 10), selected=_vector(tmp_path, [1]))
    (vector,) = tmp_path.glob("deletion_vector_*.bin")
    content = vector.read_bytes()
    vector.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DeletionVectorError) as damaged:
        scan(state_of(tmp_path, NUMBERS), file)
    assert damaged.value.code == "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"
    vector.unlink()
    with pytest.raises(FileNotFoundInStorageError, match=vector.name):
        scan(state_of(tmp_path, NUMBERS), file)


@pytest.mark.parametrize("density", [1, 2, 3, 50])
def test_masks_of_sparse_and_dense_selections(density: int) -> None:
    rows = 200_000
    positions = BitMap64(range(0, rows, density)) - BitMap64(range(70_000, 70_100))
    selected = SelectedRows(positions)
    for start, length in ((0, rows), (65_535, 2), (69_950, 60), (70_000, 100), (131_072, 65_536), (7, 0)):
        mask = selected.live(start, length)
        assert mask.to_pylist() == [i in positions for i in range(start, start + length)]
        assert mask.true_count == selected.live_in(start, length)


def test_a_selection_in_a_huge_file_does_not_cost_what_the_file_costs() -> None:
    rows = 1 << 40
    selected = SelectedRows.of(
        DeletedRows(BitMap64([7, rows - 1]), "one vector"), DeletedRows(BitMap64([7]), "another vector")
    )
    assert list(selected.positions) == [rows - 1]
    assert selected.live_in(0, rows) == 1
    assert selected.live_in(0, rows - 1) == 0
    assert selected.live(rows - 3, 3).to_pylist() == [False, False, True]
