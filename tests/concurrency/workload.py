"""Random writers of one table, and the serial execution that their commits must equal.

Each commit says in its userMetadata what it did, so that the log alone gives
the serial order: ``replay`` folds it into the rows that the table must hold.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_pyds.errors import ConflictError, StorageError
from tests.support.table_writes import write_rows

SCHEMA = {"id": "string", "p": "string"}
SHARED = "shared"
# what another writer may do to ours, by the decision table of the reference
EXPECTED_REFUSALS = {
    "DELTA_CONCURRENT_APPEND",
    "DELTA_CONCURRENT_DELETE_READ",
    "DELTA_CONCURRENT_DELETE_DELETE",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
}


@dataclass
class Report:
    """The answers that one writer got: versions that it committed, and why commits were refused."""

    committed: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)


def create(path: str, storage_options: Mapping[str, Any] | None = None) -> None:
    """The table that all write to, partitioned by writer."""
    done = json.dumps({"op": "create"})
    write_rows(path, SCHEMA, [], partition_by=(("p",),), user_metadata=done, storage_options=storage_options or {})


def run(
    path: str,
    writer: int,
    commits: int,
    seed: int,
    pause: Callable[[], None] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Report:
    """Make ``commits`` commits, trying again with a new plan whenever one is refused."""
    rng = random.Random(f"{seed}/{writer}")
    report = Report()
    for n in range(commits):
        operation = rng.choices(["append", "own", "shared", "metadata"], [6, 3, 2, 1])[0]
        while not _attempt(path, writer, n, operation, report, storage_options or {}):
            if pause is not None:
                pause()
            if len(report.refused) + len(report.unexpected) > 50 * commits:
                report.unexpected.append("the writer never got through")
                return report
    return report


def _attempt(
    path: str, writer: int, n: int, operation: str, report: Report, storage_options: Mapping[str, Any]
) -> bool:
    row = f"{writer}-{n}"
    partition = SHARED if operation == "shared" else f"w{writer}"
    schema: dict[str, Any] = dict(SCHEMA)
    request: dict[str, Any] = {}
    if operation in ("own", "shared"):
        request = {"mode": "overwrite", "replace_where": f"p = '{partition}'"}
    if operation == "metadata":
        schema[f"c{writer}_{n}"] = "long"
        request = {"merge_schema": True}
    done = {"op": operation, "row": row, "partition": partition}
    try:
        committed = write_rows(
            path,
            schema,
            [{"id": row, "p": partition}],
            user_metadata=json.dumps(done),
            storage_options=storage_options,
            **request,
        )
    except ConflictError as error:
        (report.refused if error.code in EXPECTED_REFUSALS else report.unexpected).append(f"{error.code} {operation}")
        return False
    except StorageError as error:
        # a store that failed while a write was planned or a file was written: certainly not committed
        if error.code != "DELTA_STORAGE_ERROR":
            report.unexpected.append(str(error))
        report.refused.append(f"{error.code} {operation}")
        return False
    assert committed is not None
    report.committed.append(committed.version)
    return True


def replay(operations: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The rows after a serial execution, in the order given, as (partition, id)."""
    rows: dict[str, list[str]] = {}
    for done in operations:
        if done["op"] == "create":
            continue
        if done["op"] in ("own", "shared"):
            rows[done["partition"]] = []
        rows.setdefault(done["partition"], []).append(done["row"])
    return sorted((p, row) for p, found in rows.items() for row in found)
