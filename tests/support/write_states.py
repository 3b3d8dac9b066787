"""Write states for tests, made by hand: no planner, no parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.expr.nodes import Column, Comparison, Expr, Literal
from delta_pyds.protocol.schema import LONG, DataType, StructField, StructType
from delta_pyds.tasks.write_state import Check, ColumnSource, SessionExpression, WriteState

TABLE = "/tables/people"
SESSION = TaskSession(0)


def column(name: str, data_type: DataType = LONG, nullable: bool = True, **metadata: Any) -> StructField:
    return StructField(name, data_type, nullable, {k.replace("__", "."): v for k, v in metadata.items()})


def given(*fields: StructField) -> tuple[ColumnSource, ...]:
    """The table's columns, all of them brought by the rows in the table's order."""
    return tuple(ColumnSource(field, "input", i) for i, field in enumerate(fields))


def state_of(columns: Sequence[ColumnSource], checks: Sequence[Check] = (), **more: Any) -> WriteState:
    schema = StructType(tuple(c.field for c in columns))
    return WriteState(TABLE, {}, schema, tuple(columns), checks=tuple(checks), **more)


def expression(tree: Expr, sql: str = "", **more: Any) -> SessionExpression:
    return SessionExpression(sql or "the expression", tree, tree, **more)


def greater(name: str, value: int) -> SessionExpression:
    tree = Comparison(">", Column((name,), LONG), Literal(value, LONG))
    return expression(tree, f"{name} > {value}")


def batch(columns: Mapping[str, Any], types: Mapping[str, pa.DataType] | None = None) -> pa.RecordBatch:
    arrays = [
        v if isinstance(v, pa.Array) else pa.array(v, (types or {}).get(name, pa.int64()))
        for name, v in columns.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
