"""The table that gets the changes: opened or created, and its columns compared with those of the changes.

Invariant: all that must be remembered for late changes is in columns and rows of the table. So a clone, a restored
version and time travel have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.resolved import MadeColumns
from delta_pyds.errors import ColumnNotFoundError, OptionError, TableNotFoundError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructField
from delta_pyds.redaction import Concealing
from delta_pyds.spark.apply_changes.rules import (
    DELETED_COLUMN,
    END_COLUMN,
    OWN_COLUMNS,
    SEQUENCE_COLUMN,
    START_COLUMN,
    ChangeRules,
)
from delta_pyds.spark.delta_table.table import DeltaTable, handle_of
from delta_pyds.spark.empty_frame import empty_frame
from delta_pyds.spark.registration import register
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.stored_values import spark_field
from delta_pyds.spark.session import write
from delta_pyds.storage.table_path import PathLike
from delta_pyds.table.snapshot import Snapshot

if TYPE_CHECKING:
    from delta_pyds.catalog import Catalog

TARGET_ALIAS, CHANGES_ALIAS = "__target", "__changes"
# types whose values are always converted into the next ones without a loss
_WIDENING = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True, repr=False)
class Target(Concealing):
    """The location of the table. It holds no session, so it can be sent to another process.

    ``opened``: the handle of a DeltaTable, whose options count.
    """

    path: PathLike | None = None
    table: str | None = None
    catalog: str | Catalog | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    opened: TableHandle | None = None

    @staticmethod
    def of(
        target: DeltaTable | PathLike | None,
        table: str | None,
        catalog: str | Catalog | None,
        storage_options: Mapping[str, Any] | None,
    ) -> Target:
        """Raises: OptionError if no table is given, or two."""
        if (target is None) == (table is None):
            raise OptionError("give the target or its name (table=): one of them, not both.", option="target")
        if not isinstance(target, DeltaTable):
            return Target(target, table, catalog, storage_options or {})
        if catalog is not None or storage_options is not None:
            raise OptionError(
                "catalog and storage_options are given, but the target is a DeltaTable, which has its own.",
                option="target",
            )
        no_session: Any = None
        opened = replace(handle_of(target), spark=no_session, known_frames=(), on_schema_change=None)
        return Target(opened=opened)

    def open(self, spark: SparkSession, columns: T.StructType) -> TableHandle:
        """The table, for commands of this session. A path or name without a table gets one with these columns.

        Raises: as ``DeltaTable.forPath``, ``forName`` and ``write``.
        """
        if self.opened is not None:
            register(spark)
            return replace(self.opened, spark=spark, alias=TARGET_ALIAS)
        try:
            found = self._found(spark)
        except TableNotFoundError:
            # "ignore": another process may create it at the same time
            write(
                empty_frame(spark, columns),
                self.path,
                table=self.table,
                catalog=self.catalog,
                mode="ignore",
                storage_options=self.storage_options or None,
            )
            found = self._found(spark)
        return replace(handle_of(found), alias=TARGET_ALIAS)

    def _found(self, spark: SparkSession) -> DeltaTable:
        options = self.storage_options or None
        if self.table is not None:
            return DeltaTable.forName(spark, self.table, catalog=self.catalog, storage_options=options)
        assert self.path is not None
        return DeltaTable.forPath(spark, self.path, storage_options=options)


@dataclass(frozen=True)
class ChangeColumns:
    """Names in the spelling of the changes; the table's may differ in case.

    ``keys``, ``values``: the columns that the table gets. ``sequence``: the one of ``values`` that has the sequence;
    None if ``SEQUENCE_COLUMN`` has it.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...]
    sequence: str | None

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.keys, *self.values)

    def own(self, rules: ChangeRules) -> tuple[str, ...]:
        """The columns that the table has for the sequence, and for the memory of deletes."""
        if rules.history:
            return START_COLUMN, END_COLUMN
        sequence = () if self.sequence is not None else (SEQUENCE_COLUMN,)
        return (*sequence, DELETED_COLUMN) if rules.delete_when is not None and rules.tombstones else sequence


def change_columns(changes: DataFrame, rules: ChangeRules) -> ChangeColumns:
    """The columns of the changes that the table gets.

    Raises: ColumnNotFoundError for a name that the changes lack; OptionError for a key that is left out; UserError for
        a name that the table needs for itself.
    """
    given = {name.lower(): name for name in changes.columns}
    taken = next((given[own.lower()] for own in OWN_COLUMNS if own.lower() in given), None)
    if taken is not None:
        raise UserError(
            f"the changes have the column {taken}, a name that the table needs for itself: rename it.", column=taken
        )

    def found(argument: str, names: tuple[str, ...]) -> tuple[str, ...]:
        missing = next((name for name in names if name.lower() not in given), None)
        if missing is not None:
            raise ColumnNotFoundError(
                f"the argument {argument} names the column '{missing}', which the changes do not have. They have: "
                f"{', '.join(changes.columns)}.",
                column=missing,
                option=argument,
            )
        return tuple(given[name.lower()] for name in names)

    keys = found("keys", rules.keys)
    left_out = set(found("except_column_list", rules.except_columns))
    listed = changes.columns if rules.columns is None else found("column_list", rules.columns)
    chosen = [name for name in listed if name not in left_out]
    missing = next((key for key in keys if key not in chosen), None)
    if missing is not None:
        raise OptionError(
            f"the key '{missing}' is not among the columns that the table gets: put it into column_list, or take it "
            "out of except_column_list.",
            option="keys",
        )
    values = tuple(name for name in chosen if name not in keys)
    sequence = given.get((rules.sequence_name or "").lower())
    return ChangeColumns(keys, values, sequence if sequence in values and not rules.history else None)


