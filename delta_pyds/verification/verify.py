"""``verify``: does the table keep every promise of the protocol?

Protocol: all of it; each rule is in the module of its subject in ``verification``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from delta_pyds.catalog.address import locate
from delta_pyds.catalog.managed import ManagedStorage
from delta_pyds.catalog.opening import table_storage, task_options
from delta_pyds.errors import StorageError
from delta_pyds.protocol.features import is_managed
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.storage.table_path import PathLike
from delta_pyds.verification.log import LogWalk
from delta_pyds.verification.report import Checked, Finding, Findings, VerifyReport

if TYPE_CHECKING:
    from delta_pyds.catalog import Catalog

__all__ = ["Checked", "Finding", "VerifyReport", "verify"]


def verify(
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
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

    ``table``, ``catalog``: as ``load_snapshot`` takes them; then what the catalog says is held against the log too.
    ``time_zone``: that of the sessions which wrote the table, for constraints and generated columns that depend on
    it, such as ``CAST(ts AS DATE)``. A table does not record it: without it a row is right if it is so in any zone.

    >>> print(delta_pyds.verify("/data/events"))
    >>> delta_pyds.verify("/data/events", data=False).raise_for_errors()

    Returns: a report; ``report.ok`` is false if there is an error, ``print(report)`` lists what was found.
        What cannot be read is a finding, never an exception.
    Raises: TableNotFoundError where there is no table; what the catalog raises; ExpressionError for a time zone that
        there is not.
    """
    if time_zone is not None:
        TimeZone(time_zone)
    address = locate(path, table=table, catalog=catalog, storage_options=storage_options)
    root = address.table_root
    storage = table_storage(root, address.storage_options)
    findings = Findings(max_findings)
    try:
        walk = LogWalk(storage, root, findings)
    except StorageError as error:
        findings.error("log.unreadable", root, f"the log cannot be listed: {error.message}")
        return VerifyReport(root, -1, Checked(), findings.all())
    walk.run()
    if isinstance(storage, ManagedStorage):
        from delta_pyds.verification.catalog import check_catalog

        check_catalog(storage, findings)
    elif walk.state is not None and walk.state.protocol is not None and is_managed(walk.state.protocol):
        findings.warning(
            "protocol.catalog-managed",
            walk.version,
            "a catalog manages the table: its newest commits are not seen here.",
        )
    checked = walk.checked
    if data:
        if walk.state is None:
            findings.warning("files.not-checked", walk.version, "what files the table has cannot be told from its log.")
        else:
            from delta_pyds.verification.change_data import check_change_data
            from delta_pyds.verification.files import FileChecks

            options = task_options(storage, address.storage_options)
            files = FileChecks(storage, root, options, walk.state, findings, time_zone)
            files.run()
            check_change_data(root, options, walk.change_files, findings)
            checked = replace(checked, files=files.num_files, rows=files.num_rows)
    return VerifyReport(root, walk.version, checked, findings.all())
