"""A frame with the identity of another: expressions that a user wrote for the other resolve in it.

A command reads its target file by file, and materializes its source once. Conditions and values were written for the
user's frames: texts with their aliases, and Columns that belong to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.jvm_plans import analyzed, items


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


def _attributes(frame: Any) -> list[Any]:
    return items(analyzed(frame).output())


def _classic(frame: DataFrame, original: DataFrame, known: bool) -> DataFrame:
    """A projection whose columns have the ids and qualifiers of the original's: resolved references hold ids."""
    spark: Any = frame.sparkSession
    alias, new_id = _aliasing(spark), spark._jvm.org.apache.spark.sql.catalyst.expressions.NamedExpression.newExprId
    columns, wanted = [], _attributes(original)
    for place, attribute in enumerate(_attributes(frame)):
        if place >= len(wanted):
            columns.append(attribute)
            continue
        like = wanted[place]
        if known and like.exprId().equals(attribute.exprId()):
            columns.append(attribute.withQualifier(like.qualifier()))
            continue
        columns.append(alias(attribute, like.name(), like.exprId() if known else new_id(), like.qualifier()))
    return _projection(frame, columns)


def _aliasing(spark: Any) -> Callable[..., Any]:
    """Makes an attribute with a name, an id and, if given, a qualifier."""
    jvm, nothing = spark._jvm, _seq(spark, ())
    alias, none = jvm.org.apache.spark.sql.catalyst.expressions.Alias, jvm.scala.Option.empty()
    return lambda attribute, name, number, qualifier=nothing: alias(attribute, name, number, qualifier, none, nothing)


def _projection(frame: Any, columns: Iterable[Any]) -> DataFrame:
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    spark = frame.sparkSession
    sql = spark._jvm.org.apache.spark.sql
    plan = sql.catalyst.plans.logical.Project(_seq(spark, columns), analyzed(frame))
    return ClassicFrame(sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


def _seq(spark: Any, values: Iterable[Any]) -> Any:
    found = spark._jvm.java.util.ArrayList()
    for item in values:
        found.add(item)
    return spark._jvm.org.apache.spark.api.python.PythonUtils.toSeq(found)


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
    """Whether the plan is ``select("*")``, which ``resolving_columns_of`` makes too."""
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


# --- a frame of a command, in which the Columns of the user's frames of the same table resolve


def resolving_columns_of(frame: DataFrame, known: Sequence[DataFrame], alias: str | None = None) -> DataFrame:
    """``frame`` with the same rows and columns under ``alias``, in which Columns of ``known`` resolve by their names.

    ``table.toDF().id == 7`` names a column of that frame, not any column called ``id``. A command has a frame of its
    own: of fewer files, with positions of rows, perhaps of a later version. So its columns get the identity of the
    user's columns of the same names.

    ``known``: the results of ``DeltaTable.toDF``, the one without an alias first; if empty, the columns do not
    change. Only Columns need this; SQL text resolves by name anyway. A query that uses a frame of ``known`` itself must
    not get it.
    """
    if is_remote(frame.sparkSession):
        found: DataFrame = _remote_by_names(frame, known, alias)
        return found
    same = _classic_by_names(frame, known[0]) if known else frame
    return same if alias is None else same.alias(alias)


def _remote_by_names(frame: Any, known: Sequence[Any], alias: str | None) -> Any:
    """On Spark Connect a Column names the plan that it belongs to by a number, and the server looks for that plan.

    An aliased frame is a plan of its own. From a frame under another alias only the number is taken: a name with that
    alias might now mean a struct.
    """
    own = None
    for held in known:
        if alias is not None and getattr(held._plan, "_alias", None) == alias:
            own = held
        else:
            frame = _numbered(frame.select("*"), held)
    if alias is None:
        return frame
    return frame.alias(alias) if own is None else _numbered(frame.alias(alias), own)


def _numbered(frame: Any, held: Any) -> Any:
    frame._plan._root_plan_id = held._plan._plan_id
    return frame


def _classic_by_names(frame: Any, known: Any) -> DataFrame:
    """On a classic session a Column is an attribute with an id: each column gets the id of the user's column."""
    jvm = frame.sparkSession._jvm
    held = {attribute.name(): attribute for attribute in _attributes(known)}
    columns, alias = [], _aliasing(frame.sparkSession)
    for attribute in _attributes(frame):
        other = held.get(attribute.name())
        if other is not None and _stands_for(jvm, other, attribute):
            attribute = alias(attribute, attribute.name(), other.exprId())
        columns.append(attribute)
    return _projection(frame, columns)


def _stands_for(jvm: Any, held: Any, attribute: Any) -> bool:
    """Whether an expression that was resolved to the user's attribute may read this one instead.

    Types are fixed in the user's expressions: a value of another type, such as a widened one, would be misread, and so
    would a null in a struct that had none. Then Spark reports an unknown column. If a whole column is now nullable,
    Spark's analysis finds that itself.
    """
    types = getattr(getattr(jvm, "org.apache.spark.sql.types.DataType$"), "MODULE$")
    return bool(types.equalsIgnoreCompatibleNullability(attribute.dataType(), held.dataType()))
