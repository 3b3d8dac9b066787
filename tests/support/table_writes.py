"""Writes of whole tables without Spark: the same plan, tasks and commit, one after another in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import commit_write, plan_write
from delta_pyds.data.read.reader import read
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.protocol.schema import StructType, parse_type
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.transaction import Committed
from delta_pyds.tasks.write_state import TaskOutput
from tests.support.delta_types import schema_of

Rows = Sequence[Mapping[str, Any]]


def ids(*values: int | None) -> list[dict[str, Any]]:
    """A row for each value of the column ``id``."""
    return [{"id": value} for value in values]


def struct(schema: Any) -> StructType:
    """A schema as TableBuilder takes it, ``{"id": "long"}``, as the package has it."""
    parsed = parse_type(schema_of(schema))
    assert isinstance(parsed, StructType)
    return parsed


def batch_of(rows: Rows | pa.Table, schema: StructType) -> list[pa.RecordBatch]:
    """Rows as Spark would hand them to a task."""
    if isinstance(rows, pa.Table):
        return rows.to_batches()
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(schema)).to_batches()


def write_rows(
    path: str | os.PathLike[str],
    schema: Any,
    rows: Rows | pa.Table | Sequence[Rows],
    mode: str = "append",
    *,
    session: Mapping[str, Any] | None = None,
    pause: Callable[[], None] = lambda: None,
    **request: Any,
) -> Committed | None:
    """Write rows with the given columns; a list of lists is one task for each inner list.

    ``pause`` is between the tasks and the commit.
    """
    incoming = schema if isinstance(schema, StructType) else struct(schema)
    plan = plan_write(WriteRequest(table_root=os.fspath(path), incoming=incoming, mode=mode, **request))
    tasks: Sequence[Any] = [rows]
    if not isinstance(rows, pa.Table) and rows and not isinstance(rows[0], Mapping):
        tasks = rows
    outputs = [TaskOutput()]
    if plan.state is not None:
        outputs = [
            write(plan.state, iter(batch_of(part, incoming)), TaskSession(number, **(session or {})))
            for number, part in enumerate(tasks)
        ]
    pause()
    return commit_write(plan, outputs)


def read_rows(path: str | os.PathLike[str], version: int | None = None, **scan: Any) -> list[dict[str, Any]]:
    """All rows of the table, in no order."""
    planned = plan_scan(load_snapshot(os.fspath(path), version=version), **scan)
    return [row for file in planned.files() for batch in read(planned.state, file) for row in batch.to_pylist()]


def read_sorted(path: str | os.PathLike[str], by: str, version: int | None = None) -> list[Any]:
    """The values of one column, sorted, nulls last."""
    values = [row[by] for row in read_rows(path, version)]
    return sorted(values, key=lambda v: (v is None, v))


def ten_files(path: Path, schema: Any, properties: Mapping[str, str], **more: Any) -> None:
    """Ten files of ten rows ``id``, ``v`` and ``p``, in two partitions if ``p`` is one."""
    rows = [[{"id": n, "v": f"v{n}", "p": n % 2} for n in range(f * 10, f * 10 + 10)] for f in range(10)]
    write_rows(path, schema, rows, properties=dict(properties), **more)
