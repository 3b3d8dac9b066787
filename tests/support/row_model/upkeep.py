"""Steps that keep a table: they lay its rows out again, clean up, go back, and alter what the table is.

Invariant: none of them changes a row, but that a restore brings back those that were there, as does a clone. Statements
are what an engine that speaks SQL runs for a step on the table that a model is of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hypothesis import strategies as st

from tests.support.row_model.model import Effect, Model, ModelRow, Past
from tests.support.row_model.steps import PARTITIONS, Layout, Step, Upkeep, next_column

NOT_PARTITIONED_CODE = "DELTA_NON_PARTITION_COLUMN_REFERENCE"
WHERE_CLUSTERED_CODE = "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"
ZORDER_CLUSTERED_CODE = "DELTA_CLUSTERING_WITH_ZORDER_BY"
CLUSTER_PARTITIONED_CODE = "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"
RENAME_UNMAPPED_CODE = "DELTA_UNSUPPORTED_RENAME_COLUMN"
RESTORE_IDS_CODE = "DELTA_ROW_TRACKING_NOT_READY"
DROP_UNMAPPED_CODE = "DELTA_UNSUPPORTED_DROP_COLUMN"

Switch = Literal["deletion_vectors", "change_feed", "mapped", "row_tracking"]
PROPERTIES: dict[Switch, tuple[str, str, str]] = {
    "deletion_vectors": ("delta.enableDeletionVectors", "true", "false"),
    "change_feed": ("delta.enableChangeDataFeed", "true", "false"),
    "mapped": ("delta.columnMapping.mode", "name", "none"),
    "row_tracking": ("delta.enableRowTracking", "true", "false"),
}
CONSTRAINT_NAME = "never_seven"
_MOVED = "-moved"


def same(model: Model, *errors: str) -> Effect:
    """Nothing but the files is another, or one of the errors."""
    return Effect(list(model.columns), list(model.rows), errors=set(errors))


class LayoutStep(Upkeep):
    """The same rows in other files."""


@dataclass(frozen=True)
class Optimize(LayoutStep):
    """Compaction; of a clustered table, clustering. ``partition``: of this one alone."""

    partition: str | None = None

    def effect(self, model: Model) -> Effect:
        if self.partition is None or model.layout.partitioned:
            return same(model)
        if _was_clustered(model):
            return _impossible(model)
        return same(model, WHERE_CLUSTERED_CODE if model.layout.clustered else NOT_PARTITIONED_CODE)

    def statements(self, table: str, _: Model) -> list[str]:
        return [f"OPTIMIZE {table}" + ("" if self.partition is None else f" WHERE {self.where}")]

    @property
    def where(self) -> str:
        return f"p = '{self.partition}'"


def _was_clustered(model: Model) -> bool:
    """The reference takes such a table for a clustered one, because of its protocol."""
    return model.layout.clustering and not model.layout.clustered


@dataclass(frozen=True)
class ZOrder(LayoutStep):
    columns: tuple[str, ...]

    def effect(self, model: Model) -> Effect:
        if _was_clustered(model):
            return _impossible(model)
        return same(model, *[ZORDER_CLUSTERED_CODE] * model.layout.clustered)

    def statements(self, table: str, _: Model) -> list[str]:
        return [f"OPTIMIZE {table} ZORDER BY ({', '.join(self.columns)})"]


@dataclass(frozen=True)
class Purge(LayoutStep):
    """Files with deleted rows are rewritten."""

    def effect(self, model: Model) -> Effect:
        return same(model)

    def statements(self, table: str, _: Model) -> list[str]:
        return [f"REORG TABLE {table} APPLY (PURGE)"]


@dataclass(frozen=True)
class Cluster(LayoutStep):
    """The table has these clustering columns, and is optimized; without columns, it is no longer clustered."""

    columns: tuple[str, ...]

    def effect(self, model: Model) -> Effect:
        if not (self.columns or model.layout.clustered):
            return _impossible(model)
        effect = same(model, *[CLUSTER_PARTITIONED_CODE] * model.layout.partitioned)
        effect.layout = replace(model.layout, clustered=bool(self.columns), clustering=True)
        return effect

    def statements(self, table: str, _: Model) -> list[str]:
        if not self.columns:
            return [f"ALTER TABLE {table} CLUSTER BY NONE"]
        return [f"ALTER TABLE {table} CLUSTER BY ({', '.join(self.columns)})", f"OPTIMIZE {table}"]


@dataclass(frozen=True)
class Vacuum(Upkeep):
    """All files go that the latest version does not need."""

    lite: bool = False

    def effect(self, model: Model) -> Effect:
        effect = same(model)
        effect.forgets = True
        return effect

    def statements(self, table: str, _: Model) -> list[str]:
        return [f"VACUUM {table} {'LITE ' if self.lite else ''}RETAIN 0 HOURS"]


@dataclass(frozen=True)
class Restore(Upkeep):
    """``back``: a number of steps, counted round those that the table can go back to."""

    back: int

    def target(self, model: Model) -> Past:
        choice = [*model.past, model.now()]
        return choice[-1 - self.back % len(choice)]

    def effect(self, model: Model) -> Effect:
        past = self.target(model)
        rows = [row.copy() for row in past.rows]
        now = model.layout
        # the protocol only grows: what was turned on and off again stays supported
        layout = replace(
            past.layout,
            ids_dropped=now.ids_dropped,
            ids=past.layout.ids or now.ids,
            clustering=past.layout.clustering or now.clustering,
        )
        lost = past.layout.ids and past.layout.ids_dropped != now.ids_dropped
        return Effect(
            past.columns, rows, layout=layout, births=past.births, errors={RESTORE_IDS_CODE} if lost else set()
        )

    def statements(self, table: str, model: Model) -> list[str]:
        return [f"RESTORE TABLE {table} TO VERSION AS OF {self.target(model).version}"]


class Move(Upkeep):
    """The table goes on in another place, beside it, and has no history there."""


def moved(path: Path) -> Path:
    """Where a table is after it was moved."""
    return path.with_name(f"{path.name}{_MOVED}")


@dataclass(frozen=True)
class Clone(Move):
    """A shallow clone of the table as it was: ``back`` as of ``Restore``. Rows keep their ids; versions are others."""

    back: int

    def target(self, model: Model) -> Past:
        return Restore(self.back).target(model)

    def effect(self, model: Model) -> Effect:
        past = self.target(model)
        rows = [row.copy() for row in past.rows]
        for row in rows:
            row.commit_version = None
        return Effect(
            past.columns,
            rows,
            layout=past.layout,
            births=past.births,
            forgets=True,
            new_versions=past.layout.row_tracking,
        )

    def statements(self, table: str, model: Model) -> list[str]:
        version = self.target(model).version
        return [f"CREATE TABLE {_moved_name(table)} SHALLOW CLONE {table} VERSION AS OF {version}"]


@dataclass(frozen=True)
class Convert(Move):
    """The rows as Parquet files, which then are a table: one without features. Whoever takes the step exports them."""

    def effect(self, model: Model) -> Effect:
        if not model.rows:
            return _impossible(model)
        rows = [ModelRow(row.values) for row in model.rows]
        return Effect(list(model.columns), rows, layout=Layout(partitioned=model.layout.partitioned), forgets=True)

    def statements(self, table: str, model: Model) -> list[str]:
        by = " PARTITIONED BY (p STRING)" if model.layout.partitioned else ""
        return [f"CONVERT TO {_moved_name(table).replace('.', ' parquet.', 1)}{by}"]


def _moved_name(table: str) -> str:
    return f"{table.removesuffix('`')}{_MOVED}`"


@dataclass(frozen=True)
class Truncate(Upkeep):
    """All rows leave, with their files."""

    def effect(self, model: Model) -> Effect:
        effect = Effect(list(model.columns), [])
        for row in model.rows:
            effect.deletes(row)
        return effect

    def statements(self, table: str, _: Model) -> list[str]:
        return [f"TRUNCATE TABLE {table}"]


@dataclass(frozen=True)
class StayColumn(Upkeep):
    """A column is put after itself: a version that changes nothing."""

    column: str

    def effect(self, model: Model) -> Effect:
        return same(model)

    def statements(self, table: str, _: Model) -> list[str]:
        return [f"ALTER TABLE {table} ALTER COLUMN {self.column} AFTER {self.column}"]


@dataclass(frozen=True)
class AddColumn(Upkeep):
    def effect(self, model: Model) -> Effect:
        return Effect([*model.columns, next_column(model.columns)], list(model.rows))

    def statements(self, table: str, model: Model) -> list[str]:
        return [f"ALTER TABLE {table} ADD COLUMNS ({next_column(model.columns)} BIGINT)"]


@dataclass(frozen=True)
class RenameColumn(Upkeep):
    """The first of the columns that steps have added."""

    def effect(self, model: Model) -> Effect:
        old, new = self.names(model)
        if old is None:
            return _impossible(model)
        if not model.layout.mapped:
            return same(model, RENAME_UNMAPPED_CODE)
        rows = [row.copy() for row in model.rows]
        for row in rows:
            row.values[new] = row.values.pop(old)
        columns = [new if name == old else name for name in model.columns]
        return Effect(columns, rows)

    def names(self, model: Model) -> tuple[str | None, str]:
        return added_column(model), next_column(model.columns)

    def statements(self, table: str, model: Model) -> list[str]:
        old, new = self.names(model)
        return [f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}"]


@dataclass(frozen=True)
class DropColumn(Upkeep):
    """The first of the columns that steps have added."""

    def effect(self, model: Model) -> Effect:
        name = self.name(model)
        if name is None:
            return _impossible(model)
        if not model.layout.mapped:
            return same(model, DROP_UNMAPPED_CODE)
        return Effect([c for c in model.columns if c != name], list(model.rows))

    def name(self, model: Model) -> str | None:
        return added_column(model)

    def statements(self, table: str, model: Model) -> list[str]:
        return [f"ALTER TABLE {table} DROP COLUMNS ({self.name(model)})"]


@dataclass(frozen=True)
class Turn(Upkeep):
    """A property on, or off. Row ids that a table had are nobody's when it no longer promises them."""

    switch: Switch
    on: bool

    def effect(self, model: Model) -> Effect:
        if getattr(model.layout, self.switch) == self.on:
            return _impossible(model)
        effect = _without_ids(model) if self.switch == "row_tracking" else same(model)
        effect.new_ids = self.switch == "row_tracking" and self.on
        effect.layout = replace(model.layout, **{self.switch: self.on})
        if effect.new_ids:
            effect.layout = replace(effect.layout, ids=True)
        return effect

    @property
    def properties(self) -> dict[str, str]:
        key, on, off = PROPERTIES[self.switch]
        return {key: on if self.on else off}

    def statements(self, table: str, _: Model) -> list[str]:
        [(key, value)] = self.properties.items()
        return [f"ALTER TABLE {table} SET TBLPROPERTIES ('{key}' = '{value}')"]


