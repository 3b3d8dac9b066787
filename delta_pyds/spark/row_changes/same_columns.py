"""A frame in which a user's Columns of another frame of the same table resolve.

``table.toDF().id == 7`` names a column of that frame, not any column called ``id``. A command has a frame of its own:
of fewer files, with positions of rows, perhaps of a later version. So its columns get the identity of the user's
columns of the same names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delta_pyds.spark.active_session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


def resolving_columns_of(frame: DataFrame, known: Sequence[DataFrame], alias: str | None = None) -> DataFrame:
    """``frame`` with the same rows and columns under ``alias``, in which Columns of ``known`` resolve by their names.

    ``known``: the results of ``DeltaTable.toDF``, the one without an alias first; if empty, the columns do not
    change. Only Columns need this; SQL text resolves by name anyway. A query that uses a frame of ``known`` itself must
    not get it.
    """
    if is_remote(frame.sparkSession):
        found: DataFrame = _remote(frame, known, alias)
        return found
    same = _classic(frame, known[0]) if known else frame
    return same if alias is None else same.alias(alias)


def _remote(frame: Any, known: Sequence[Any], alias: str | None) -> Any:
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


def _classic(frame: Any, known: Any) -> DataFrame:
    """On a classic session a Column is an attribute with an id: each column gets the id of the user's column."""
    from pyspark.sql import DataFrame

    spark = frame.sparkSession
    jvm = spark._jvm
    held = {attribute.name(): attribute for attribute in _output(known)}
    columns = jvm.java.util.ArrayList()
    for attribute in _output(frame):
        other = held.get(attribute.name())
        if other is None or not _stands_for(jvm, other, attribute):
            columns.add(attribute)
        else:
            columns.add(_renumbered(jvm, attribute, other.exprId()))
    seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq(columns)
    plan = jvm.org.apache.spark.sql.catalyst.plans.logical.Project(seq, frame._jdf.queryExecution().analyzed())
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


def _output(frame: Any) -> list[Any]:
    attributes = frame._jdf.queryExecution().analyzed().output()
    return [attributes.apply(i) for i in range(attributes.size())]


def _stands_for(jvm: Any, held: Any, attribute: Any) -> bool:
    """Whether an expression that was resolved to the user's attribute may read this one instead.

    Types are fixed in the user's expressions: a value of another type, such as a widened one, would be misread, and so
    would a null in a struct that had none. Then Spark reports an unknown column. If a whole column is now nullable,
    Spark's analysis finds that itself.
    """
    types = getattr(getattr(jvm, "org.apache.spark.sql.types.DataType$"), "MODULE$")
    return bool(types.equalsIgnoreCompatibleNullability(attribute.dataType(), held.dataType()))


def _renumbered(jvm: Any, attribute: Any, number: Any) -> Any:
    nothing = jvm.org.apache.spark.api.python.PythonUtils.toSeq(jvm.java.util.ArrayList())
    alias = getattr(jvm, f"{_EXPRESSIONS}.Alias")
    return alias(attribute, attribute.name(), number, nothing, jvm.scala.Option.empty(), nothing)
