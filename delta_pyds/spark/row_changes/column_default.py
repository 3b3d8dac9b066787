"""The expression of a column's default in place of the word DEFAULT, in an expression of the user.

Invariant: the text comes from the table, not from the user. So it is tried like every expression of a table before a
query contains it: it is one expression, names no column, and calls only functions that a table may use.

Protocol: "Default Columns".
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import CURRENT_DEFAULT, StructField, StructType
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.row_changes.table_expression import Trial, try_expressions
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.spark_expressions import spark_expression


def column_default(spark: SparkSession, configuration: TableConfiguration, field: StructField) -> str | None:
    """The text of a column's default; None for a column without a default. A comment at its end cannot hide later text.

    Raises: ExpressionError, ColumnNotFoundError for a refused default (see ``table_expression``).
    """
    text = field.metadata.get(CURRENT_DEFAULT)
    if text is None or not configuration.supports(Feature.ALLOW_COLUMN_DEFAULTS):
        return None
    none = StructType(())
    what = f"the default of column '{field.name}' of table {configuration.table_root}"
    sql = spark_expression(str(text), none, what).sql
    try_expressions(spark, to_spark(none), [Trial(sql, what, lambda value: value)])
    # a comment ends with its line, or after a backslash with the next one
    return f"({sql}\n\n)" if "--" in sql else sql
