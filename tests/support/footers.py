"""The footers that a process has looked at before it lets Spark read the files."""

from __future__ import annotations

from delta_pyds.spark.native.footers import FILES_IN_ORDER


def forget_footers() -> None:
    """Read every footer again when it is next asked for."""
    for file in FILES_IN_ORDER:
        FILES_IN_ORDER.forget(file)
