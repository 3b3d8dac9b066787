"""Delta Lake for PySpark in pure Python: ``spark.read.format("deltapy")``.

Importing the package imports nothing heavy: each name is loaded when it is
first used, because Spark imports the package in every one of its workers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.8.0"

if TYPE_CHECKING:
    from delta_pyds.api import explain, report
    from delta_pyds.commands.maintain import checkpoint, compact_log
    from delta_pyds.commands.scan import TableScan, scan
    from delta_pyds.errors import (
        CommitOutcomeUnknownError,
        CommitRetriesExceededError,
        ConcurrentAppendError,
        ConcurrentDeleteDeleteError,
        ConcurrentDeleteReadError,
        ConcurrentTransactionError,
        ConcurrentWriteError,
        ConflictError,
        DeltaError,
        MetadataChangedError,
        ProtocolChangedError,
    )
    from delta_pyds.progress import Progress, ProgressStep, progress_to
    from delta_pyds.spark.delta_table.catalog_names import create_table, drop_table
    from delta_pyds.spark.delta_table.column_definitions import IdentityGenerator
    from delta_pyds.spark.delta_table.merge_builder import DeltaMergeBuilder
    from delta_pyds.spark.delta_table.table import DeltaTable
    from delta_pyds.spark.delta_table.table_builder import DeltaColumnBuilder, DeltaTableBuilder
    from delta_pyds.spark.install.installation import Installation, install, uninstall
    from delta_pyds.spark.named_tables.orphans import remove_orphaned_holders
    from delta_pyds.spark.named_tables.texts import NamedTable
    from delta_pyds.spark.notebook import load_ipython_extension
    from delta_pyds.spark.session import read, register, write
    from delta_pyds.spark.source.error_transport import error_of
    from delta_pyds.spark.source.write_result import WriteResult
    from delta_pyds.spark.sql.run import sql
    from delta_pyds.spark.table_functions import register_functions
    from delta_pyds.table.snapshot import Snapshot, load_snapshot
    from delta_pyds.verification.verify import VerifyReport, verify

_EXPORTS = {
    "register": "delta_pyds.spark.session",
    "read": "delta_pyds.spark.session",
    "write": "delta_pyds.spark.session",
    "install": "delta_pyds.spark.install.installation",
    "uninstall": "delta_pyds.spark.install.installation",
    "Installation": "delta_pyds.spark.install.installation",
    "sql": "delta_pyds.spark.sql.run",
    "register_functions": "delta_pyds.spark.table_functions",
    "load_ipython_extension": "delta_pyds.spark.notebook",
    "create_table": "delta_pyds.spark.delta_table.catalog_names",
    "drop_table": "delta_pyds.spark.delta_table.catalog_names",
    "remove_orphaned_holders": "delta_pyds.spark.named_tables.orphans",
    "NamedTable": "delta_pyds.spark.named_tables.texts",
    "DeltaTable": "delta_pyds.spark.delta_table.table",
    "DeltaMergeBuilder": "delta_pyds.spark.delta_table.merge_builder",
    "scan": "delta_pyds.commands.scan",
    "TableScan": "delta_pyds.commands.scan",
    "DeltaTableBuilder": "delta_pyds.spark.delta_table.table_builder",
    "DeltaColumnBuilder": "delta_pyds.spark.delta_table.table_builder",
    "IdentityGenerator": "delta_pyds.spark.delta_table.column_definitions",
    "Progress": "delta_pyds.progress",
    "ProgressStep": "delta_pyds.progress",
    "progress_to": "delta_pyds.progress",
    "explain": "delta_pyds.api",
    "report": "delta_pyds.api",
    "checkpoint": "delta_pyds.commands.maintain",
    "compact_log": "delta_pyds.commands.maintain",
    "load_snapshot": "delta_pyds.table.snapshot",
    "Snapshot": "delta_pyds.table.snapshot",
    "DeltaError": "delta_pyds.errors",
    "CommitOutcomeUnknownError": "delta_pyds.errors",
    "CommitRetriesExceededError": "delta_pyds.errors",
    "ConcurrentAppendError": "delta_pyds.errors",
    "ConcurrentDeleteDeleteError": "delta_pyds.errors",
    "ConcurrentDeleteReadError": "delta_pyds.errors",
    "ConcurrentTransactionError": "delta_pyds.errors",
    "ConcurrentWriteError": "delta_pyds.errors",
    "ConflictError": "delta_pyds.errors",
    "MetadataChangedError": "delta_pyds.errors",
    "ProtocolChangedError": "delta_pyds.errors",
    "error_of": "delta_pyds.spark.source.error_transport",
    "WriteResult": "delta_pyds.spark.source.write_result",
    "verify": "delta_pyds.verification.verify",
    "VerifyReport": "delta_pyds.verification.verify",
}

__all__ = [
    "CommitOutcomeUnknownError",
    "CommitRetriesExceededError",
    "ConcurrentAppendError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteReadError",
    "ConcurrentTransactionError",
    "ConcurrentWriteError",
    "ConflictError",
    "DeltaColumnBuilder",
    "DeltaError",
    "DeltaMergeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "Installation",
    "MetadataChangedError",
    "NamedTable",
    "Progress",
    "ProgressStep",
    "ProtocolChangedError",
    "Snapshot",
    "TableScan",
    "VerifyReport",
    "WriteResult",
    "checkpoint",
    "compact_log",
    "create_table",
    "drop_table",
    "error_of",
    "explain",
    "install",
    "load_ipython_extension",
    "load_snapshot",
    "progress_to",
    "read",
    "register",
    "register_functions",
    "remove_orphaned_holders",
    "report",
    "scan",
    "sql",
    "uninstall",
    "verify",
    "write",
]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'delta_pyds' has no attribute '{name}'")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