@dataclass(frozen=True)
class DropFeature(Upkeep):
    """One that is for writers alone, with what the table has of it."""

    feature: Literal["rowTracking", "checkConstraints"]

    def effect(self, model: Model) -> Effect:
        layout: Layout = model.layout
        if self.feature == "rowTracking" and layout.row_tracking:
            effect = _without_ids(model)
            effect.layout = replace(layout, row_tracking=False, ids=False, ids_dropped=layout.ids_dropped + 1)
            return effect
        if self.feature == "checkConstraints" and layout.constrained:
            effect = same(model)
            effect.layout = replace(layout, constrained=False)
            return effect
        return _impossible(model)

    def statements(self, table: str, _: Model) -> list[str]:
        drop = f"ALTER TABLE {table} DROP FEATURE {self.feature}"
        constraint = f"ALTER TABLE {table} DROP CONSTRAINT {CONSTRAINT_NAME}"
        return [constraint, drop] if self.feature == "checkConstraints" else [drop]


def added_column(model: Model) -> str | None:
    return next((name for name in model.columns if name.startswith("z")), None)


def _impossible(model: Model) -> Effect:
    effect = same(model)
    effect.impossible = True
    return effect


def _without_ids(model: Model) -> Effect:
    return Effect(list(model.columns), [ModelRow(row.values) for row in model.rows])


