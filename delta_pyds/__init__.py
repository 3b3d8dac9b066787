"""Delta Lake for PySpark in pure Python: ``spark.read.format("deltapy")``.

Importing the package is cheap: each name is loaded when it is first used,
because every worker of Spark imports the package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.8.0"

if TYPE_CHECKING:
    from delta_pyds.api import explain, report
    from delta_pyds.commands.maintain import checkpoint, compact_log
    from delta_pyds.commands.scan import TableScan, scan
    from delta_pyds.commands.scan_changes import TableChanges, scan_changes
    from delta_pyds.errors import (
        CatalogAnswerError,
        CatalogError,
        ChecksumMismatchError,
        ColumnNotFoundError,
        CommitOutcomeUnknownError,
        CommitRetriesExceededError,
        ConcurrentAppendError,
        ConcurrentDeleteDeleteError,
        ConcurrentDeleteReadError,
        ConcurrentTransactionError,
        ConcurrentWriteError,
        ConflictError,
        ConstraintViolationError,
        CorruptDataFileError,
        CorruptLogError,
        DeletionVectorError,
        DeltaError,
        ExpressionError,
        FileExistsInStorageError,
        FileNotFoundInStorageError,
        MetadataChangedError,
        MissingLogFilesError,
        NothingWrittenError,
        OptionError,
        ProtocolChangedError,
        ProtocolError,
        SchemaMismatchError,
        SqlSyntaxError,
        StorageError,
        TableNotFoundError,
        TimeTravelError,
        UnsupportedFeatureError,
        UnsupportedOperationError,
        UserError,
        VerificationError,
        WorkerPythonError,
    )
    from delta_pyds.progress import Progress, ProgressStep, progress_to
    from delta_pyds.spark.apply_changes.call import apply_changes
    from delta_pyds.spark.catalog_names.create_and_drop import create_table, drop_table
    from delta_pyds.spark.catalog_names.orphans import remove_orphaned_holders
    from delta_pyds.spark.catalog_names.texts import NamedTable
    from delta_pyds.spark.changes import changes
    from delta_pyds.spark.delta_table.column_builder import DeltaColumnBuilder
    from delta_pyds.spark.delta_table.merge_builder import DeltaMergeBuilder
    from delta_pyds.spark.delta_table.table import DeltaTable
    from delta_pyds.spark.delta_table.table_builder import DeltaTableBuilder
    from delta_pyds.spark.install.installation import Installation, install, uninstall
    from delta_pyds.spark.notebook import load_ipython_extension
    from delta_pyds.spark.registration import register
    from delta_pyds.spark.session import read, write
    from delta_pyds.spark.source.error_transport import error_of
    from delta_pyds.spark.source.write_result import WriteResult
    from delta_pyds.spark.sql.run import sql
    from delta_pyds.spark.table_commands.column_definitions import IdentityGenerator
    from delta_pyds.spark.table_functions import register_functions
    from delta_pyds.table.snapshot import Snapshot, load_snapshot
    from delta_pyds.verification.verify import VerifyReport, verify

# the names of each module, without the errors
_MODULES = {
    "delta_pyds.spark.registration": ("register",),
    "delta_pyds.spark.session": ("read", "write"),
    "delta_pyds.spark.changes": ("changes",),
    "delta_pyds.spark.apply_changes.call": ("apply_changes",),
    "delta_pyds.spark.install.installation": ("install", "uninstall", "Installation"),
    "delta_pyds.spark.sql.run": ("sql",),
    "delta_pyds.spark.table_functions": ("register_functions",),
    "delta_pyds.spark.notebook": ("load_ipython_extension",),
    "delta_pyds.spark.catalog_names.create_and_drop": ("create_table", "drop_table"),
    "delta_pyds.spark.catalog_names.orphans": ("remove_orphaned_holders",),
    "delta_pyds.spark.catalog_names.texts": ("NamedTable",),
    "delta_pyds.spark.delta_table.table": ("DeltaTable",),
    "delta_pyds.spark.delta_table.merge_builder": ("DeltaMergeBuilder",),
    "delta_pyds.commands.scan": ("scan", "TableScan"),
    "delta_pyds.commands.scan_changes": ("scan_changes", "TableChanges"),
    "delta_pyds.spark.delta_table.table_builder": ("DeltaTableBuilder",),
    "delta_pyds.spark.delta_table.column_builder": ("DeltaColumnBuilder",),
    "delta_pyds.spark.table_commands.column_definitions": ("IdentityGenerator",),
    "delta_pyds.progress": ("Progress", "ProgressStep", "progress_to"),
    "delta_pyds.api": ("explain", "report"),
    "delta_pyds.commands.maintain": ("checkpoint", "compact_log"),
    "delta_pyds.table.snapshot": ("load_snapshot", "Snapshot"),
    "delta_pyds.spark.source.error_transport": ("error_of",),
    "delta_pyds.spark.source.write_result": ("WriteResult",),
    "delta_pyds.verification.verify": ("verify", "VerifyReport"),
}

__all__ = [
    "CatalogAnswerError",
    "CatalogError",
    "ChecksumMismatchError",
    "ColumnNotFoundError",
    "CommitOutcomeUnknownError",
    "CommitRetriesExceededError",
    "ConcurrentAppendError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteReadError",
    "ConcurrentTransactionError",
    "ConcurrentWriteError",
    "ConflictError",
    "ConstraintViolationError",
    "CorruptDataFileError",
    "CorruptLogError",
    "DeletionVectorError",
    "DeltaColumnBuilder",
    "DeltaError",
    "DeltaMergeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "ExpressionError",
    "FileExistsInStorageError",
    "FileNotFoundInStorageError",
    "IdentityGenerator",
    "Installation",
    "MetadataChangedError",
    "MissingLogFilesError",
    "NamedTable",
    "NothingWrittenError",
    "OptionError",
    "Progress",
    "ProgressStep",
    "ProtocolChangedError",
    "ProtocolError",
    "SchemaMismatchError",
    "Snapshot",
    "SqlSyntaxError",
    "StorageError",
    "TableChanges",
    "TableNotFoundError",
    "TableScan",
    "TimeTravelError",
    "UnsupportedFeatureError",
    "UnsupportedOperationError",
    "UserError",
    "VerificationError",
    "VerifyReport",
    "WorkerPythonError",
    "WriteResult",
    "apply_changes",
    "changes",
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
    "scan_changes",
    "sql",
    "uninstall",
    "verify",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'delta_pyds' has no attribute '{name}'")
    module = next((module for module, names in _MODULES.items() if name in names), "delta_pyds.errors")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
