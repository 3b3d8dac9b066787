"""Expressions of a table that depend on a column: constraints, generated columns and invariants.

Invariant: in doubt a column counts as used. If our parser does not support an expression, every column whose name is
one of its words counts; if it cannot be tokenized, all columns count.

Protocol: "CHECK Constraints", "Generated Columns", "Column Invariants".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from delta_pyds.errors import DeltaError, UserError
from delta_pyds.expr.nodes import references
from delta_pyds.expr.parse import parse_expression
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX
from delta_pyds.protocol.schema import GENERATION_EXPRESSION, INVARIANTS, DataType, StructField, StructType, structs
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.schema_paths import Path
from delta_pyds.table.definition.spark_expressions import possible_names
from delta_pyds.table.definition.statistics_columns import lower_path, show_path


@dataclass(frozen=True)
class Dependent:
    """An expression of a table. ``kind``: words such as "CHECK constraint". ``name``: its own or its column's."""

    kind: str
    name: str
    sql: str


def check_nothing_depends(configuration: TableConfiguration, path: Path, verb: str) -> None:
    """Refuse to change a column that an expression of the table uses.

    Args:
        verb: the change, for the message, such as ``rename``.
    Raises:
        UserError: DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE or DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE, with the
            names of the expressions.
    """
    found = [one for one in dependents(configuration) if depends_on(one.sql, configuration.schema, path)]
    if not found:
        return
    generated = [one for one in found if one.kind == "generated column"]
    first = (generated or found)[0]
    code = (
        "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE" if generated else "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    )
    remedy = (
        "Overwrite the table without that generated column first"
        if generated
        else "Drop it first (dropConstraint), and add it again after the change"
    )
    raise UserError(
        f"cannot {verb} the column '{show_path(path)}' of table {configuration.table_root}: it is used by "
        f"{', '.join(f'the {one.kind} {one.name} ({one.sql})' for one in found)}. {remedy}.",
        code=code if first.kind != "invariant" else "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        table=configuration.table_root,
        column=show_path(path),
        dependents=[one.name for one in found],
    )


def dependents(configuration: TableConfiguration) -> Iterator[Dependent]:
    """All expressions of the table that use columns."""
    for key, text in sorted(configuration.configuration.items()):
        if key.lower().startswith(CONSTRAINT_PREFIX) and text is not None:
            yield Dependent("CHECK constraint", key[len(CONSTRAINT_PREFIX) :], text)
    for struct in structs(configuration.schema):
        for field in struct:
            yield from _of_field(field)


def _of_field(field: StructField) -> Iterator[Dependent]:
    generated = field.metadata.get(GENERATION_EXPRESSION)
    if isinstance(generated, str):
        yield Dependent("generated column", field.name, generated)
    invariant = field.metadata.get(INVARIANTS)
    if invariant is not None:
        try:
            text = decode_json(invariant)["expression"]["expression"]
        except (ValueError, TypeError, KeyError):
            text = str(invariant)
        yield Dependent("invariant", field.name, str(text))


def depends_on(sql: str, schema: StructType, path: Path) -> bool:
    """Whether an expression uses the column at a path, a field in it, or a struct that contains it."""
    try:
        # clock and time zone do not affect which names are used
        found = references(parse_expression(sql, schema, time_zone="UTC", ansi=True, now_micros=0).expr)
    except DeltaError:
        names = possible_names(sql)
        return names is None or path[0].lower() in names
    lower = lower_path(_through_structs(schema, path))
    return any(_overlap(lower_path(reference), lower) for reference in found)


def _through_structs(schema: StructType, path: Path) -> Path:
    """The path up to the first array or map: an expression does not name elements, keys or values."""
    found: list[str] = []
    data_type: DataType = schema
    for name in path:
        field = data_type.find(name) if isinstance(data_type, StructType) else None
        if field is None:
            break
        found.append(field.name)
        data_type = field.data_type
    return tuple(found)


def _overlap(reference: Sequence[str], path: Sequence[str]) -> bool:
    shorter = min(len(reference), len(path))
    return tuple(reference[:shorter]) == tuple(path[:shorter])