_PARTITION = st.sampled_from([None, None, *PARTITIONS])
_BY = st.sampled_from([("k",), ("n", "s"), ("k", "n"), ("s",)])
LAYOUT_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Optimize, _PARTITION),
    st.builds(ZOrder, _BY),
    st.builds(Purge),
    st.builds(Cluster, st.one_of(_BY, _BY, st.just(()))),
)
LIFE_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Restore, st.integers(0, 9)), st.builds(Restore, st.integers(0, 9)), st.builds(Vacuum, st.booleans())
)
STATEMENTS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Truncate), st.builds(StayColumn, st.sampled_from(["k", "s"])), st.builds(Restore, st.just(0))
)
# those of which both engines make as many commits
DEFINITIONS_OF_BOTH: st.SearchStrategy[Step] = st.one_of(
    st.builds(AddColumn),
    st.builds(RenameColumn),
    st.builds(DropColumn),
    st.builds(Turn, st.sampled_from(["deletion_vectors", "change_feed"]), st.booleans()),
    st.builds(DropFeature, st.sampled_from(["rowTracking", "checkConstraints"])),
)
DEFINITION_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(AddColumn),
    st.builds(RenameColumn),
    st.builds(DropColumn),
    st.builds(Turn, st.sampled_from(list(PROPERTIES)), st.booleans()),
    st.builds(DropFeature, st.sampled_from(["rowTracking", "checkConstraints"])),
)
CLONES: st.SearchStrategy[Step] = st.builds(Clone, st.integers(0, 9))
MOVES: st.SearchStrategy[Step] = st.one_of(CLONES, CLONES, CLONES, st.builds(Convert))
UPKEEP: st.SearchStrategy[Step] = st.one_of(
    LAYOUT_STEPS, LAYOUT_STEPS, LIFE_STEPS, LIFE_STEPS, DEFINITION_STEPS, DEFINITION_STEPS, MOVES
)
