"""What an update sets: columns and nested fields of a table, by the names that a user gives.

Invariant: names are the table's own, whatever stands before them and however they are spelt; no field is set twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_pyds.errors import ColumnNotFoundError, OptionError, UserError
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import IDENTITY_START, DataType, StructField, StructType
from delta_pyds.spark.row_changes.column_default import column_default
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.scan.column_selection import parse_column_list

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


@dataclass(frozen=True)
class SetColumn:
    """``path``: of names from the top. ``data_type``: of what is set. ``value``: as the user gave it."""

    path: tuple[str, ...]
    data_type: DataType
    value: Column | str


def set_columns(
    spark: SparkSession,
    configuration: TableConfiguration,
    assignments: Mapping[str, Column | str],
    alias: str | None,
) -> list[SetColumn]:
    """The assignments, resolved.

    Raises: ColumnNotFoundError for a name that is not there; UserError for a field of what is no struct, for what is
        set twice (DELTA_CONFLICT_SET_COLUMN) and for an identity column; OptionError for what is no name;
        ExpressionError for a default that is refused (see ``table_expression``).
    """
    table = configuration.table_root
    found: list[SetColumn] = []
    for name, value in assignments.items():
        path, data_type = _resolved(name, configuration.schema, alias, table)
        for other in found:
            shorter = min(len(path), len(other.path))
            if path[:shorter] == other.path[:shorter]:
                raise UserError(
                    f"There is a conflict from these SET columns: [{'.'.join(other.path)}, {'.'.join(path)}]. Set each "
                    f"column of table {table} once.",
                    code="DELTA_CONFLICT_SET_COLUMN",
                    table=table,
                )
        top = configuration.schema.find(path[0])
        if top is not None and IDENTITY_START in top.metadata and configuration.supports(Feature.IDENTITY_COLUMNS):
            raise UserError(
                f"the column '{path[0]}' of table {table} is an identity column, whose values cannot be updated.",
                code="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                table=table,
                column=path[0],
            )
        found.append(SetColumn(path, data_type, _or_default(spark, value, top, configuration)))
    return found


def _or_default(
    spark: SparkSession, value: Column | str, field: StructField | None, configuration: TableConfiguration
) -> Column | str:
    """The word DEFAULT stands for the column's default, null where it has none."""
    if not isinstance(value, str) or value.strip().upper() != "DEFAULT" or configuration.schema.find("default"):
        return value
    return "NULL" if field is None else column_default(spark, configuration, field) or "NULL"


def _resolved(name: str, schema: StructType, alias: str | None, table: str) -> tuple[tuple[str, ...], DataType]:
    try:
        paths = parse_column_list(name, "set")
    except OptionError:
        paths = ()
    if len(paths) != 1:
        raise OptionError(
            f"{name!r} is not the name of a column of table {table}: one with dots, commas or the like goes in "
            "backticks.",
            option="set",
        )
    parts = paths[0]
    if alias is not None and len(parts) > 1 and parts[0].lower() == alias.lower() and schema.find(parts[1]) is not None:
        parts = parts[1:]
    path: list[str] = []
    inside: DataType = schema
    for part in parts:
        if not isinstance(inside, StructType):
            raise UserError(
                f"Updating nested fields is only supported for StructType, but '{'.'.join(path)}' of table {table} is "
                "of another type. Set the whole column.",
                code="DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
                table=table,
                column=".".join(path),
            )
        field = inside.find(part)
        if field is None:
            raise ColumnNotFoundError(
                f"the update sets '{name}', and the table {table} has no such column: it has "
                f"{', '.join(schema.names)}.",
                code="UNRESOLVED_COLUMN.WITH_SUGGESTION",
                column=name,
            )
        path.append(field.name)
        inside = field.data_type
    return tuple(path), inside
