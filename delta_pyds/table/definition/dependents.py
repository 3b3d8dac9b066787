"""What of a table depends on a column: constraints, generated columns, invariants, partitioning, clustering.

Invariant: in doubt a column is depended on. An expression that our parser does not know names every column whose name
is one of its words; one that no parser knows names all.

Protocol: "CHECK Constraints", "Generated Columns", "Column Invariants", "Clustered Table".
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
from delta_pyds.table.definition.statistics_columns import show_path


@dataclass(frozen=True)
class Dependent:
    """An expression of a table. ``kind``: what it is, in words. ``name``: its own, or its column's."""

    kind: str
    name: str
    sql: str


def check_nothing_depends(configuration: TableConfiguration, path: Path, verb: str) -> None:
    """Refuse to change a column that an expression of the table needs as it is.

    ``verb``: what is to be done with the column, such as ``rename``.

    Raises: UserError (DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE, DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE) naming
        the expressions.
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
        else "Drop it first (dropConstraint), and add it again for the column as it is then"
    )
    raise UserError(
        f"cannot {verb} the column '{show_path(path)}' of table {configuration.table_root}, which "
        f"{', '.join(f'the {one.kind} {one.name} ({one.sql})' for one in found)} depends on. {remedy}.",
        code=code if first.kind != "invariant" else "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        table=configuration.table_root,
        column=show_path(path),
        dependents=[one.name for one in found],
    )


def dependents(configuration: TableConfiguration) -> Iterator[Dependent]:
    """All expressions of the table that see columns."""
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
    """Whether an expression sees the column at a path, something in it, or what it is in."""
    try:
        # the clock and the zone change no name
        found = references(parse_expression(sql, schema, time_zone="UTC", ansi=True, now_micros=0).expr)
    except DeltaError:
        names = possible_names(sql)
        return names is None or path[0].lower() in names
    lower = tuple(part.lower() for part in _through_structs(schema, path))
    return any(_overlap(tuple(part.lower() for part in reference), lower) for reference in found)


def _through_structs(schema: StructType, path: Path) -> Path:
    """The path up to the first array or map: an expression names no element, key or value."""
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
