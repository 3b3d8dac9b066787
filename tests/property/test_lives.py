"""Lives of tables that a draw seldom has: what was turned on, off, and comes back by a restore."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.expressions import Column, Literal, call
from tests.support.row_model.harness import Harness
from tests.support.row_model.steps import Append, Delete, Layout, Step, Update
from tests.support.row_model.upkeep import (
    AddColumn,
    Clone,
    Cluster,
    Convert,
    DropColumn,
    DropFeature,
    Optimize,
    Purge,
    RenameColumn,
    Restore,
    Turn,
    Vacuum,
    ZOrder,
)

ALL = Layout(deletion_vectors=True, change_feed=True, mapped=True, row_tracking=True)


def rows(*keys: int, n: int = 1) -> tuple[dict[str, Any], ...]:
    return tuple({"k": k, "n": n, "s": "a", "p": "xyz"[k % 2], "z": k} for k in keys)


def append(*keys: int, n: int = 1) -> Append:
    """Two files, of each partition."""
    return Append((rows(*keys[:2], n=n), rows(*keys[2:], n=n)))


def update(key: int) -> Update:
    return Update(_is(key), (("n", Literal(8)),))


def delete(key: int) -> Delete:
    return Delete(_is(key))


def _is(key: int) -> Any:
    return call("({0} = {1})", Column("k"), Literal(key))


LIVES: dict[str, tuple[Layout, list[Step]]] = {
    "row ids dropped, and back": (
        Layout(row_tracking=True, deletion_vectors=True),
        [update(1), DropFeature("rowTracking"), Restore(1), append(10, 11), update(10), update(2), Optimize(),
         Restore(3), Restore(2)],
    ),
    "row ids dropped, files written, and back": (
        Layout(row_tracking=True),
        [update(1), DropFeature("rowTracking"), append(7, 8, 9), update(2), Restore(3), append(20, 21), Optimize(),
         Turn("row_tracking", True), update(20), Restore(3), Vacuum(), append(22, 23)],
    ),
    "row ids turned on twice": (
        Layout(deletion_vectors=True),
        [delete(1), Turn("row_tracking", True), update(2), Restore(2), append(10, 11), Restore(2), append(12, 13),
         update(12), Restore(1), Turn("row_tracking", True), update(4), Optimize()],
    ),
    "row ids turned off and on": (
        Layout(row_tracking=True, change_feed=True),
        [update(1), Turn("row_tracking", False), append(7, 8), update(7), update(2), Turn("row_tracking", True),
         Optimize(), update(7), Restore(5), update(4), append(30)],
    ),
    "columns come and go": (
        ALL,
        [AddColumn(), append(10, 11), DropColumn(), AddColumn(), append(12), Restore(3), update(10), Optimize(),
         ZOrder(("n", "s")), Restore(4), append(13), RenameColumn(), append(14), Restore(9), AddColumn(), append(15),
         Purge()],
    ),
    "mapping turned on and off": (
        Layout(change_feed=True, row_tracking=True),
        [AddColumn(), Turn("mapped", True), RenameColumn(), Cluster(("k", "n")), append(10, 11), Turn("mapped", False),
         update(10), Optimize(), Restore(4), append(12), Optimize(), Restore(9), append(13), Optimize()],
    ),
    "vectors turned on and off": (
        Layout(deletion_vectors=True, change_feed=True, partitioned=True),
        [delete(1), Turn("deletion_vectors", False), delete(2), Restore(2), Purge(), Vacuum(lite=True), update(3),
         delete(4), Vacuum(), update(5), Restore(1), Vacuum(lite=True)],
    ),
    "a constraint dropped, and back": (
        Layout(constrained=True, mapped=True),
        [DropFeature("checkConstraints"), append(50, n=7), Restore(2), append(51, n=7), append(10), Restore(2),
         Optimize("x")],
    ),
    "clustering, and back": (
        ALL,
        [Cluster(("k",)), append(10, 11), Optimize(), Restore(9), Optimize(), Restore(3), append(12, 13), Cluster(()),
         Optimize(), Cluster(("n", "s")), delete(10), Optimize(), Vacuum(), append(14), Optimize(), AddColumn(),
         RenameColumn(), Restore(3), Optimize()],
    ),
    "clones of clones": (
        ALL,
        [update(1), delete(2), Clone(1), append(10, 11), update(3), Optimize(), Clone(0), DropColumn(), Restore(1),
         AddColumn(), append(12), Vacuum(), delete(10), Turn("row_tracking", False), Clone(0),
         Turn("row_tracking", True), Cluster(("k",)), Purge(), Clone(2), Turn("mapped", False), append(13), Vacuum()],
    ),
    "clones and vectors": (
        Layout(partitioned=True, deletion_vectors=True, change_feed=True, constrained=True),
        [delete(1), Clone(0), delete(2), Clone(0), Restore(0), Purge(), Vacuum(), delete(3), Clone(1),
         Turn("deletion_vectors", False), update(4), append(7, 8, n=7), ZOrder(("n",)), Restore(9)],
    ),
    "converted": (
        Layout(partitioned=True, mapped=True, deletion_vectors=True, row_tracking=True),
        [append(10), AddColumn(), delete(1), Convert(), append(11, 12), Turn("row_tracking", True), update(2),
         Turn("mapped", True), AddColumn(), Clone(0), RenameColumn(), append(13), Convert(), Optimize(), Vacuum(),
         update(3), Turn("change_feed", True), delete(4)],
    ),
    "partitions": (
        Layout(partitioned=True, deletion_vectors=True, change_feed=True, mapped=True, row_tracking=True),
        [Optimize("x"), append(10, 11, 12), ZOrder(("n",)), delete(10), Purge(), Cluster(("k",)), Optimize("y"),
         update(2), Vacuum(), update(4), Restore(1), Optimize()],
    ),
}  # fmt: skip


@pytest.mark.one_case_in(5)
@pytest.mark.parametrize("name", LIVES)
def test_a_life(tmp_path: Path, name: str) -> None:
    layout, steps = LIVES[name]
    harness = Harness(tmp_path / "t", layout, (rows(1, 2, 3), rows(4, 5, 6)), CoreEngine())
    for step in steps:
        harness.run(step)
    harness.finish()
