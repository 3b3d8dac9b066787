"""Checks whether incoming rows fit a table, and evolves its schema if the write may change it.

No implicit cast can lose a value, and no column is dropped silently: a mismatch is an error that shows both schemas.

Protocol: "Column Mapping", "Type Widening"; the rules are the reference's schema enforcement.
"""

from __future__ import annotations

import re
from dataclasses import replace

from delta_pyds.errors import ConstraintViolationError, UserError
from delta_pyds.protocol.features import ICEBERG_COMPAT_FEATURES, Feature
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_START,
    INVARIANTS,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    display,
    merge_parts,
)
from delta_pyds.protocol.type_changes import can_widen, is_checked_narrowing, is_lossless, record_type_changes
from delta_pyds.redaction import shown
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.column_mapping import assign_columns, recorded_max_id
from delta_pyds.table.definition.iceberg_rules import check_iceberg
from delta_pyds.table.definition.schema_rules import (
    check_added,
    check_duplicates,
    column_to_add,
)
from delta_pyds.tasks.scan_state import CHANGE_COLUMNS


def enforce_schema(configuration: TableConfiguration, incoming: StructType, *, merge_schema: bool) -> StructType:
    """The schema to write the incoming rows with: the table's, evolved as far as ``merge_schema`` allows.

    - Names match without case, nested ones too; the table's spelling wins.
    - Columns that the rows lack become null, or are filled as the table defines.
    - Types may differ if no value is lost. Integers of up to 32 bits may differ, too: each value is checked.
    - Columns of type void fit every schema.
    - With ``merge_schema`` other columns and nested fields are added at the end, nullable, with an id and a physical
      name under column mapping. Columns widen if ``delta.enableTypeWidening`` allows it, and the change is recorded.

    Returns: ``configuration.schema`` if nothing changes; otherwise a schema for ``schema_evolution.evolve_metadata``.
    Raises:
        UserError: DELTA_METADATA_MISMATCH for columns that the table lacks (shows both schemas);
            DELTA_FAILED_TO_MERGE_FIELDS for types; DELTA_DUPLICATE_COLUMNS_FOUND; DELTA_PARTITION_COLUMN_NOT_FOUND;
            DELTA_CONSTRAINT_DATA_TYPE_MISMATCH and DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH for widening a column
            that expressions use; errors of ``schema_rules`` for new columns.
        ConstraintViolationError: DELTA_MISSING_NOT_NULL_COLUMN_VALUE.
    """
    check_duplicates(incoming)
    _check_change_columns(configuration, incoming)
    merge = _SchemaMerge(configuration, incoming, merge_schema)
    merged = merge.struct(configuration.schema, incoming, ())
    _check_missing(configuration, incoming)
    merge.refuse_additions()
    if merged == configuration.schema:
        return configuration.schema
    mapped = configuration.column_mapping_mode != "none"
    check_added(merge.added, mapped=mapped, reserved=configuration.hidden_columns)
    iceberg = configuration.properties.iceberg_compat
    check_iceberg(merged, iceberg, configuration.partition_columns)
    if mapped:
        max_id = recorded_max_id(configuration.configuration)
        merged, _ = assign_columns(merged, max_id, nested_ids=(iceberg or 0) >= 2)
    return merged


