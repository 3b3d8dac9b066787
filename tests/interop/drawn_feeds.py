"""Drawn histories of two tables, one with the change feed and one without: both engines take the steps in turn.

Invariants: each step runs on both tables, by the same engine. So the record of one table says what must be computed for
the other: the same rows by row ids, and by values what remains after equal rows of one commit have cancelled. A table
may turn its feed on and off. A restore records whole files, so of it only the remaining rows are compared.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

import delta_pyds
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.changing_engines import ReferenceEngine
from tests.interop.engines import rows as rows_of_frame
from tests.support.change_feed import bag, change_rows, gone_and_came, rebuilt
from tests.support.row_model.core_engine import take_in_place
from tests.support.row_model.harness import create, read_all
from tests.support.row_model.model import Model, rows_to_write
from tests.support.row_model.programs import Program, drawn_programs
from tests.support.row_model.steps import (
    DELETES,
    MERGES,
    MERGES_IN_PROCESS,
    OTHERS,
    UPDATES,
    Append,
    Checkpoint,
    Delete,
    Layout,
    Merge,
    Overwrite,
    Step,
    Update,
    Upkeep,
)
from tests.support.row_model.upkeep import (
    LAYOUT_STEPS,
    AddColumn,
    DropColumn,
    RenameColumn,
    Restore,
    Truncate,
    Turn,
    same,
)

if TYPE_CHECKING:
    from tests.interop.engines import Engines

Row = Mapping[str, Any]
OURS, REFERENCE = "ours", "reference"
CHANGE_TYPE = "_change_type"
# of which the one is taken that changes most: drawing costs as much as a command
_DRAWS = 8
# each as likely as the others
_UPKEEP: tuple[st.SearchStrategy[Step], ...] = (
    LAYOUT_STEPS,
    LAYOUT_STEPS,
    st.builds(Restore, st.integers(0, 9)),
    st.builds(Turn, st.just("change_feed"), st.just(True)),
    st.builds(Turn, st.just("change_feed"), st.just(False)),
    st.builds(Turn, st.just("deletion_vectors"), st.just(True)),
    st.builds(Turn, st.just("row_tracking"), st.just(True)),
    st.one_of(st.builds(AddColumn), st.builds(RenameColumn), st.builds(DropColumn)),
    st.builds(Truncate),
)
# our core has no merges that only Spark's evaluator knows
_KINDS = {
    OURS: (UPDATES, UPDATES, DELETES, MERGES_IN_PROCESS, MERGES_IN_PROCESS, OTHERS),
    REFERENCE: (UPDATES, UPDATES, DELETES, MERGES, MERGES, OTHERS),
}


@dataclass(frozen=True)
class FeedHistory:
    """All of it follows from the seed. ``turns``: the engine of each step of the program."""

    seed: int
    program: Program
    turns: tuple[str, ...]

    @staticmethod
    def of(seed: int) -> FeedHistory:
        rng = random.Random(f"feeds {seed}")

        def maybe(share: float = 0.5) -> bool:
            return rng.random() < share

        layout = Layout(
            deletion_vectors=maybe(),
            mapped=maybe(),
            row_tracking=maybe(0.6),
            partitioned=maybe(),
            constrained=maybe(0.2),
            v2_checkpoints=maybe(0.2),
        )
        first, length = rng.randrange(2), rng.choice([4, 6, 8])
        turns = tuple((OURS, REFERENCE)[(first + number) % 2] for number in range(length))
        kinds = [rng.choice(_UPKEEP if maybe(0.3) else _KINDS[turn]) for turn in turns]
        (program,) = drawn_programs(1, f"feeds {seed}", st.just(layout), kinds, draws=_DRAWS)
        return FeedHistory(seed, program, turns)


class Side:
    """One of the two tables, and its model."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path, self.model = path, Model(layout)
        create(path, self.model)

    def take(self, step: Step, engine: str, engines: Engines) -> tuple[int, int]:
        """Take a step that the model allows. Returns: the versions that it made, as the first and the last of them."""
        before = self.version
        effect = self.model.effect(step)
        if engine == OURS:
            take_in_place(self.path, self.model, step)
        else:
            _take_as_reference(self.path, self.model, step, engines)
        self.model.take(effect)
        self.model.version = self.version
        found = read_all(self.path)
        assert bag(found, self.model.columns) == bag(self.model.values(), self.model.columns), f"{engine}: {step}"
        return before + 1, self.version

    @property
    def version(self) -> int:
        return load_snapshot(str(self.path)).version

    def changes(self, versions: tuple[int, int], **choice: Any) -> list[dict[str, Any]]:
        """The changes of these versions: no rows if the last one is before the first."""
        first, last = versions
        return change_rows(self.path, first, last, **choice) if first <= last else []


