"""A frame with the identity of another: expressions that a user wrote for the other resolve in it.

A command reads its target file by file, and materializes its source once. Conditions and values were written for the
user's frames: texts with their aliases, and Columns that belong to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_pyds.spark.active_session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_identity_of(frame: DataFrame, original: DataFrame, *, known: bool = True) -> DataFrame:
    """The rows of ``frame`` under the identities of ``original``.

    Invariant: an expression that resolves in ``original`` resolves in the result, and means the column at the same
    position. ``frame``: has the columns of ``original`` first, in their order and types; others do not change.
    ``known``: if false, only the aliases of ``original`` are taken, and its Columns do not resolve.
    """
    if is_remote(frame.sparkSession):
        return _remote(frame, original, known)
    return _classic(frame, original, known)


def shared_columns(one: DataFrame, other: DataFrame) -> bool:
    """Whether a Column may mean either frame, because one frame was derived from the other and has its columns."""
    if is_remote(one.sparkSession):
        ids = {plan._plan_id for plan in _chain(one)}
        return any(plan._plan_id in ids for plan in _chain(other))
    ids = {attribute.exprId().toString() for attribute in _attributes(one)}
    return any(attribute.exprId().toString() in ids for attribute in _attributes(other))


def _attributes(frame: DataFrame) -> list[Any]:
    output = _jvm_frame(frame).queryExecution().analyzed().output()
    return [output.apply(i) for i in range(output.size())]


def _jvm_frame(frame: DataFrame) -> Any:
    return frame._jdf


def _classic(frame: DataFrame, original: DataFrame, known: bool) -> DataFrame:
    """A projection whose columns have the ids and qualifiers of the original's: resolved references hold ids."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    spark: Any = frame.sparkSession
    jvm = spark._jvm
    columns = jvm.scala.collection.mutable.ArrayBuffer()
    nothing = jvm.scala.Option.empty()
    alias = jvm.org.apache.spark.sql.catalyst.expressions.Alias
    wanted = _attributes(original)
    for place, attribute in enumerate(_attributes(frame)):
        if place >= len(wanted):
            columns.addOne(attribute)
            continue
        like = wanted[place]
        if known and like.exprId().equals(attribute.exprId()):
            columns.addOne(attribute.withQualifier(like.qualifier()))
            continue
        number = like.exprId() if known else jvm.org.apache.spark.sql.catalyst.expressions.NamedExpression.newExprId()
        keys = jvm.scala.collection.mutable.ArrayBuffer().toSeq()
        columns.addOne(alias(attribute, like.name(), number, like.qualifier(), nothing, keys))
    plan = jvm.org.apache.spark.sql.catalyst.plans.logical.Project(
        columns.toSeq(), _jvm_frame(frame).queryExecution().analyzed()
    )
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)
    return ClassicFrame(rows, spark)


# --- Spark Connect: a Column has the number of its plan, and aliases are plans

_ROWS_ONLY = (
    "Filter", "Sort", "Limit", "Offset", "Tail", "Sample", "Repartition", "RepartitionByExpression", "Hint",
    "Deduplicate", "CachedRelation",
)  # fmt: skip


def _chain(frame: DataFrame) -> list[Any]:
    """The plans of a frame that have the same columns, outermost first."""
    plan = _plan(frame)
    found = [plan]
    while plan._child is not None and (type(plan).__name__ in (*_ROWS_ONLY, "SubqueryAlias") or _is_star(plan)):
        plan = plan._child
        found.append(plan)
    return found


def _is_star(plan: Any) -> bool:
    """Whether the plan is ``select("*")``, which ``same_columns`` makes too."""
    columns = plan._columns if type(plan).__name__ == "Project" else []
    return len(columns) == 1 and str(columns[0]) == "Column<'unresolvedstar()'>"


def has_other_aliases(frame: DataFrame) -> bool:
    """Whether names may have an alias that ``with_identity_of`` does not see: on Spark Connect, one below a join or the
    like, and the name of a table in a catalog.
    """
    if not is_remote(frame.sparkSession):
        return False
    known = {id(plan) for plan in _chain(frame)}
    pending = [_plan(frame)]
    while pending:
        plan = pending.pop()
        if id(plan) not in known and type(plan).__name__ in ("SubqueryAlias", "Read"):
            return True
        # a plan has one child, or a left and a right one, or several
        parts = [getattr(plan, name, None) for name in ("_child", "left", "right", "_left", "_right")]
        pending += [part for part in parts if hasattr(part, "_root_plan_id")]
        pending += [part for part in getattr(plan, "_children", None) or () if hasattr(part, "_root_plan_id")]
    return type(_chain(frame)[-1]).__name__ == "Read"


def _plan(frame: Any) -> Any:
    return frame._plan


def _remote(frame: DataFrame, original: DataFrame, known: bool) -> DataFrame:
    current = frame
    for plan in reversed(_chain(original)):
        named = type(plan).__name__ == "SubqueryAlias"
        current = current.alias(plan._alias) if named else current.select("*")
        if known:
            # Spark's server looks a Column up below the plan of this number
            _plan(current)._root_plan_id = plan._plan_id
    return current


def alias_of(frame: DataFrame) -> str | None:
    """The one alias that all columns of the frame have; None without such an alias."""
    if is_remote(frame.sparkSession):
        return next((str(plan._alias) for plan in _chain(frame) if type(plan).__name__ == "SubqueryAlias"), None)
    aliases = {attribute.qualifier().mkString(".") for attribute in _attributes(frame)}
    return aliases.pop() or None if len(aliases) == 1 else None