class _SchemaMerge:
    """Merges incoming types into the table's. ``added``: the fields that the table gets, by path."""

    def __init__(self, configuration: TableConfiguration, incoming: StructType, may_change: bool) -> None:
        self._configuration = configuration
        self._incoming = incoming
        self._may_change = may_change
        self._widens = configuration.properties.type_widening and configuration.supports(Feature.TYPE_WIDENING)
        self._for_iceberg = any(configuration.supports(ICEBERG_COMPAT_FEATURES[v]) for v in (1, 2))
        self.added: dict[tuple[str, ...], StructField] = {}

    def struct(self, table: StructType, incoming: StructType, path: tuple[str, ...]) -> StructType:
        fields = []
        for f in table:
            given = incoming.find(f.name)
            if given is None:
                if path and not f.nullable:
                    raise _missing(self._configuration, (*path, f.name))
                fields.append(f)
                continue
            merged = self.type(f.data_type, given.data_type, (*path, f.name))
            if merged != f.data_type:
                self._check_expressions(f, (*path, f.name), f.data_type, merged)
                f = record_type_changes(replace(f, data_type=merged), f.data_type)
            fields.append(f)
        for given in incoming:
            # a void column has no values to lose
            if table.find(given.name) is None and given.data_type != VOID:
                column, new_path = column_to_add(given), (*path, given.name)
                self.added[new_path] = column
                fields.append(column)
        return StructType(tuple(fields))

    def type(self, table: DataType, incoming: DataType, path: tuple[str, ...]) -> DataType:
        if isinstance(table, StructType) and isinstance(incoming, StructType):
            return self.struct(table, incoming, path)
        merged = merge_parts(table, incoming, lambda part, other, name: self.type(part, other, (*path, name)))
        if merged is not None:
            return merged
        if table == incoming or incoming == VOID:
            return table
        if table == VOID:
            # a void column gets its first real type
            self.added[path] = column_to_add(StructField(path[-1], incoming))
            return self.added[path].data_type
        if self._may_change and self._widens and can_widen(table, incoming, for_iceberg=self._for_iceberg):
            return incoming
        if is_lossless(incoming, table) or is_checked_narrowing(incoming, table):
            return table
        raise self._incompatible(table, incoming, path)

    def refuse_additions(self) -> None:
        """Refuse all new columns in one error, unless columns may be added."""
        if self._may_change or not self.added:
            return
        names = ", ".join(f"'{'.'.join(path)}'" for path in self.added)
        raise UserError(
            f"the incoming rows do not have the schema of table {self._configuration.table_root}, which lacks the "
            f"column {names}. To add it to the table, write with the option mergeSchema=true. To replace the schema, "
            'write with .mode("overwrite") and overwriteSchema=true. Otherwise leave the column out.\n'
            f"Table schema:\n{tree(self._configuration.schema)}\nData schema:\n{tree(self._incoming)}",
            code="DELTA_METADATA_MISMATCH",
            multiline=True,
            table=self._configuration.table_root,
            columns=[".".join(path) for path in self.added],
        )

    def _incompatible(self, table: DataType, incoming: DataType, path: tuple[str, ...]) -> UserError:
        column = ".".join(path)
        hint = "Cast the column before writing."
        if can_widen(table, incoming, for_iceberg=self._for_iceberg):
            hint += (
                " Or let the table's column widen: with the table property delta.enableTypeWidening=true "
                "and the option mergeSchema=true."
            )
        return UserError(
            f"the column '{column}' of table {self._configuration.table_root} is of type {display(table)}, but the "
            f"incoming rows have type {display(incoming)}, which could lose values. {hint}",
            code="DELTA_FAILED_TO_MERGE_FIELDS",
            table=self._configuration.table_root,
            column=column,
            table_type=display(table),
            incoming_type=display(incoming),
        )

    def _check_expressions(self, f: StructField, path: tuple[str, ...], old: DataType, new: DataType) -> None:
        """Refuse to change the type of a column that expressions use: for old rows their meaning could change."""
        if _without_additions(new, old) == old:
            return
        constraints = {
            key.removeprefix(CONSTRAINT_PREFIX): text
            for key, text in self._configuration.configuration.items()
            if key.startswith(CONSTRAINT_PREFIX)
        }
        generated = {
            g.name: str(g.metadata[GENERATION_EXPRESSION])
            for g in self._configuration.schema
            if GENERATION_EXPRESSION in g.metadata
        }
        invariants = {
            g.name: str(g.metadata[INVARIANTS]) for g in self._configuration.schema if INVARIANTS in g.metadata
        }
        using = [n for n, text in {**constraints, **invariants}.items() if _mentions(text or "", path[0])]
        makers = [n for n, text in generated.items() if n == path[0] or _mentions(text, path[0])]
        if using or makers:
            kind = "the constraint" if using else "the generated column"
            raise UserError(
                f"the column '{'.'.join(path)}' of table {self._configuration.table_root} cannot change its type from "
                f"{display(old)} to {display(new)}: {kind} {', '.join(using or makers)} uses it. Cast the column "
                "before writing.",
                code="DELTA_CONSTRAINT_DATA_TYPE_MISMATCH" if using else "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
                table=self._configuration.table_root,
                column=f.name,
            )


