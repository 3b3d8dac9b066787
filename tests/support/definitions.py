"""Tables made and changed without Spark, and what their logs say of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.definition.change import DefinitionChange, DefinitionOptions, run_change
from delta_pyds.commands.definition.create import CreateMode, CreateRequest, create_table
from delta_pyds.errors import DeltaError
from delta_pyds.protocol.schema import StructType
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from delta_pyds.table.transaction.transaction import Committed
from delta_pyds.verification.verify import verify
from tests.support.table_writes import struct


def define(path: str | os.PathLike[str], columns: Any, mode: CreateMode = "create", **request: Any) -> Committed | None:
    """Make a table of the columns, which may be ``{"id": "long"}``."""
    schema = columns if isinstance(columns, StructType) else struct(columns)
    return create_table(CreateRequest(os.fspath(path), mode, schema, **request))


def alter(path: str | os.PathLike[str], plan: Callable[[Snapshot], DefinitionChange]) -> Snapshot:
    """Commit a change; the table after it, which keeps all rules."""
    run_change(lambda: load_snapshot(path), plan, DefinitionOptions())
    report = verify(os.fspath(path))
    assert not report.findings, report
    return load_snapshot(path)


def commit_info(path: Path, version: int | None = None) -> dict[str, Any]:
    """The operation and its parameters, of the newest version by default."""
    commits = sorted((path / "_delta_log").glob("*.json"))
    chosen = commits[-1] if version is None else commits[version]
    first = json.loads(chosen.read_text().splitlines()[0])["commitInfo"]
    return {key: first.get(key) for key in ("operation", "operationParameters", "operationMetrics")}


def refusal(path: Path, plan: Any) -> DeltaError:
    """The error of a change, which commits nothing."""
    version = load_snapshot(path).version
    with pytest.raises(DeltaError) as error:
        alter(path, plan)
    assert load_snapshot(path).version == version
    return error.value
