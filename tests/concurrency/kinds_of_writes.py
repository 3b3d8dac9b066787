"""Writes that are killed in the middle: each takes a table that has version 0 with the rows 1 and 2."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.table_writes import write_rows

IDS = {"id": "long"}


def append(table: str) -> None:
    """Two tasks, one version, and with this table's interval a checkpoint after it."""
    write_rows(table, IDS, [[{"id": 10}], [{"id": 11}]])


def overwrite(table: str) -> None:
    write_rows(table, IDS, [{"id": 10}, {"id": 11}], mode="overwrite")


def replace_rows(table: str) -> None:
    """Rewrites the file that holds both rows."""
    write_rows(table, IDS, [{"id": 2}, {"id": 3}], mode="overwrite", replace_where="id >= 2")


KINDS: dict[str, Callable[[str], None]] = {"append": append, "overwrite": overwrite, "replace_rows": replace_rows}
AFTERWARDS = {"append": [1, 2, 10, 11], "overwrite": [10, 11], "replace_rows": [1, 2, 3]}
