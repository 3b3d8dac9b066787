"""The commitInfo action: provenance of a commit. Protocol: "Commit Provenance Information"."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_pyds.protocol.actions import CommitInfo

# the most characters of a condition in the log
_MOST_LOGGED = 10_000


@dataclass(frozen=True)
class Operation:
    """The operation of a transaction, as the table's history will show it.

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
    """A parameter in the JSON of the commit.

    As in the reference, text, numbers, booleans and null stay as they are, and
    nested values become a text of JSON.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return _json({str(k): v for k, v in value.items()})
    if isinstance(value, (list, tuple, set, frozenset)):
        return _json(list(value))
    return str(value)


def engine_info() -> str:
    """The name and version of this library, and of Spark if it runs in Spark."""
    # pyspark is not imported here: this layer must not import it, and delta_pyds also works without Spark
    ours = f"delta_pyds/{_version('delta_pyds')}"
    spark = _version("pyspark")
    return f"Apache-Spark/{spark} {ours}" if spark else ours


def condition_for_the_log(condition: str) -> str:
    """A condition for the history, cut if it is long: every reader of the log loads it, but nothing evaluates it."""
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