def new_columns(columns: ChangeColumns, rules: ChangeRules, given: T.StructType, sequence: T.DataType) -> T.StructType:
    """The columns of a table that is created. ``given``: of the changes."""
    types = {one.name: one.dataType for one in given.fields}
    own = {name: T.BooleanType() if name == DELETED_COLUMN else sequence for name in columns.own(rules)}
    return T.StructType([T.StructField(name, types.get(name) or own[name]) for name in (*columns.all, *own)])


def require_columns(
    snapshot: Snapshot, columns: ChangeColumns, rules: ChangeRules, given: T.StructType, sequence: T.DataType
) -> None:
    """Check that the table has the columns of the changes and its own, with types that can be compared.

    Raises: ColumnNotFoundError, UserError.
    """
    root, schema = snapshot.table_root, snapshot.schema
    types = {one.name: one.dataType for one in given.fields}
    for name in columns.all:
        if schema.find(name) is None:
            raise ColumnNotFoundError(
                f"the changes have the column '{name}', which the table {root} does not have. Add it to the table, or "
                "name it in except_column_list.",
                column=name,
                table=root,
            )
    if not rules.history and schema.find(START_COLUMN) is not None:
        raise UserError(
            f"the table {root} has the column {START_COLUMN}, so it keeps the history of its rows, which changes with "
            "scd=1 would overwrite: pass scd=2, or give another table.",
            column=START_COLUMN,
            table=root,
            option="scd",
        )
    if rules.delete_when is not None and not rules.tombstones and schema.find(DELETED_COLUMN) is not None:
        raise UserError(
            f"tombstones=False is given, but the table {root} has the column {DELETED_COLUMN}, so its deleted keys "
            "keep a row. Leave out tombstones, or delete the rows with __DELETED = true and drop the column.",
            column=DELETED_COLUMN,
            table=root,
            option="tombstones",
        )
    for name in columns.own(rules):
        if schema.find(name) is None:
            declared = "BOOLEAN" if name == DELETED_COLUMN else sequence.simpleString().upper()
            without = ", or pass tombstones=False if changes never come late" if name == DELETED_COLUMN else ""
            raise ColumnNotFoundError(
                f"the table {root} does not have the column {name}, which late changes need: add it with ALTER TABLE "
                f"... ADD COLUMN {name} {declared}{without}.",
                column=name,
                table=root,
            )
    filled = MadeColumns.of(snapshot.configuration).all
    own = columns.own(rules) if rules.history else (*columns.own(rules), DELETED_COLUMN)
    covered = {name.lower() for name in (*columns.all, *own)}
    for one in schema:
        if one.name.lower() not in covered and one.name not in filled:
            raise ColumnNotFoundError(
                f"the table {root} has the column '{one.name}', which the changes do not have: add it to the changes, "
                "or give it a default. Generated and identity columns need none.",
                column=one.name,
                table=root,
            )
    held_in = START_COLUMN if rules.history else columns.sequence or SEQUENCE_COLUMN
    checked = [*((name, types[name], "keys") for name in columns.keys), (held_in, sequence, "sequence_by")]
    for name, kind, argument in checked:
        stored = schema.find(name)
        assert stored is not None
        _require_type(root, name, kind, stored, argument)


def same_type(kind: T.DataType, stored: StructField) -> bool:
    """Whether values of a column of the changes and of the table compare without a conversion."""
    return kind.simpleString() == spark_field(stored).dataType.simpleString()


def _require_type(root: str, name: str, kind: T.DataType, stored: StructField, argument: str) -> None:
    wanted, got = spark_field(stored).dataType.simpleString(), kind.simpleString()
    widened = wanted in _WIDENING and got in _WIDENING and _WIDENING.index(got) <= _WIDENING.index(wanted)
    if got != wanted and not widened:
        raise UserError(
            f"the argument {argument} compares {name} of the changes, of type {got.upper()}, with {stored.name} of the "
            f"table {root}, of type {wanted.upper()}: cast it in the changes.",
            column=stored.name,
            table=root,
            option=argument,
        )


def qualified(alias: str, name: str) -> str:
    """The SQL of a column of the table or of the changes."""
    return quote_name(alias, name)
