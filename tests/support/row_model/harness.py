"""A table beside its model: an engine takes steps, and after each of them table and model must be alike.

What is read is read by the core alone, whichever engine changes rows.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import unquote

import pyarrow as pa

from delta_pyds import checkpoint, verify
from delta_pyds.data.read.reader import output_schema, read
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.change_feed import applied, change_rows, with_updates
from tests.support.change_feed import bag as feed_bag
from tests.support.commits import actions
from tests.support.row_model.core_upkeep import keep
from tests.support.row_model.model import BEFORE, DELETE, INSERT, Effect, Model, Past, bag, key_of, rows_to_write
from tests.support.row_model.steps import (
    Append,
    Checkpoint,
    Delete,
    Layout,
    Merge,
    Overwrite,
    Step,
    Update,
    Upkeep,
    schema_of,
)
from tests.support.row_model.upkeep import DropFeature, Move, Restore, Vacuum
from tests.support.table_writes import write_rows

Counts = tuple[int | None, int | None, int | None]


class Engine(Protocol):
    """Whoever changes rows. Returns: rows updated, deleted and inserted, as far as it tells.

    ``counts_source``: its metric numSourceRows is what it says (the reference counts each pass over the source).
    """

    counts_source: bool

    def delete(self, path: Path, step: Delete) -> Counts: ...
    def update(self, path: Path, step: Update) -> Counts: ...
    def merge(self, path: Path, step: Merge, columns: Sequence[str]) -> Counts: ...


@runtime_checkable
class Overwriter(Protocol):
    """An engine that overwrites rows itself. ``columns``, ``tasks``: as of ``rows_to_write``."""

    def overwrite(
        self, path: Path, step: Overwrite, columns: Sequence[str], tasks: Sequence[Sequence[Mapping[str, Any]]]
    ) -> None: ...


class RowIds:
    """``used``: all ids that rows of one table have had."""

    def __init__(self) -> None:
        self.used: set[int] = set()
        self._has_foreign_versions = False

    def forget(self, model: Model) -> None:
        """Only those of rows that are there count: the table lost the mark of those that it gave, or has none yet."""
        self.used = {row.row_id for row in model.rows if row.row_id is not None}

    def check(
        self,
        model: Model,
        rows: Sequence[Mapping[str, Any]],
        version: int,
        *,
        any_new: bool = False,
        any_version: bool = False,
    ) -> None:
        """A row keeps its id while it is there, and its commit version while it is not changed; new ids are new.

        The model learns what it does not know yet. ``any_new``: ids that it does not know may be old. ``any_version``:
        versions that it does not know may be any, as in a clone, whose files say of some rows what they were elsewhere.
        """
        ids = [row["_row_id"] for row in rows]
        assert None not in ids and len(set(ids)) == len(ids), "row ids are not unique."
        there = defaultdict(dict)
        for row in rows:
            there[key_of(row, model.columns)][row["_row_id"]] = row["_row_commit_version"]
        self._has_foreign_versions |= any_version
        highest = max(self.used, default=-1)
        for row in sorted(model.rows, key=lambda r: r.row_id is None):
            found = there[key_of(row.values, model.columns)]
            if row.row_id is not None:
                assert row.row_id in found, f"{row.values} had the row id {row.row_id}; now these: {list(found)}"
                committed = found.pop(row.row_id)
            else:
                row.row_id, committed = found.popitem()
                assert any_new or row.row_id > highest, f"the row id {row.row_id} of {row.values} was another row's."
            expected = version if row.commit_version is None else row.commit_version
            if any_new:
                assert committed <= version or self._has_foreign_versions
            if any_new or any_version:
                expected = committed
            assert committed == expected, f"{row.values} is of version {committed}, not of {expected}"
            row.commit_version = committed
        self.used.update(ids)


@dataclass(frozen=True)
class _Begun:
    """The effect that a step must have on a version, and the rows of its files."""

    effect: Effect
    version: int
    files: Mapping[str, list[dict[str, Any]]]


class Harness:
    """One table and its model."""

    def __init__(
        self, path: Path, layout: Layout, first: Sequence[Sequence[Mapping[str, Any]]], engine: Engine
    ) -> None:
        self.path, self.engine = path, engine
        self.model = Model(layout)
        self.history: dict[int, Past] = {}
        self._row_ids = RowIds()
        # from which rows the change feed goes on without a break
        self._feed_from = self.model.now()
        create(path, self.model)
        self.check()
        self.run(Append(tuple(map(tuple, first))))

    @property
    def layout(self) -> Layout:
        """Of the table as it is now."""
        return self.model.layout

    def run(self, step: Step) -> None:
        """Take a step, if it means something. Raises: AssertionError where the table is not as the model afterwards."""
        begun = self._begun(step)
        if not begun.effect.impossible:
            self._end(step, lambda: begun, lambda: self._take(step))

    def race(
        self, step: Step, winners: Sequence[Sequence[Step]], engine: Callable[[Callable[[], None]], Engine]
    ) -> bool:
        """Plan a command, let other steps come first, and end it.

        ``engine``: makes an engine that calls the function at least once after its plan and before its commit. Each
        call takes the next of ``winners``, if there is one.
        Returns: whether there was a race: not if the command is refused or changes nothing before the other steps.
        """
        effect = self.model.effect(step)
        if effect.impossible or effect.errors or not effect.changes:
            return False
        begun: list[_Begun] = []
        others, waiting = self.engine, list(winners)

        def meanwhile() -> None:
            self.engine = others
            for winner in waiting.pop(0) if waiting else ():
                self.run(winner)
            begun.append(self._begun(step))

        self.engine = engine(meanwhile)
        try:
            self._end(step, lambda: begun[-1], lambda: self._take(step), raced=True)
        finally:
            self.engine = others
        return True

    def _begun(self, step: Step) -> _Begun:
        version = load_snapshot(str(self.path)).version
        files = file_rows(self.path) if isinstance(step, (Delete, Update, Merge)) else {}
        return _Begun(self.model.effect(step), version, files)

    def _end(self, step: Step, begun: Callable[[], _Begun], take: Callable[[], Counts], *, raced: bool = False) -> None:
        """``begun``: the effect on the table that the step's commit follows; known when ``take`` ended."""
        try:
            counts = take()
        except Exception as error:
            effect, before = begun().effect, begun().version
            if not effect.errors:
                raise
            code = code_of(error)
            assert code in effect.errors, f"{step} was refused with {error}"
            assert load_snapshot(str(self.path)).version == before, "what was refused has committed."
            self.check()
            return
        effect, before, files = begun().effect, begun().version, begun().files
        assert not effect.errors, f"{step} was not refused, though {effect.errors}"
        was = self.model.now()
        self.model.take(effect)
        version = load_snapshot(str(self.path)).version
        assert version in (before, before + 1) or isinstance(step, Upkeep)
        for told, known in zip(counts, effect.counts, strict=True):
            assert told in (None, known), f"{step} told of {counts}, which are {effect.counts}"
        if effect.forgets:
            self.history.clear()
        if isinstance(step, DropFeature | Move):
            self._row_ids.forget(self.model)
        self.check(new_ids=effect.new_ids, new_versions=effect.new_versions)
        one_feed = not effect.forgets and same_feed(was, self.model.now())
        if not one_feed:
            self._feed_from = self.model.now()
        if isinstance(step, Upkeep):
            self._check_upkeep(step, was, version, one_feed=one_feed)
        elif version == before:
            assert not effect.changes, f"{step} committed nothing"
        else:
            self._check_commit(step, effect, version, files, raced=raced)

    def _take(self, step: Step) -> Counts:
        if isinstance(step, Delete):
            return self.engine.delete(self.path, step)
        if isinstance(step, Update):
            return self.engine.update(self.path, step)
        if isinstance(step, Merge):
            return self.engine.merge(self.path, step, self.model.columns)
        if isinstance(step, Upkeep):
            time.sleep(0.005)  # a vacuum of all that is old needs files that are older than it
            self.path = keep(self.path, step, self.model)
            return None, None, None
        if isinstance(step, Overwrite) and isinstance(self.engine, Overwriter):
            self.engine.overwrite(self.path, step, *rows_to_write(self.model, step))
            return None, None, None
        take_as_core(self.path, self.model, step)
        return None, None, None

    # --- what must hold

    def check(self, *, new_ids: bool = False, new_versions: bool = False) -> None:
        """Rows, row ids, and every rule of the protocol."""
        model = self.model
        rows = read_all(self.path, row_ids=self.layout.row_tracking)
        assert bag(rows, model.columns) == bag(model.values(), model.columns)
        assert not rows or {name for name in rows[0] if not name.startswith("_")} == set(model.columns)
        model.version = load_snapshot(str(self.path)).version
        if self.layout.row_tracking:
            self._row_ids.check(self.model, rows, model.version, any_new=new_ids, any_version=new_versions)
        report = verify(str(self.path))
        assert report.findings == (), str(report)
        self.history[model.version] = model.now()

    def _check_upkeep(self, step: Upkeep, was: Past, version: int, *, one_feed: bool) -> None:
        """The change feed is told nothing, but by a restore what makes the rows; a layout changes no data."""
        versions = range(was.version + 1, version + 1)
        if one_feed:
            told = [row for one in versions for row in change_rows(self.path, one, one)]
            if not isinstance(step, Restore):
                assert told == [], f"{step} told the change feed {told}"
            else:
                assert applied(_rows_of(was, self.model.columns), told) == feed_bag(
                    self.model.values(), sorted(self.model.columns)
                )
        if not isinstance(step, Restore):
            told_files = [part for one in versions for action in actions(self.path, one) for part in action.values()]
            assert not any(part.get("dataChange") for part in told_files), f"{step} says that it changed data."
        if isinstance(step, Vacuum) and not step.lite:
            assert data_files(self.path) <= needed_files(self.path), "a vacuum left files that no version needs."

    def _check_commit(
        self,
        step: Step,
        effect: Effect,
        version: int,
        files: Mapping[str, list[dict[str, Any]]],
        *,
        raced: bool = False,
    ) -> None:
        columns = effect.columns
        if self.layout.change_feed:
            told = change_rows(self.path, version, version)
            assert {row["_commit_version"] for row in told} <= {version}
            names = ["_change_type", *columns]
            wanted = [{"_change_type": kind, **values} for kind, values in effect.changes]
            assert bag(told, names) == bag(wanted, names)
        else:
            self._check_computed(effect, version)
        self._check_keyed(version, version)
        found = actions(self.path, version)
        info = next(a["commitInfo"] for a in found if "commitInfo" in a)
        adds = [a["add"] for a in found if "add" in a]
        assert self.layout.deletion_vectors or not any(add.get("deletionVector") for add in adds)
        if isinstance(step, (Delete, Update, Merge)):
            self._check_files(step, effect, found, files, raced=raced)
            check_metrics(step, effect, info, self.engine.counts_source)

    def _check_keyed(self, first: int, last: int, **choice: Any) -> None:
        """Updates of keys are pairs of deletes and inserts, whether keys are unique or not."""
        told = change_rows(self.path, first, last, **choice)
        for count in (1, 2):
            keys = list(self.model.columns)[:count]
            paired = change_rows(self.path, first, last, keys=keys, **choice)
            assert feed_bag(paired) == feed_bag(with_updates(told, keys)), keys

    def _check_computed(self, effect: Effect, version: int) -> None:
        """Changes that were not recorded: all of them by row ids, and what remains of them by values."""
        names = ["_change_type", *effect.columns]
        if self.layout.row_tracking:
            wanted = [{"_change_type": kind, **values} for kind, values in effect.changes]
            assert bag(change_rows(self.path, version, version, compute="rowIds"), names) == bag(wanted, names)
        gone = bag([values for kind, values in effect.changes if kind in (DELETE, BEFORE)], effect.columns)
        came = bag([values for kind, values in effect.changes if kind not in (DELETE, BEFORE)], effect.columns)
        told = change_rows(self.path, version, version, compute="values")
        assert bag([row for row in told if row["_change_type"] == DELETE], effect.columns) == gone - came
        assert bag([row for row in told if row["_change_type"] == INSERT], effect.columns) == came - gone
        assert {row["_change_type"] for row in told} <= {DELETE, INSERT}

    def _check_files(
        self, step: Step, effect: Effect, found: list[Any], files: Mapping[str, Any], *, raced: bool
    ) -> None:
        """Only files go or are marked that hold a row that changes; a vector never rewrites what it can mark."""
        gone = [a["remove"]["path"] for a in found if "remove" in a]
        changed = bag((values for kind, values in effect.changes if kind in (DELETE, BEFORE)), effect.columns)
        for path in gone:
            assert any(key_of(row, effect.columns) in changed for row in files[path]), f"{path} did not have to go."
        adds = [a["add"] for a in found if "add" in a]
        assert len({add["path"] for add in adds}) == len(adds) and len(set(gone)) == len(gone)
        change_files = [a["cdc"] for a in found if "cdc" in a]
        assert self.layout.change_feed or not change_files
        if self.layout.deletion_vectors:
            assert not (isinstance(step, Delete) and change_files), "a delete by vectors needs no change files."
            for add in adds:
                # a command that lost a race may mark rows of its own files
                assert (add["path"] in files) == bool(add.get("deletionVector")) or (raced and add["path"] not in files)
            for path in set(gone) - {add["path"] for add in adds}:
                assert all(key_of(row, effect.columns) in changed for row in files[path]), f"{path} was rewritten."

    def finish(self) -> None:
        """Every version reads as it did, and the change feed from the beginning makes the rows."""
        for version, past in self.history.items():
            found = read_all(self.path, version, row_ids=past.layout.row_tracking)
            names = [*past.columns, *(("_row_id", "_row_commit_version") if past.layout.row_tracking else ())]
            rows = [{**r.values, "_row_id": r.row_id, "_row_commit_version": r.commit_version} for r in past.rows]
            assert bag(found, names) == bag(rows, names), f"version {version} reads otherwise."
        names = self.model.columns
        begun = self._feed_from
        later = change_rows(self.path, begun.version + 1) if begun.version < self.model.version else []
        old, new = _rows_of(begun, names), self.model.values()
        assert applied(old, later) == feed_bag(new, sorted(names))
        if begun.version < self.model.version:
            self._check_net(begun.version + 1, old)

    def _check_net(self, first: int, old: Sequence[Mapping[str, Any]]) -> None:
        """The changes of all versions as those of one."""
        names, new = self.model.columns, self.model.values()
        found = change_rows(self.path, first, net=True)
        assert applied(old, found) == feed_bag(new, sorted(names))
        assert {row["_commit_version"] for row in found} <= {self.model.version}
        self._check_keyed(first, self.model.version, net=True)
        by_values = change_rows(self.path, first, net=True, compute="values")
        before, after = bag(old, names), bag(new, names)
        assert bag([row for row in by_values if row["_change_type"] == DELETE], names) == before - after
        assert bag([row for row in by_values if row["_change_type"] == INSERT], names) == after - before


