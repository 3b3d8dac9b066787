"""Any history's changes, applied to the rows before them, give the rows after them."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.change_feed import ENABLED, applied, bag, cdc_file, change_rows, plan
from tests.support.sampling import examples
from tests.support.table_builder import Action, TableBuilder

KINDS = ("append", "delete", "update", "overwrite", "rewrite", "restore", "mixed")
SCHEMA = {"id": "long", "v": "string", "p": "string"}


def key_of(add: Action) -> str:
    return repr((add["add"]["path"], add["add"].get("deletionVector")))


class History:
    """A table that random operations change. Every state that it had can be had back."""

    def __init__(self, path: Path, *, partitioned: bool, mapped: bool, data: st.DataObject) -> None:
        properties = {**ENABLED, "delta.enableDeletionVectors": "true"}
        properties |= {"delta.columnMapping.mode": "name"} if mapped else {}
        self.table = TableBuilder(path, SCHEMA, ["p"] if partitioned else [], properties)
        self.table.create()
        self.data = data
        self.numbers = itertools.count()
        self.content: dict[str, list[dict[str, Any]]] = {}
        self.dead: dict[str, set[int]] = {}

    def run(self, kind: str) -> None:
        getattr(self, kind)()

    def rows(self, count: int) -> list[dict[str, Any]]:
        # few values, so that rows are equal and a multiset is what counts
        return [{"id": next(self.numbers) % 7, "v": f"v{i % 2}", "p": "x"} for i in range(count)]

    def new_file(self, rows: list[dict[str, Any]], **options: Any) -> Action:
        partition = {"p": "x"} if self.table.partition_columns else None
        add = self.table.write_file(rows, partition, stats=self.data.draw(st.booleans()), **options)
        self.content[add["add"]["path"]] = rows
        return add

    def live(self, add: Action) -> list[dict[str, Any]]:
        dead = self.dead.get(key_of(add), set())
        return [row for i, row in enumerate(self.content[add["add"]["path"]]) if i not in dead]

    def some(self) -> list[Action]:
        live = self.table.active()
        return (
            self.data.draw(st.lists(st.sampled_from(live), max_size=3, unique_by=lambda a: a["add"]["path"]))
            if live
            else []
        )

    def append(self) -> None:
        self.table.commit([self.new_file(self.rows(self.data.draw(st.integers(1, 5))))])

    def marked(self, add: Action) -> list[Action]:
        """The file with more rows deleted, or removed as a whole."""
        count = len(self.content[add["add"]["path"]])
        positions = self.data.draw(st.sets(st.integers(0, count - 1)))
        if len(positions) == count:
            return [self.table.remove(add)]
        if not positions:
            return []
        removed, added = self.table.delete_rows(add, positions, storage=self.data.draw(st.sampled_from("ui")))
        self.dead[key_of(added)] = self.dead.get(key_of(add), set()) | positions
        return [removed, added]

    def delete(self) -> None:
        self.table.commit([action for add in self.some() for action in self.marked(add)])

    def update(self) -> None:
        """Files rewritten, or rows of them marked as deleted and written again; change files tell."""
        actions: list[Action] = []
        changes: list[dict[str, Any]] = []
        for add in self.some():
            old = self.live(add)
            if not old:
                continue
            chosen = self.data.draw(st.sets(st.integers(0, len(old) - 1), min_size=1))
            new = [{**row, "v": "new"} if i in chosen else row for i, row in enumerate(old)]
            actions += [self.table.remove(add), self.new_file(new)]
            for i in chosen:
                changes += [
                    {**old[i], "_change_type": "update_preimage"},
                    {**new[i], "_change_type": "update_postimage"},
                ]
        if changes:
            partition = {"p": "x"} if self.table.partition_columns else None
            actions.append(cdc_file(self.table, changes, partition_values=partition))
        self.table.commit(actions)

    def overwrite(self) -> None:
        self.table.commit([*map(self.table.remove, self.table.active()), self.new_file(self.rows(2))])

    def rewrite(self) -> None:
        """Compaction: rows move, and none changes."""
        adds = self.some()
        rows = [row for add in adds for row in self.live(add)]
        if rows:
            removes = [self.table.remove(add, dataChange=False) for add in adds]
            self.table.commit([*removes, self.new_file(rows, dataChange=False)])

    def restore(self) -> None:
        """Files and deletion vectors are those of an earlier version."""

        def keyed(adds: list[Action]) -> dict[str, Action]:
            return {key_of(add): add for add in adds}

        now = keyed(self.table.active())
        then = keyed(self.table.active(self.data.draw(st.integers(0, self.table.version))))
        gone = [self.table.remove(now[key]) for key in now if key not in then]
        # a file that a compaction wrote comes back as data
        back = [{"add": {**then[key]["add"], "dataChange": True}} for key in then if key not in now]
        self.table.commit([*gone, *back], operation="RESTORE")

    def mixed(self) -> None:
        """All at once: vectors, files that go and files that come."""
        actions = [action for add in self.some() for action in self.marked(add)]
        self.table.commit([self.new_file(self.rows(3)), *actions])


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("partitioned", [False, True])
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_the_changes_of_a_range_lead_from_its_first_rows_to_its_last(
    partitioned: bool, mapped: bool, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t"
        history = History(path, partitioned=partitioned, mapped=mapped, data=data)
        for kind in data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=8)):
            history.run(kind)
        table = history.table
        first = data.draw(st.integers(0, table.version))
        last = data.draw(st.integers(first, table.version))
        before = table.expected_rows(first - 1) if first else []
        changes = change_rows(path, first, last)
        assert applied(before, changes) == bag(table.expected_rows(last))
        # choosing rows is the same before and after reading
        number, kind = data.draw(st.integers(0, 6)), data.draw(st.sampled_from(["insert", "delete", "update_preimage"]))
        choices: dict[str, Callable[[dict[str, Any]], bool]] = {
            f"id = {number}": lambda r: r["id"] == number,
            f"_change_type = '{kind}'": lambda r: r["_change_type"] == kind,
            f"id > {number} AND _change_type <> '{kind}'": lambda r: r["id"] > number and r["_change_type"] != kind,
        }
        for where, wanted in choices.items():
            assert bag(change_rows(path, first, last, where=where)) == bag(r for r in changes if wanted(r)), where
        # another process plans the same files
        planned = [batch.to_pylist() for batch in plan(path, first, last).batches()]
        assert planned == [batch.to_pylist() for batch in plan(path, first, last).batches()]
