"""What a user says of a column that is there: another type, comment, nullability, default or place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_pyds.commands.definition.alter_column import ColumnChange
from delta_pyds.errors import OptionError
from delta_pyds.spark.delta_table import column_definitions as definitions
from delta_pyds.spark.table_commands import argument_checks as checks
from delta_pyds.table.definition.schema_paths import Path, Position, one_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql import types as spark_types


@dataclass(frozen=True)
class AlteredColumn:
    """The arguments of ``DeltaTable.alterColumn``."""

    name: str
    data_type: str | spark_types.DataType | None = None
    comment: str | None = None
    nullable: bool | None = None
    default: str | None = None
    drop_default: bool = False
    first: bool = False
    after: str | None = None

    def change(self, spark: SparkSession) -> tuple[Path, ColumnChange]:
        """Raises: OptionError where nothing is said, or too much."""
        checks.text(self.name, "name")
        field = None if self.data_type is None else definitions.column(spark, "c", self.data_type)
        place = position(self.first, self.after)
        change = ColumnChange(field, self.comment, self.nullable, self.default, self.drop_default, place)
        if change == ColumnChange():
            raise OptionError(f"nothing is said of what shall change of the column '{self.name}'.", option="name")
        return one_path(self.name), change


def position(first: Any, after: Any) -> Position | None:
    checks.flag(first, "first")
    if after is not None:
        checks.text(after, "after")
    if first and after is not None:
        raise OptionError("a column stands first, or after another one: give one of the two.", option="after")
    if after is not None:
        return Position(one_path(after)[-1])
    return Position() if first else None