def _take_as_reference(path: Path, model: Model, step: Step, engines: Engines) -> None:
    reference = ReferenceEngine(engines.spark)
    if isinstance(step, Delete):
        reference.delete(path, step)
    elif isinstance(step, Update):
        reference.update(path, step)
    elif isinstance(step, Merge):
        reference.merge(path, step, model.columns)
    elif isinstance(step, Append):
        reference.append(path, *rows_to_write(model, step))
    elif isinstance(step, Overwrite):
        reference.overwrite(path, step, *rows_to_write(model, step))
    elif isinstance(step, Checkpoint):
        engines.checkpoint_as_reference(path)
    elif isinstance(step, Upkeep):
        for statement in step.statements(f"delta.`{path}`", model):
            engines.sql(statement).collect()


@dataclass(frozen=True)
class FeedOutcome:
    """The numbers of a history that passed. ``exact``: the commits whose changes are equal row by row."""

    steps: int
    computed: int
    exact: int


class FeedTwins:
    """``recorded`` always has the feed; ``computed`` begins without it."""

    def __init__(self, engines: Engines, folder: Path, history: FeedHistory) -> None:
        self._engines, self._folder, self._history = engines, folder, history
        layout = history.program.layout
        self.computed = Side(folder / "computed", layout)
        self.recorded = Side(folder / "recorded", replace(layout, change_feed=True))
        self._begin_range()

    def _begin_range(self) -> None:
        """From here on all changes can be read together."""
        self._told: list[dict[str, Any]] = []
        self._first, self._first_recorded = self.computed.version + 1, self.recorded.version + 1
        self._tracked = self.computed.model.layout.row_tracking

    def run(self) -> FeedOutcome:
        """Raises: AssertionError where computed changes are not the recorded ones, or do not make the table's rows."""
        taken = computed = exact = 0
        steps: list[tuple[str, Step]] = [(OURS, Append(self._history.program.first))]
        for engine, step in [*steps, *zip(self._history.turns, self._history.program.steps, strict=True)]:
            model = self.computed.model
            effect, was = model.effect(step), model.layout
            if effect.errors or effect.impossible:
                continue
            ends_range = not model.keeps_columns(effect)
            if ends_range:
                self._check_range()
            mine = self.computed.take(step, engine, self._engines)
            told: list[dict[str, Any]] = []
            if isinstance(step, Turn) and step.switch == "change_feed":
                # so that a restore goes back to the same rows
                self.recorded.model.take(same(self.recorded.model))
            else:
                told = self.recorded.changes(self.recorded.take(step, engine, self._engines))
            as_recorded = was.change_feed or was.row_tracking
            self._compare(f"{engine}: {step}", told, mine, was, exactly=as_recorded and not isinstance(step, Restore))
            taken += 1
            computed += bool(told) and not was.change_feed
            exact += bool(told) and was.row_tracking and not was.change_feed
            if ends_range:
                self._begin_range()
            else:
                self._told += told
                self._tracked &= model.layout.row_tracking
        self._check_range()
        self._check_reference()
        self._check_stream()
        judged = (self.computed, self.recorded)[self._history.seed % 2]
        self._engines.agree(judged.path)
        self._engines.assert_sound(judged.path)
        return FeedOutcome(taken, computed, exact)

    def _compare(
        self, what: str, told: Sequence[Row], versions: tuple[int, int], was: Layout, *, exactly: bool
    ) -> None:
        """The changes of one step. ``exactly``: row by row."""
        columns = self.computed.model.columns
        gone, came = gone_and_came(told, columns)
        remaining = gone - came, came - gone
        found = self.computed.changes(versions)
        if exactly:
            names = [CHANGE_TYPE, *columns]
            assert bag(found, names) == bag(told, names), what
        by_values = self.computed.changes(versions, compute="values")
        for gone, came in (gone_and_came(rows, columns) for rows in (found, by_values)):
            assert (gone - came, came - gone) == remaining, what
        if not was.change_feed:
            assert gone_and_came(by_values, columns) == remaining, f"{what}: equal rows have not cancelled."
            assert {row[CHANGE_TYPE] for row in by_values} <= {"delete", "insert"}, what

    def _check_range(self) -> None:
        """All steps since the range began, read together: they rebuild each version."""
        first, last, path = self._first, self.computed.version, self.computed.path
        if first > last:
            return
        columns = self.computed.model.columns
        states = {first - 1: _bag(read_all(path, first - 1), columns)}
        changes = change_rows(path, first, last)
        made = dict(rebuilt(states[first - 1], changes, columns))
        for version in range(first, last + 1):
            states[version] = made.get(version, states[version - 1])
            assert states[version] == _bag(read_all(path, version), columns), f"version {version} is not rebuilt."
        nets = {since: self._check_net(since, states[since - 1], states[last]) for since in range(first, last + 1)}
        if self._history.seed % 3 < 2:
            is_net = self._history.seed % 3 == 0
            begin = (first + last) // 2 if is_net else first
            expected = nets[begin] if is_net else changes
            found = delta_pyds.changes(self._engines.spark, str(path), since=begin, until=last, net=is_net)
            names = [CHANGE_TYPE, *columns, "_commit_version"]
            assert bag(found.toArrow().to_pylist(), names) == bag(expected, names)

    def _check_net(self, since: int, before: Counter[str], after: Counter[str]) -> list[dict[str, Any]]:
        """The net changes since a version, at whose begin files may be there already. Returns: them."""
        path, last, columns = self.computed.path, self.computed.version, self.computed.model.columns
        by_values = change_rows(path, since, last, net=True, compute="values")
        assert gone_and_came(by_values, columns) == (before - after, after - before)
        net = change_rows(path, since, last, net=True)
        gone, came = gone_and_came(net, columns)
        assert (gone - came, came - gone) == (before - after, after - before)
        if self._tracked:
            names = [CHANGE_TYPE, *columns]
            assert bag(net, names) == _bag(_net_by_id(path, since - 1, last), names)
        return net

    def _check_reference(self) -> None:
        """The record, as the reference reads it, is what ours was compared with."""
        if self._first_recorded > self.recorded.version:
            return
        names = [CHANGE_TYPE, *self.computed.model.columns, "_commit_version"]
        found = self._engines.reference(
            self.recorded.path, readChangeFeed="true", startingVersion=str(self._first_recorded)
        )
        assert bag(found.toArrow().to_pylist(), names) == _bag(self._told, names)

    def _check_stream(self) -> None:
        """A stream of computed changes has the rows of a read, whatever its limit."""
        if self._history.seed % 6 != 2 or self._first > self.computed.version:
            return
        feed = {"readChangeFeed": "true", "startingVersion": str(self._first)}
        limited = self._engines.stream(
            "deltapy", self.computed.path, self._folder / "checkpoint", maxFilesPerTrigger="1", **feed
        )
        assert limited == rows_of_frame(self._engines.ours(self.computed.path, **feed))


def _bag(rows: Sequence[Row], names: Sequence[str]) -> Counter[str]:
    """Rows that were read before a column came have nulls in it."""
    return bag([{name: row.get(name) for name in names} for row in rows], names)


def _net_by_id(path: Path, before: int, after: int) -> list[Row]:
    """The difference of two versions, each row by its id."""
    old, new = ({row["_row_id"]: row for row in read_all(path, v, row_ids=True)} for v in (before, after))
    found = [{**row, CHANGE_TYPE: "delete"} for id_, row in old.items() if id_ not in new]
    found += [{**row, CHANGE_TYPE: "insert"} for id_, row in new.items() if id_ not in old]
    for id_ in old.keys() & new.keys():
        if old[id_]["_row_commit_version"] != new[id_]["_row_commit_version"]:
            found += [{**old[id_], CHANGE_TYPE: "update_preimage"}, {**new[id_], CHANGE_TYPE: "update_postimage"}]
    return found
