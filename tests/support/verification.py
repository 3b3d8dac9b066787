"""The findings of ``verify`` in a table, in a form that tests compare."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from delta_pyds import verify
from tests.support.table_builder import TableBuilder


def make(path: Path, schema: Any = None, rows: Sequence[Mapping[str, Any]] = (), **options: Any) -> TableBuilder:
    """A table, by default with the one column ``id``. Rows are one file."""
    table = TableBuilder(path, schema or {"id": "long"}, **options)
    table.create()
    if rows:
        table.append(list(rows))
    return table


def rules(table: TableBuilder | str | os.PathLike[str], **options: Any) -> list[str]:
    """``error rule`` or ``warning rule``, each once, in order."""
    path = table.path if isinstance(table, TableBuilder) else table
    report = verify(str(path), **options)
    return sorted({f"{f.severity} {f.rule}" for f in report.findings})


def messages(table: TableBuilder | str | os.PathLike[str], **options: Any) -> str:
    """All messages, for looking into one."""
    path = table.path if isinstance(table, TableBuilder) else table
    return "\n".join(str(f) for f in verify(str(path), **options).findings)


def clean(path: str | os.PathLike[str]) -> None:
    """Require that ``verify`` finds nothing."""
    report = verify(str(path))
    assert not report.findings, report
