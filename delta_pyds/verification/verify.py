"""``verify``: check a table against every rule of the protocol.

Protocol: all of it. Each rule is in the module of its subject.
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
    """Check a table against every rule of the protocol, and report the rules that it breaks.

    The whole log is read once: commits, checkpoints, compactions, checksums. With ``data`` every data file of the
    latest version is read too, in batches, and compared with its statistics, its deletion vector, the schema and the
    constraints; so are the change types of change data files. Memory grows with the number of live files and of change
    data files. Nothing is written. A file that cannot be read is a finding, not an exception.

    Args:
        path: The path of the table.
        table: Instead of a path, the name of the table in ``catalog``.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it; its commits are compared with the
            log too.
        storage_options: Options of the store, as its fsspec package takes them.
        data: Whether to read data files.
        max_findings: The most findings that the report lists.
        time_zone: The zone of the sessions that wrote the table, for constraints and generated columns that depend on
            it, such as ``CAST(ts AS DATE)``. A table does not record it. Without it, a row must be valid in some zone.

    Returns:
        A report. ``report.ok`` is false if there is an error; ``print(report)`` lists the findings.

    Raises:
        TableNotFoundError: There is no table.
        OptionError: An argument is invalid.
        CatalogError: The catalog failed.
        ExpressionError: The time zone is unknown.

    Protocol: all of it.

    >>> print(delta_pyds.verify("/data/events"))
    >>> delta_pyds.verify("/data/events", data=False).raise_for_errors()
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
            "a catalog manages the table: name the catalog to check the newest commits, too.",
        )
    checked = walk.checked
    if data:
        if walk.state is None:
            findings.warning("files.not-checked", walk.version, "the log does not define the files of the table.")
        else:
            from delta_pyds.verification.files import FileChecks, check_change_data

            options = task_options(storage, address.storage_options)
            files = FileChecks(storage, root, options, walk.state, findings, time_zone)
            files.run()
            check_change_data(root, options, walk.change_files, findings)
            checked = replace(checked, files=files.num_files, rows=files.num_rows)
    return VerifyReport(root, walk.version, checked, findings.all())
