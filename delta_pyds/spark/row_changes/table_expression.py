"""An expression of a table as a Column of Spark, after a trial on a frame without rows.

Invariants: its names are the table's columns, never other columns of a frame, hidden ones, variables of the session or
aliases. Its functions are Spark's own. It has no subquery, aggregate, window or generator, so it computes a row's
value from that row. Other expressions are refused before any row is read.

Spark itself checks this: a frame without rows has the table's columns, and twice each other name that the text could
mean, so a reference to such a name is ambiguous. Spark allows no aggregate, window or generator in a filter, and no
subquery or Python function in a lambda in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.errors import ColumnNotFoundError, DeltaError, ExpressionError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.expr.parser.recognizer import called_functions
from delta_pyds.spark.built_in_functions import called_by_operators, is_built_in, path_before_built_in
from delta_pyds.spark.empty_frame import empty_frame
from delta_pyds.spark.settings import QUOTED_REGEX_COLUMN_NAMES
from delta_pyds.spark.versions import calls_built_in_functions_first
from delta_pyds.table.definition.spark_expressions import possible_names

# Spark reads these names as calls if no column has the name
_CALLS_WITHOUT_PARENTHESES = frozenset(
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
    | {"current_user", "session_user", "user"}
)


@dataclass(frozen=True)
class Trial:
    """An expression to try. ``what``: its owner, for messages. ``use``: how its value is used.

    ``of_user``: given by the user, who may use everything in the session, not by a table.
    """

    sql: str
    what: str
    use: Callable[[Column], Column]
    of_user: bool = False


def try_expressions(
    spark: SparkSession, schema: spark_types.StructType, trials: Sequence[Trial]
) -> list[spark_types.DataType]:
    """The types of the expressions over rows of ``schema``. They may use only its names.

    Raises: ColumnNotFoundError for another name; ExpressionError for any other refusal, by us or Spark.
    """
    of_table = [trial for trial in trials if not trial.of_user]
    _check_functions(spark, of_table)
    _check_names(spark, of_table)
    try:
        return _tried(spark, schema, trials)
    except Exception as e:
        # Spark's exception, or py4j's if Spark's analyzer itself fails
        if len(trials) == 1:
            raise _refusal(e, trials[0], schema) from None
    # try each alone, to find the one that fails
    return [found for trial in trials for found in try_expressions(spark, schema, [trial])]


def _tried(spark: SparkSession, schema: spark_types.StructType, trials: Sequence[Trial]) -> list[spark_types.DataType]:
    columns = {name.lower() for name in schema.names}
    possible = frozenset().union(*(possible_names(trial.sql) or () for trial in trials if not trial.of_user))
    none = F.lit(None).cast("int")
    twice = [none.alias(name) for name in sorted(possible - columns - _CALLS_WITHOUT_PARENTHESES) for _ in range(2)]
    rows = empty_frame(spark, schema).select("*", *twice)
    for trial in trials:
        rows = rows.where(F.expr(trial.sql) if trial.of_user else _in_lambda(trial.sql).isNotNull())
    values = [F.expr(trial.sql) for trial in trials]
    uses = [trial.use(value) for trial, value in zip(trials, values, strict=True)]
    return [field.dataType for field in rows.select(*values, *uses).schema.fields[: len(trials)]]


def _in_lambda(sql: str) -> Column:
    return F.transform(F.array(F.lit(0)), lambda _: F.expr(sql))


def _check_functions(spark: SparkSession, trials: Sequence[Trial]) -> None:
    """Refuse functions that this session would not find among Spark's own.

    Names and operators (BETWEEN, EXTRACT) are looked up along the session's path. A name means Spark's own function
    only if Spark's own functions come first. A Spark without such a path has one register of names.
    """
    if not trials:
        return
    by_path = calls_built_in_functions_first(spark)
    if by_path and (first := path_before_built_in(spark)) is not None:
        raise _not_sparks(f"functions, and this session looks them up in {first} before Spark's own", trials[0])
    own: dict[str, bool] = {}
    for trial in trials:
        called = [call.name for call in called_functions(trial.sql)]
        if not by_path:
            called += [(name,) for name in sorted(called_by_operators(tokenize(trial.sql)))]
        for parts in called:
            name = parts[-1].lower()
            if name not in own:
                own[name] = len(parts) == 1 and is_built_in(spark, name)
            if not own[name]:
                raise _not_sparks(f"{'.'.join(parts)}, which is not one of Spark's own functions", trial, by_path)


def _check_names(spark: SparkSession, trials: Sequence[Trial]) -> None:
    quoted = next((trial for trial in trials if any(t.kind == "name" for t in tokenize(trial.sql))), None)
    if quoted is not None and (spark.conf.get(QUOTED_REGEX_COLUMN_NAMES, None) or "false").lower() != "false":
        raise ExpressionError(
            f"nothing can be written: {quoted.what}, {quoted.sql}, has a name in backticks, which this session "
            f"reads as a pattern. Set {QUOTED_REGEX_COLUMN_NAMES} to false.",
            code="DELTA_UNSUPPORTED_EXPRESSION",
            expression=quoted.sql,
        )


def _not_sparks(functions: str, trial: Trial, by_path: bool = True) -> ExpressionError:
    remedy = (
        " In this Spark, a function of the session replaces Spark's own of the same name. If the session has one, "
        "write in a session without it, such as spark.newSession()."
    )
    return ExpressionError(
        f"nothing can be written: {trial.what}, {trial.sql}, calls {functions}. An expression of a table may call "
        f"Spark's own functions only.{'' if by_path else remedy}",
        code="DELTA_UDF_IN_CHECK_CONSTRAINT",
        expression=trial.sql,
    )


def _refusal(e: Exception, trial: Trial, schema: spark_types.StructType) -> DeltaError:
    condition, parameters, lines = "", {}, 2
    if isinstance(e, PySparkException):
        condition, parameters, lines = (e.getCondition() or "").split(".")[0], e.getMessageParameters() or {}, 1
    if condition in ("AMBIGUOUS_REFERENCE", "UNRESOLVED_COLUMN"):
        name = parameters.get("name") or parameters.get("objectName") or "a name"
        return ColumnNotFoundError(
            f"nothing can be written: {trial.what}, {trial.sql}, names {name}, which is not one of the columns that it "
            f"can use: {', '.join(schema.names) or '(no columns)'}.",
            code="UNRESOLVED_COLUMN",
            expression=trial.sql,
        )
    first = " ".join(str(e).strip().splitlines()[:lines])
    return ExpressionError(
        f"nothing can be written: Spark cannot compute {trial.what}, {trial.sql}, for a row: {first}",
        code=condition or None,
        expression=trial.sql,
    )
