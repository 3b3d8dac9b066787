"""The builder of one column: ``DeltaTable.columnBuilder``."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands import column_definitions as definitions
from delta_pyds.spark.table_commands.column_definitions import IdentityGenerator


class DeltaColumnBuilder:
    """One column, described step by step, as in the reference's Scala. ``DeltaTable.columnBuilder`` begins one.

    Each method changes this builder and returns it; ``build`` gives a field for ``addColumns``.

    >>> DeltaTable.columnBuilder(spark, "day").dataType("DATE").generatedAlwaysAs("CAST(at AS DATE)").build()
    """

    def __init__(self, spark: SparkSession, name: str) -> None:
        definitions.require_text("Column name must be str.", name)
        self._spark = spark
        self._name = name
        self._definition: dict[str, Any] = {}
        self._type: Any = None

    def dataType(self, dataType: str | spark_types.DataType) -> DeltaColumnBuilder:
        """Set the type.

        Args:
            dataType: The type, as SQL or as PySpark's class.

        Returns:
            This builder.
        """
        self._type = dataType
        return self

    def nullable(self, nullable: bool) -> DeltaColumnBuilder:
        """Set whether values may be null; by default they may.

        Args:
            nullable: Whether values may be null.

        Returns:
            This builder.
        """
        self._definition["nullable"] = nullable
        return self

    def generatedAlwaysAs(self, expr: str) -> DeltaColumnBuilder:
        """Let an expression compute each value.

        Args:
            expr: SQL over other columns.

        Returns:
            This builder.

        Raises:
            TypeError: ``expr`` is not a str.
        """
        definitions.require_text("Generated always as expression must be str.", expr)
        self._definition["generated_always_as"] = expr
        return self

    def generatedAlwaysAsIdentity(self, start: int = 1, step: int = 1) -> DeltaColumnBuilder:
        """Let the table assign a number to each row; a row with a number of its own is refused.

        Args:
            start: The first number.
            step: The difference between two numbers; negative to count down, not 0.

        Returns:
            This builder.
        """
        self._definition["generated_always_as"] = IdentityGenerator(start, step)
        return self

    def generatedByDefaultAsIdentity(self, start: int = 1, step: int = 1) -> DeltaColumnBuilder:
        """Let the table assign numbers to rows without one.

        Args:
            start: The first number.
            step: The difference between two numbers; negative to count down, not 0.

        Returns:
            This builder.
        """
        self._definition["generated_by_default_as"] = IdentityGenerator(start, step)
        return self

    def default(self, expr: str) -> DeltaColumnBuilder:
        """Set the value of rows without the column.

        Args:
            expr: SQL of a constant.

        Returns:
            This builder.
        """
        self._definition["default"] = expr
        return self

    def comment(self, comment: str) -> DeltaColumnBuilder:
        """Set the column's description.

        Args:
            comment: The description.

        Returns:
            This builder.
        """
        self._definition["comment"] = comment
        return self

    def build(self) -> spark_types.StructField:
        """Build the field. The arguments of the other methods are checked here.

        Returns:
            A field for ``DeltaTableBuilder.addColumns``; its metadata has the expression, identity and default.

        Raises:
            TypeError: An argument has the wrong type, or the type is missing.
            ValueError: Both generators are given, a step is 0, or the type is not a single type.
            ParseException: The type is not a type of Spark SQL.
            UserError: Tables do not support the type.

        >>> DeltaTable.columnBuilder(spark, "id").dataType("BIGINT").generatedAlwaysAsIdentity(start=1, step=1).build()
        """
        with errors_of_spark():
            made = definitions.column(self._spark, self._name, self._type, **self._definition)
            return definitions.for_pyspark(made)
