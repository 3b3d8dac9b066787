"""``verify``: does the table keep every promise of the protocol?

Protocol: all of it; each rule is in the module of its subject in ``verification``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from delta_pyds.errors import StorageError
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.storage.table_path import PathLike, absolute_table_path
from delta_pyds.verification.log import LogWalk
from delta_pyds.verification.report import Checked, Finding, Findings, VerifyReport

__all__ = ["Checked", "Finding", "VerifyReport", "verify"]


def verify(
    path: PathLike,
    *,
    storage_options: Mapping[str, Any] | None = None,
    data: bool = True,
    max_findings: int = 1000,
    time_zone: str | None = None,
) -> VerifyReport:
    """Derive every invariant of the protocol anew from the table's files, and report what does not hold.

    The whole log that is still there is read, once: commits, checkpoints,
    compactions, checksums. With ``data`` so is every data file of the latest
    version, batch by batch, and held against its statistics, its deletion
    vector, the schema and the constraints; so are the types of change in the
    change data files that are still there. Memory grows with the number of
    live files and of change data files. Nothing is written.

    ``time_zone``: that of the sessions which wrote the table, for constraints and generated columns that depend on
    it, such as ``CAST(ts AS DATE)``. A table does not record it: without it a row is right if it is so in any zone.

    >>> print(delta_pyds.verify("/data/events"))
    >>> delta_pyds.verify("/data/events", data=False).raise_for_errors()

    Returns: a report; ``report.ok`` is false if there is an error, ``print(report)`` lists what was found.
        What cannot be read is a finding, never an exception.
    Raises: TableNotFoundError where there is no table; ExpressionError for a time zone that there is not.
    """
    if time_zone is not None:
        TimeZone(time_zone)
    root = absolute_table_path(path)
    storage = resolve_storage(root, storage_options or {})
    findings = Findings(max_findings)
    try:
        walk = LogWalk(storage, root, findings)
    except StorageError as error:
        findings.error("log.unreadable", root, f"the log cannot be listed: {error.message}")
        return VerifyReport(root, -1, Checked(), findings.all())
    walk.run()
    checked = walk.checked
    if data:
        if walk.state is None:
            findings.warning("files.not-checked", walk.version, "what files the table has cannot be told from its log.")
        else:
            from delta_pyds.verification.change_data import check_change_data
            from delta_pyds.verification.files import FileChecks

            files = FileChecks(storage, root, storage_options or {}, walk.state, findings, time_zone)
            files.run()
            check_change_data(root, storage_options or {}, walk.change_files, findings)
            checked = replace(checked, files=files.num_files, rows=files.num_rows)
    return VerifyReport(root, walk.version, checked, findings.all())
