"""Comparison of two commits.

Invariants: commits are the same if their bytes are equal, or if they have the same transaction and the same actions: a
catalog that stores a commit may format its JSON differently. Commits of two transactions are never the same.

Protocol: "Commit Provenance Information".
"""

from __future__ import annotations

from enum import Enum

import msgspec

from delta_pyds.errors import DeltaError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.protocol.actions import SingleAction


class Comparison(Enum):
    """The result of comparing two commits. ``OTHER_TRANSACTION``: both have a ``txnId``, and these differ."""

    SAME = "same"
    OTHER_TRANSACTION = "other transaction"
    OTHER_ACTIONS = "other actions"
    UNKNOWN = "unknown"


def compare_commits(one: bytes, other: bytes) -> Comparison:
    """Compare two commits. ``UNKNOWN``: one of them has no ``txnId``, or is not a commit."""
    if one == other:
        return Comparison.SAME
    try:
        actions = [decode_commit(data, "") for data in (one, other)]
    except DeltaError:
        return Comparison.UNKNOWN
    first, second = map(transaction_of, actions)
    if not first or not second:
        return Comparison.UNKNOWN
    if first != second:
        return Comparison.OTHER_TRANSACTION
    alike = _but_commit_info(actions[0]) == _but_commit_info(actions[1])
    return Comparison.SAME if alike else Comparison.OTHER_ACTIONS


def transaction_of(actions: list[SingleAction]) -> str | None:
    """The ``txnId`` of a commit; None if it has none."""
    info = next((action.commit_info for action in actions if action.commit_info is not None), None)
    return info.txn_id if info is not None and isinstance(info.txn_id, str) else None


def _but_commit_info(actions: list[SingleAction]) -> list[bytes]:
    return sorted(msgspec.json.encode(one, order="deterministic") for one in actions if one.commit_info is None)
