"""A drawn program on one table, of which each command runs on copies: by the reference, and by us in several places.

Steps that keep a table run by the reference and by our core.

Invariants: every command begins on copies of the same files, so their accounts differ in nothing but sizes and times.
The table goes on as a copy that the reference changed and as one that we did, in turn. The model of rows says what must
come out, so copies that are like it are alike. The core reads every copy, and the reference one that we made.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_pyds
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.changed_alike import assert_same_info, info, same_protocol, without_predicates
from tests.interop.changing_engines import ReferenceEngine
from tests.support.change_feed import applied, change_rows
from tests.support.change_feed import bag as feed_bag
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.core_upkeep import export, keep
from tests.support.row_model.delta_table_engine import DeltaTableEngine
from tests.support.row_model.harness import (
    Counts,
    Engine,
    RowIds,
    check_metrics,
    code_of,
    create,
    read_all,
    same_feed,
    take_as_core,
)
from tests.support.row_model.model import Effect, Model, ModelRow, bag, key_of
from tests.support.row_model.programs import Program
from tests.support.row_model.steps import Append, Delete, Layout, Merge, Update, Upkeep
from tests.support.row_model.upkeep import (
    Clone,
    Convert,
    DropColumn,
    DropFeature,
    LayoutStep,
    Move,
    RenameColumn,
    Restore,
    Truncate,
    moved,
)

if TYPE_CHECKING:
    from tests.interop.engines import Engines

Command = Delete | Update | Merge
REFERENCE = "reference"
# files are of other sizes by each writer, and so are their percentiles
_OWN_METRICS = r"Size|Bytes|TimeMs$"
_ROW_IDS = ("_metadata.row_id AS _row_id", "_metadata.row_commit_version AS _row_commit_version")


class Twins:
    """A table, its model, and every engine that a command runs by.

    ``places``: of us, for each step that is a command; one without is run by our core, and compared with the model.
    """

    def __init__(self, engines: Engines, folder: Path, program: Program, places: Sequence[Sequence[str]]) -> None:
        self._engines, self._folder, self._program, self._places = engines, folder, program, places
        self._by: dict[str, Engine] = {REFERENCE: ReferenceEngine(engines.spark)}
        self._by |= {place: DeltaTableEngine(engines.spark, place) for place in {p for some in places for p in some}}
        self._model = Model(program.layout)
        self._row_ids = RowIds()
        self._path = folder / "table"
        self._turn = 0
        self._whole_feed = program.layout.change_feed

    def run(self) -> None:
        """Raises: AssertionError where a copy is not as the model, or two are not alike."""
        create(self._path, self._model)
        self._write(Append(self._program.first))
        for step, places in zip(self._program.steps, self._places, strict=True):
            if isinstance(step, Command) and places:
                self._command(step, places)
            elif isinstance(step, Upkeep):
                self._upkeep(step)
            else:
                self._write(step)
        if self._whole_feed:
            rows = feed_bag(self._model.values(), sorted(self._model.columns))
            assert applied([], change_rows(self._path)) == rows

    def _write(self, step: Any) -> None:
        """By the core. What breaks the constraint is left out."""
        effect = self._model.effect(step)
        if effect.errors:
            return
        if isinstance(step, Delete | Update):
            core = CoreEngine()
            core.delete(self._path, step) if isinstance(step, Delete) else core.update(self._path, step)
        else:
            take_as_core(self._path, self._model, step)
        self._take(effect)

    def _take(self, effect: Effect, *, forgets_ids: bool = False) -> None:
        """The table is what the step has made of it. ``forgets_ids``: it may give ids that it gave to other rows."""
        before = self._model.now()
        self._model.take(effect)
        if forgets_ids:
            self._row_ids.forget(self._model)
        self._whole_feed &= not effect.forgets and same_feed(before, self._model.now())
        self._model.version = load_snapshot(str(self._path)).version
        if self._model.layout.row_tracking:
            rows = read_all(self._path, row_ids=True)
            self._row_ids.check(self._model, rows, self._model.version, any_version=effect.new_versions)

    def _upkeep(self, step: Upkeep) -> None:
        effect = self._model.effect(step)
        if effect.impossible:
            return
        self._turn += 1
        if isinstance(step, Clone):
            # the reference numbers the rows of a clone again, where we keep their ids
            self._row_ids.used.clear()
            for row in effect.rows:
                row.row_id = None
        before = -1 if isinstance(step, Move) else load_snapshot(str(self._path)).version
        theirs, ours = (
            shutil.copytree(self._path, self._folder / f"{self._turn}-{side}") for side in (REFERENCE, "us")
        )
        for name, copy in ((REFERENCE, theirs), ("us", ours)):
            try:
                if name == REFERENCE:
                    if isinstance(step, Convert):
                        export(copy, self._model)
                    for statement in step.statements(f"delta.`{copy}`", self._model):
                        self._engines.sql(statement).collect()
                else:
                    keep(copy, step, self._model)
            except Exception as error:
                if not effect.errors:
                    raise
                assert code_of(error) in effect.errors, f"{name} refused {step} with {error}"
            else:
                assert not effect.errors, f"{name} did not refuse {step}, though {effect.errors}"
        if isinstance(step, Move):
            theirs, ours = moved(theirs), moved(ours)
        version = load_snapshot(str(theirs)).version
        own = load_snapshot(str(ours)).version
        assert own == version, f"{step} made version {own}, and {version} of the reference, from {before}"
        if not effect.errors:
            for made in range(before + 1, version + 1):
                assert _told(step, ours, made) == _told(step, theirs, made)
            after = effect.layout or self._model.layout
            changed = _Changed(
                effect,
                after,
                self._model.rows,
                self._row_ids,
                before,
                version,
                any_changes=isinstance(step, Restore | RenameColumn | DropColumn | Move),
            )
            for name, copy in ((REFERENCE, theirs), ("us", ours)):
                changed.check(f"{name}: {step}", copy)
            changed.judge(f"us, as the reference reads it: {step}", ours, self._engines)
            # the reference writes no checksum of a clone, and we none after a version without
            self._path = ours if isinstance(step, Clone) else (ours, theirs)[self._turn % 2]
            self._take(effect, forgets_ids=isinstance(step, Move | DropFeature))

    def _command(self, step: Command, places: Sequence[str]) -> None:
        self._turn += 1
        effect = self._model.effect(step)
        before = load_snapshot(str(self._path)).version
        copies = {name: self._folder / f"{self._turn}-{name}" for name in (REFERENCE, *places)}
        for name, copy in copies.items():
            shutil.copytree(self._path, copy)
            self._run(name, copy, step, effect)
        versions = {name: load_snapshot(str(copy)).version for name, copy in copies.items()}
        assert len(set(versions.values())) == 1, f"{step} made these versions: {versions}"
        version = versions[REFERENCE]
        changed = _Changed(effect, self._model.layout, self._model.rows, self._row_ids, before, version)
        judged = places[self._turn % len(places)]
        for name, copy in copies.items():
            changed.check(f"{name}: {step}", copy)
            if version > before:
                check_metrics(step, effect, info(copy, version), counts_source=name != REFERENCE)
            if version > before and name != REFERENCE:
                self._compare(step, copies[REFERENCE], copy, version)
        changed.judge(f"{judged}, as the reference reads it: {step}", copies[judged], self._engines)
        self._path = copies[REFERENCE if self._turn % 2 else judged]
        if not effect.errors:
            self._take(effect)

    def _compare(self, step: Command, theirs: Path, ours: Path, version: int) -> None:
        """Both describe the commit alike. Without vectors the reference also rewrites files whose rows only matched."""
        rewrites_more = isinstance(step, Merge) and not self._model.layout.deletion_vectors
        assert_same_info(theirs, ours, version, same_files=not rewrites_more)
        if rewrites_more:
            a, b = (info(path, version)["operationMetrics"] for path in (theirs, ours))
            for name in ("numTargetRowsCopied", "numTargetFilesRemoved", "numOutputRows"):
                assert int(b[name]) <= int(a[name]), f"{name}: ours {b[name]}, the reference's {a[name]}, for {step}"
        same_protocol(theirs, ours)

    def _run(self, name: str, copy: Path, step: Command, effect: Effect) -> None:
        """It is refused where the model says so, and else tells of as many rows as the model."""
        engine = self._by[name]
        try:
            if isinstance(step, Merge):
                counts: Counts = engine.merge(copy, step, self._model.columns)
            else:
                counts = engine.delete(copy, step) if isinstance(step, Delete) else engine.update(copy, step)
        except Exception as error:
            if not effect.errors:
                raise
            assert code_of(error) in effect.errors, f"{name} refused {step} with {error}"
        else:
            assert not effect.errors, f"{name} did not refuse {step}, though {effect.errors}"
            for told, right in zip(counts, effect.counts, strict=True):
                assert told in (None, right), f"{name} told of {counts}, which are {effect.counts}, for {step}"


def _told(step: Upkeep, path: Path, version: int) -> Any:
    """What a commit says of itself, without sizes and times; metrics where they count what both must have done."""
    found = info(path, version)
    parameters = without_predicates(found["operationParameters"])
    told = [found["operation"], {name: _parsed(value) for name, value in parameters.items() if name != "source"}]
    if isinstance(step, LayoutStep | Restore | Truncate | Move):
        metrics = found.get("operationMetrics", {})
        told.append({name: value for name, value in metrics.items() if not re.search(_OWN_METRICS, name)})
    return told


def _parsed(value: Any) -> Any:
    """JSON in a text, in whatever order its writer put it."""
    return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value


class _Changed:
    """The table that one command must leave of any copy. The id of a row that it inserted is the engine's choice.

    ``any_changes``: its change feed may be any, or be refused for the columns that it lost.
    """

    def __init__(
        self,
        effect: Effect,
        layout: Layout,
        rows: Sequence[ModelRow],
        row_ids: RowIds,
        before: int,
        version: int,
        *,
        any_changes: bool = False,
    ) -> None:
        self._has_feed = layout.change_feed and not any_changes
        self._any_version = effect.new_versions
        self._layout, self._row_ids, self._before, self._version = layout, row_ids, before, version
        self._columns = effect.columns
        self._changes = effect.changes
        new = {id(row): values for row, values in effect.new_values}
        if effect.errors:
            assert version == before, "what was refused has committed."
            self._columns, self._changes, new = list(rows[0].values) if rows else [], [], {}
        there = rows if effect.errors else effect.rows
        self._rows: Counter[tuple[str, int | None, int]] = Counter()
        for row in there:
            committed = version if id(row) in new or row.commit_version is None else row.commit_version
            committed = 0 if self._any_version else committed
            key = key_of(new.get(id(row), row.values), self._columns)
            self._rows[(key, row.row_id, committed) if layout.row_tracking else (key, None, 0)] += 1
        self._known = {row.row_id for row in there}

    def check(self, what: str, copy: Path) -> None:
        """As the core reads it."""
        self._check_rows(what, read_all(copy, row_ids=self._layout.row_tracking))
        report = delta_pyds.verify(str(copy))
        assert report.findings == (), f"{what}: {report}"
        if self._version == self._before:
            assert not self._changes, f"{what}: nothing was committed."
        elif self._has_feed:
            self._check_changes(what, change_rows(copy, self._version, self._version))

    def judge(self, what: str, copy: Path, engines: Engines) -> None:
        """As the reference reads it, which finds its log sound."""
        frame = engines.reference(copy)
        tracked = frame.selectExpr("*", *_ROW_IDS) if self._layout.row_tracking else frame
        self._check_rows(what, tracked.toArrow().to_pylist())
        if self._has_feed and self._version > self._before:
            version = str(self._version)
            feed = {"readChangeFeed": "true", "startingVersion": version, "endingVersion": version}
            self._check_changes(what, engines.reference(copy, **feed).toArrow().to_pylist())
        engines.assert_sound(copy)

    def _check_rows(self, what: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Tracked rows keep their ids, and their versions if they did not change."""
        if not self._layout.row_tracking:
            assert Counter((key_of(row, self._columns), None, 0) for row in rows) == self._rows, what
            return
        ids = [row["_row_id"] for row in rows]
        assert None not in ids and len(set(ids)) == len(ids), f"{what}: row ids are not unique."
        assert not (set(ids) - self._known) & self._row_ids.used, f"{what}: a row id was given twice."
        found = Counter(
            (key_of(row, self._columns), id_ if id_ in self._known else None, self._committed(row))
            for row, id_ in zip(rows, ids, strict=True)
        )
        assert found == self._rows, what

    def _committed(self, row: Mapping[str, Any]) -> int:
        return 0 if self._any_version else int(row["_row_commit_version"])

    def _check_changes(self, what: str, rows: Sequence[Mapping[str, Any]]) -> None:
        wanted = [{"_change_type": kind, **values} for kind, values in self._changes]
        names = ["_change_type", *self._columns]
        assert bag(rows, names) == bag(wanted, names), f"{what}: change rows."
        assert {row["_commit_version"] for row in rows} <= {self._version}, what