def tree(schema: StructType) -> str:
    """The schema as a tree, one line for each part, as Spark prints it."""
    lines = ["root"]

    def part(name: str, data_type: DataType, nullable: bool | None, depth: int, word: str = "nullable") -> None:
        kind = {StructType: "struct", ArrayType: "array", MapType: "map"}.get(type(data_type)) or display(data_type)
        suffix = "" if nullable is None else f" ({word} = {str(nullable).lower()})"
        lines.append(f"{' |   ' * depth} |-- {shown(name)}: {kind}{suffix}")
        if isinstance(data_type, StructType):
            for f in data_type:
                part(f.name, f.data_type, f.nullable, depth + 1)
        elif isinstance(data_type, ArrayType):
            part("element", data_type.element_type, data_type.contains_null, depth + 1, "containsNull")
        elif isinstance(data_type, MapType):
            part("key", data_type.key_type, None, depth + 1)
            part("value", data_type.value_type, data_type.value_contains_null, depth + 1, "valueContainsNull")

    for f in schema:
        part(f.name, f.data_type, f.nullable, 0)
    return "\n".join(lines)


def _check_missing(configuration: TableConfiguration, incoming: StructType) -> None:
    for f in configuration.schema:
        if incoming.find(f.name) is not None or _is_filled(configuration, f):
            continue
        if f.name in configuration.partition_columns:
            raise UserError(
                f"the incoming rows lack the column '{f.name}', which table {configuration.table_root} is partitioned "
                f"by. They have: {', '.join(incoming.names)}. Add the column; it may be null.",
                code="DELTA_PARTITION_COLUMN_NOT_FOUND",
                table=configuration.table_root,
                column=f.name,
            )
        if not f.nullable:
            raise _missing(configuration, (f.name,))


def _is_filled(configuration: TableConfiguration, f: StructField) -> bool:
    """Whether the table defines how to fill the column."""
    return any(
        key in f.metadata and configuration.supports(feature)
        for key, feature in (
            (CURRENT_DEFAULT, Feature.ALLOW_COLUMN_DEFAULTS),
            (GENERATION_EXPRESSION, Feature.GENERATED_COLUMNS),
            (IDENTITY_START, Feature.IDENTITY_COLUMNS),
        )
    )


def _missing(configuration: TableConfiguration, path: tuple[str, ...]) -> ConstraintViolationError:
    column = ".".join(path)
    return ConstraintViolationError(
        f"the column '{column}' of table {configuration.table_root} is NOT NULL, has no default, and is missing from "
        "the incoming rows. Add it.",
        code="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
        table=configuration.table_root,
        column=column,
    )


def _check_change_columns(configuration: TableConfiguration, incoming: StructType) -> None:
    if not configuration.properties.change_data_feed:
        return
    reserved = [f.name for f in incoming if f.name.lower() in CHANGE_COLUMNS]
    if reserved:
        raise UserError(
            f"the incoming rows have the column {', '.join(reserved)}, a name that the change data feed of table "
            f"{configuration.table_root} reserves. Rename or drop it.",
            code="RESERVED_CDC_COLUMNS_ON_WRITE",
            table=configuration.table_root,
            columns=reserved,
        )


def _mentions(expression: str, column: str) -> bool:
    """Whether the text could use the column. Words in string literals count too, because refusing is safe."""
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", expression, re.IGNORECASE) is not None


def _without_additions(new: DataType, old: DataType) -> DataType:
    """``new`` without the fields that ``old`` lacks; equal to ``old`` if no common part changed its type."""
    if isinstance(new, StructType) and isinstance(old, StructType):
        kept = zip(new.fields, old.fields, strict=False)
        return StructType(tuple(replace(o, data_type=_without_additions(n.data_type, o.data_type)) for n, o in kept))
    return merge_parts(new, old, lambda part, other, _: _without_additions(part, other)) or new