def same_feed(before: Past, after: Past) -> bool:
    """Whether the changes of both are read together: no column went, and files find columns as they did.

    Where the feed was off, changes are computed.
    """
    return before.births.items() <= after.births.items() and before.layout.mapped == after.layout.mapped


def _rows_of(past: Past, columns: Sequence[str]) -> list[dict[str, Any]]:
    return [{name: row.values.get(name) for name in columns} for row in past.rows]


def create(path: Path, model: Model) -> None:
    """An empty table of the model's layout."""
    partition_by = (("p",),) if model.layout.partitioned else None
    write_rows(path, schema_of(model.columns), [], properties=model.layout.properties, partition_by=partition_by)


def take_as_core(path: Path, model: Model, step: Append | Overwrite | Checkpoint) -> None:
    """A step that is not a command, on the table of a model that has not taken it yet."""
    if isinstance(step, Checkpoint):
        checkpoint(str(path))
        return
    columns, tasks = rows_to_write(model, step)
    request = {"merge_schema": True} if isinstance(step, Append) else step.request
    write_rows(path, schema_of(columns), tasks, **request)


def check_metrics(step: Step, effect: Effect, info: Mapping[str, Any], counts_source: bool) -> None:
    """The counts of rows in ``operationMetrics`` are right."""
    updated, deleted, inserted = effect.counts
    expected: dict[str, int] = {}
    if isinstance(step, Delete):
        expected = {"numDeletedRows": deleted}
    elif isinstance(step, Update):
        expected = {"numUpdatedRows": updated}
    elif isinstance(step, Merge):
        expected = {
            **({"numSourceRows": len(step.rows)} if counts_source else {}),
            "numTargetRowsInserted": inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
        }
    metrics = info["operationMetrics"]
    for name, value in expected.items():
        assert metrics[name] == str(value), f"{name} is {metrics[name]}, not {value}"
    assert info["operation"] == type(step).__name__.upper()


