"""``BEGIN ... END`` and EXECUTE IMMEDIATE with statements on Delta tables, which Spark would run on catalog entries.

A script is not a transaction: each statement is one commit, as in the reference. The answer of a script is that of its
last query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.empty_frame import empty_frame
from delta_pyds.spark.log_rows import from_log
from delta_pyds.statements.scripts import Script, immediate_of, is_query

Run = Callable[..., "DataFrame"]


def run_script(spark: SparkSession, script: Script, args: Any, run: Run) -> DataFrame:
    """Run the statements of a script, one after the other.

    Raises: UnsupportedOperationError for the scripting language: variables, conditions, loops, handlers.
    """
    if script.control is not None:
        raise UnsupportedOperationError(
            f"{script.control} in a script that changes Delta tables, describes them or reads them by path is not "
            "supported by this version of delta_pyds. No statement of the script has run. Run its statements by "
            "spark.sql, with conditions and loops in Python.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            feature=script.control,
        )
    if isinstance(args, (list, tuple)) and args:
        raise UnsupportedOperationError(
            "the arguments ? in a script that changes Delta tables are not supported by this version of delta_pyds. "
            "Give them names, such as :id.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            feature="positional arguments",
        )
    answer = None
    for number, statement in enumerate(script.statements, 1):
        frame = run(spark, statement, args)
        if is_query(statement):
            # Spark runs each query at once, because later statements may change its tables
            last = number == len(script.statements)
            answer = frame if last else from_log(spark.createDataFrame(frame.collect(), frame.schema))
    return empty_frame(spark) if answer is None else answer


def immediate(spark: SparkSession, text: str, args: Any) -> tuple[str, Any] | None:
    """The statement that EXECUTE IMMEDIATE runs, and its arguments; None if Spark must run it, or report its error."""
    found = immediate_of(text)
    if found is None:
        return None
    given = args if isinstance(args, dict) else None
    try:
        row = spark.sql(f"SELECT {found.text} AS text", given).collect()[0]
        values = spark.sql(f"SELECT {found.arguments}", given).collect()[0] if found.arguments else None
    except PySparkException as error:
        if error.getCondition() is None:
            raise  # Spark did not answer
        return None
    if not isinstance(row[0], str):
        return None
    if values is None:
        return row[0], None
    return row[0], values.asDict() if found.named else list(values)
