"""What a table must hold after each step: its rows in plain Python, what becomes of each, and who keeps its row id.

Invariant: a row is one object from the step that inserts it to the one that deletes it, whatever updates it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.row_model.expressions import holds
from tests.support.row_model.steps import (
    BASE,
    Append,
    Assignments,
    Checkpoint,
    Clause,
    Delete,
    Layout,
    Merge,
    Overwrite,
    Step,
    Update,
    Upkeep,
    next_column,
    with_columns,
)

INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
CONSTRAINT_CODE = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
MULTIPLE_MATCHES_CODE = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


class ModelRow:
    """``row_id``, ``commit_version``: None until they were read for the first time, and after a change."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)
        self.row_id: int | None = None
        self.commit_version: int | None = None

    def copy(self) -> ModelRow:
        row = ModelRow(self.values)
        row.row_id, row.commit_version = self.row_id, self.commit_version
        return row


@dataclass(frozen=True)
class Past:
    """The table at a version; no other version shares its rows."""

    version: int
    layout: Layout
    births: Mapping[str, int]
    rows: tuple[ModelRow, ...]

    @property
    def columns(self) -> list[str]:
        return list(self.births)


@dataclass
class Effect:
    """The effect of one step. ``errors``: codes with any of which it must be refused, and then nothing of it happens.

    ``changes``: of the change feed, as kind and values. ``columns``: of the table afterwards, as is ``layout`` where it
    is another one. ``impossible``: the step means nothing for this table. ``births``: of columns that come back.
    ``forgets``: versions before are no longer read, nor their changes. ``new_ids``: rows get ids that no one knows yet.
    ``new_versions``: as do the versions in which they last changed.
    """

    columns: list[str]
    rows: list[ModelRow]
    changes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    errors: set[str] = field(default_factory=set)
    new_values: list[tuple[ModelRow, dict[str, Any]]] = field(default_factory=list)
    layout: Layout | None = None
    impossible: bool = False
    births: Mapping[str, int] = field(default_factory=dict)
    forgets: bool = False
    new_ids: bool = False
    new_versions: bool = False

    def count(self, kind: str) -> int:
        return sum(found == kind for found, _ in self.changes)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Rows updated, deleted and inserted."""
        return self.count(AFTER), self.count(DELETE), self.count(INSERT)

    def inserts(self, values: Mapping[str, Any]) -> ModelRow:
        row = ModelRow({name: values.get(name) for name in self.columns})
        self.changes.append((INSERT, row.values))
        return row

    def deletes(self, row: ModelRow) -> None:
        self.changes.append((DELETE, self._whole(row.values)))

    def updates(self, row: ModelRow, given: Mapping[str, Any]) -> None:
        new = self._whole(row.values) | given
        self.changes += [(BEFORE, self._whole(row.values)), (AFTER, new)]
        self.new_values.append((row, new))

    def _whole(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: values.get(name) for name in self.columns}


class Model:
    """The rows of the table, in no order. ``version``: of the table, as far as anybody said. ``past``: versions before
    it that the table can go back to. ``births``: a number for each column, that no other of its name has.
    """

    def __init__(self, layout: Layout, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        self.layout = replace(layout, ids=layout.row_tracking)
        self.births = {name: i for i, name in enumerate(BASE)}
        self._next_birth = len(BASE)
        self.rows = [ModelRow(values) for values in with_columns(rows, self.columns)]
        self.version = 0
        self.past: list[Past] = []

    @property
    def columns(self) -> list[str]:
        return list(self.births)

    def values(self) -> list[dict[str, Any]]:
        return [row.values for row in self.rows]

    def effect(self, step: Step) -> Effect:
        """The effect of the step; the model stays as it is until ``take``."""
        effect: Effect = step.effect(self) if isinstance(step, Upkeep) else _EFFECTS[type(step)](self, step)
        written = [values for kind, values in effect.changes if kind in (INSERT, AFTER)]
        if self.layout.constrained and any(values["n"] == 7 for values in written):
            effect.errors.add(CONSTRAINT_CODE)
        return effect

    def take(self, effect: Effect) -> None:
        """The step happened."""
        self.past = [] if effect.forgets else [*self.past, self.now()]
        self.layout = effect.layout or self.layout
        known = {**self.births, **effect.births}
        self.births, self.rows = {name: known.get(name, self._next_birth) for name in effect.columns}, effect.rows
        self._next_birth += 1
        for row, values in effect.new_values:
            row.values = values
            row.commit_version = None
        for row in self.rows:
            row.values = {name: row.values.get(name) for name in self.columns}

    def keeps_columns(self, effect: Effect) -> bool:
        """Whether changes before the step are still read with those after it: no column goes."""
        known = {**self.births, **effect.births}
        return self.births.items() <= {name: known.get(name, -1) for name in effect.columns}.items()

    def now(self) -> Past:
        """The table as it is, whatever becomes of it."""
        return Past(self.version, self.layout, dict(self.births), tuple(row.copy() for row in self.rows))


def bag(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Counter[str]:
    """Rows as a multiset of these columns."""
    return Counter(key_of(row, columns) for row in rows)


def key_of(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    return repr([row.get(name) for name in columns])


def rows_to_write(model: Model, step: Append | Overwrite) -> tuple[list[str], list[list[dict[str, Any]]]]:
    """The columns and the rows of each task; of a replacement, those that its predicate selects."""
    columns = list(model.columns)
    if isinstance(step, Append) and step.new_column:
        columns.append(next_column(columns))
    tasks = [with_columns(rows, columns) for rows in step.tasks]
    if isinstance(step, Overwrite) and step.where is not None:
        tasks = [[row for row in rows if holds(step.where, {None: row})] for rows in tasks]
    return columns, tasks


def _append(model: Model, step: Append) -> Effect:
    columns, tasks = rows_to_write(model, step)
    effect = Effect(columns, list(model.rows))
    effect.rows += [effect.inserts(row) for rows in tasks for row in rows]
    return effect


def _overwrite(model: Model, step: Overwrite) -> Effect:
    columns, tasks = rows_to_write(model, step)
    effect = Effect(columns, [])
    # without partitions, a dynamic overwrite replaces all rows
    partitions = {row["p"] for rows in tasks for row in rows} if step.dynamic and model.layout.partitioned else None
    for row in model.rows:
        if holds(step.where, {None: row.values}) and (partitions is None or row.values["p"] in partitions):
            effect.deletes(row)
        else:
            effect.rows.append(row)
    effect.rows += [effect.inserts(row) for rows in tasks for row in rows]
    return effect


def _checkpoint(model: Model, _: Checkpoint) -> Effect:
    return Effect(list(model.columns), list(model.rows))


def _delete(model: Model, step: Delete) -> Effect:
    return _overwrite(model, Overwrite((), step.condition))


def _update(model: Model, step: Update) -> Effect:
    effect = Effect(list(model.columns), list(model.rows))
    for row in model.rows:
        env = {None: row.values}
        if holds(step.condition, env):
            effect.updates(row, _computed(step.assignments, env))
    return effect


def _merge(model: Model, step: Merge) -> Effect:
    source_columns = step.source_columns(model.columns)
    source = with_columns(step.rows, source_columns)
    evolved = step.new_column and step.has_star
    columns = [*model.columns, next_column(model.columns)] if evolved else list(model.columns)
    effect = Effect(columns, [])
    star = [name for name in source_columns if name in columns]
    matched_source: set[int] = set()
    # as the reference has it: an insert alone and an only, unconditional delete are exempt, whatever else there is
    inserts_alone = not step.matched and not step.not_matched_by_source
    may_not_meet_twice = not inserts_alone and step.matched != (Clause("delete"),)
    for row in model.rows:
        matches = [i for i, s in enumerate(source) if holds(step.condition, {"t": row.values, "s": s})]
        matched_source.update(matches)
        if len(matches) > 1 and may_not_meet_twice:
            effect.errors.add(MULTIPLE_MATCHES_CODE)
        env = {"t": row.values, **({"s": source[matches[0]]} if matches else {})}
        clauses = step.matched if matches else step.not_matched_by_source
        clause = next((c for c in clauses if holds(c.condition, env)), None)
        if clause is not None and clause.action == "delete":
            effect.deletes(row)
            continue
        if clause is not None:
            effect.updates(row, _given(clause, env, star))
        effect.rows.append(row)
    for i, values in enumerate(source):
        clause = next((c for c in step.not_matched if holds(c.condition, {"s": values})), None)
        if i not in matched_source and clause is not None:
            effect.rows.append(effect.inserts(_given(clause, {"s": values}, star)))
    return effect


def _given(clause: Clause, env: Mapping[str | None, Mapping[str, Any]], star: Sequence[str]) -> dict[str, Any]:
    if clause.assignments is None:
        return {name: env["s"][name] for name in star}
    return _computed(clause.assignments, env)


def _computed(assignments: Assignments, env: Mapping[str | None, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value.value(env) for name, value in assignments}


_EFFECTS: dict[type, Any] = {
    Append: _append,
    Overwrite: _overwrite,
    Checkpoint: _checkpoint,
    Delete: _delete,
    Update: _update,
    Merge: _merge,
}
