"""Commits of a table's log, as they lie in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import history
from tests.support.table_builder import TableBuilder

_COUNTED = (
    "numAddedFiles", "numRemovedFiles", "numCopiedRows", "numDeletionVectorsAdded", "numDeletionVectorsUpdated",
    "numDeletionVectorsRemoved", "numAddedChangeFiles",
)  # fmt: skip
_MEASURED = ("numAddedBytes", "numRemovedBytes", "executionTimeMs", "scanTimeMs", "rewriteTimeMs")


def actions(path: Path, version: int) -> list[dict[str, Any]]:
    """The lines of one commit."""
    text = (path / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines() if line]


def info(path: Path, version: int) -> dict[str, Any]:
    """The commit info, which stands first."""
    first = actions(path, version)[0]
    assert "commitInfo" in first
    return dict(first["commitInfo"])


def last(path: Path) -> Any:
    """The commit info of the newest version, as the history shows it."""
    [record] = history(LocalStorage(), str(path), limit=1)
    return record.commit_info


def check_metrics(path: Path, operation: str, changed: str, expected: str) -> None:
    """Check the metrics of the last commit. ``expected``: the values of the counts, and of ``changed``."""
    entry = last(path)
    metrics = dict(entry.operation_metrics or {})
    assert entry.operation == operation
    assert " ".join(metrics[name] for name in (*_COUNTED, changed)) == expected
    assert metrics.keys() == {*_COUNTED, changed, *_MEASURED}


def table_at(path: Path, *times: int, properties: dict[str, str] | None = None) -> TableBuilder:
    """One commit for each file time."""
    table = TableBuilder(path, {"id": "long"}, properties=properties or {})
    table.create(timestamp_ms=times[0])
    for time in times[1:]:
        table.commit(timestamp_ms=time)
    return table
