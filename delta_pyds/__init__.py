"""Delta Lake for PySpark in pure Python: ``spark.read.format("deltapy")``.

Importing the package imports nothing heavy: each name is loaded when it is
first used, because Spark imports the package in every one of its workers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from delta_pyds.api import explain
    from delta_pyds.errors import DeltaError
    from delta_pyds.spark.session import read, register
    from delta_pyds.table.snapshot import Snapshot, load_snapshot

_EXPORTS = {
    "register": "delta_pyds.spark.session",
    "read": "delta_pyds.spark.session",
    "explain": "delta_pyds.api",
    "load_snapshot": "delta_pyds.table.snapshot",
    "Snapshot": "delta_pyds.table.snapshot",
    "DeltaError": "delta_pyds.errors",
}

__all__ = ["DeltaError", "Snapshot", "explain", "load_snapshot", "read", "register"]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'delta_pyds' has no attribute '{name}'")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