def read_all(path: Path, version: int | None = None, *, row_ids: bool = False) -> list[dict[str, Any]]:
    """All rows by the core; with ``row_ids`` also ``_row_id`` and ``_row_commit_version``."""
    scan = plan_scan(load_snapshot(str(path), version=version), row_ids=row_ids)
    batches = [batch for file in scan.files() for batch in read(scan.state, file)]
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, schema=output_schema(scan.state)).to_pylist()
    return rows


def data_files(path: Path) -> set[str]:
    """The files below the root, without the log."""
    found = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    return {file.as_posix() for file in found if "_delta_log" not in file.parts}


def needed_files(path: Path) -> set[str]:
    """The files of the latest version, with their deletion vectors, as they are called on disk."""
    found: set[str] = set()
    for file in live_files(plan_scan(load_snapshot(str(path)))):
        found.add(unquote(file.path))
        if file.deletion_vector is not None and file.deletion_vector.storage_type == "u":
            found.add(file.deletion_vector.relative_path())
    return found


def file_rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The live rows of each file, by its path in the log."""
    snapshot = load_snapshot(str(path))
    scan = plan_scan(snapshot)
    names = [p for batch in scan.batches() for p in batch.column("path").to_pylist()]
    files = list(scan.files())
    assert len(names) == len(files)
    return {
        name: [row for batch in read(scan.state, file) for row in batch.to_pylist()]
        for name, file in zip(names, files, strict=True)
    }


def code_of(error: BaseException) -> str:
    """The error class in the text of an error of any engine."""
    found = re.search(r"DELTA_[A-Z_]+", str(error))
    return found.group() if found else f"{type(error).__name__}: {error}"
