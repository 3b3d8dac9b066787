"""Delta Lake for PySpark in pure Python: ``spark.read.format("deltapy")``.

Importing the package imports nothing heavy: each name is loaded when it is
first used, because Spark imports the package in every one of its workers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from delta_pyds.api import explain
    from delta_pyds.commands.maintain import checkpoint, compact_log
    from delta_pyds.commands.verify import VerifyReport, verify
    from delta_pyds.errors import DeltaError
    from delta_pyds.spark.session import read, register, write
    from delta_pyds.table.snapshot import Snapshot, load_snapshot

_EXPORTS = {
    "register": "delta_pyds.spark.session",
    "read": "delta_pyds.spark.session",
    "write": "delta_pyds.spark.session",
    "explain": "delta_pyds.api",
    "checkpoint": "delta_pyds.commands.maintain",
    "compact_log": "delta_pyds.commands.maintain",
    "load_snapshot": "delta_pyds.table.snapshot",
    "Snapshot": "delta_pyds.table.snapshot",
    "DeltaError": "delta_pyds.errors",
    "verify": "delta_pyds.commands.verify",
    "VerifyReport": "delta_pyds.commands.verify",
}

__all__ = [
    "DeltaError",
    "Snapshot",
    "VerifyReport",
    "checkpoint",
    "compact_log",
    "explain",
    "load_snapshot",
    "read",
    "register",
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
