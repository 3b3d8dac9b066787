"""The commitInfo action: provenance of a commit. Protocol: "Commit Provenance Information"."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_pyds.protocol.actions import CommitInfo

# characters of a condition
_MOST_LOGGED = 10_000


@dataclass(frozen=True)
class Operation:
    """What a transaction does, as the table's history will show it.

    ``name`` and the keys of ``parameters`` are the reference's (``WRITE`` with
    ``mode``, ``partitionBy`` ...). Parameters are plain Python values; lists
    and mappings become text. ``metrics`` become text too.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)


def commit_info(
    operation: Operation,
    *,
    timestamp_ms: int,
    in_commit_timestamp: int | None,
    read_version: int | None,
    isolation_level: str,
    is_blind_append: bool,
    data_change: bool,
    txn_id: str,
    user_metadata: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> CommitInfo:
    """The action. ``read_version``: None for the commit that creates the table."""
    return CommitInfo(
        in_commit_timestamp=in_commit_timestamp,
        timestamp=timestamp_ms,
        operation=operation.name,
        operation_parameters={name: parameter_value(value) for name, value in operation.parameters.items()},
        operation_metrics={name: _text(value) for name, value in operation.metrics.items()},
        read_version=read_version,
        isolation_level=isolation_level,
        is_blind_append=is_blind_append,
        data_change=data_change,
        engine_info=engine_info(),
        txn_id=txn_id,
        user_metadata=user_metadata,
        tags=dict(tags) if tags else None,
    )


def parameter_value(value: Any) -> Any:
    """A parameter as it stands in the JSON.

    As the reference has it: text, numbers, booleans and null are themselves,
    everything with parts is text that holds JSON.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return _json({str(k): v for k, v in value.items()})
    if isinstance(value, (list, tuple, set, frozenset)):
        return _json(list(value))
    return str(value)


def engine_info() -> str:
    """This library, and the Spark that it runs in where there is one."""
    # looked at, not imported: the package stands above this module, and without Spark it works all the same
    ours = f"delta_pyds/{_version('delta_pyds')}"
    spark = _version("pyspark")
    return f"Apache-Spark/{spark} {ours}" if spark else ours


def condition_for_the_log(condition: str) -> str:
    """A condition as history shows it: every reader of the log reads it, and nobody evaluates it."""
    if len(condition) <= _MOST_LOGGED:
        return condition
    return f"{condition[:_MOST_LOGGED]}... (cut: {len(condition)} characters)"


def _version(package: str) -> str | None:
    version = getattr(sys.modules.get(package), "__version__", None)
    return str(version) if version else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
