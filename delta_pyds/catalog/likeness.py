"""Whether two texts are one commit.

Invariants: they are if they are the same bytes, or of the same transaction with the same actions, however their JSON is
written (a catalog may store it its own way); texts of two transactions never are.

Protocol: "Commit Provenance Information".
"""

from __future__ import annotations

from enum import Enum

import msgspec

from delta_pyds.errors import DeltaError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.protocol.actions import SingleAction


class Likeness(Enum):
    """Of two texts of commits. ``OTHER_TRANSACTION``: each says whose it is, and not the same."""

    SAME = "same"
    OTHER_TRANSACTION = "other transaction"
    OTHER_ACTIONS = "other actions"
    UNKNOWN = "unknown"


def likeness(one: bytes, other: bytes) -> Likeness:
    """The likeness of two texts of a commit. ``UNKNOWN``: one of them has no ``txnId``, or is not a commit."""
    if one == other:
        return Likeness.SAME
    try:
        actions = [decode_commit(data, "") for data in (one, other)]
    except DeltaError:
        return Likeness.UNKNOWN
    first, second = map(transaction_of, actions)
    if not first or not second:
        return Likeness.UNKNOWN
    if first != second:
        return Likeness.OTHER_TRANSACTION
    alike = _but_commit_info(actions[0]) == _but_commit_info(actions[1])
    return Likeness.SAME if alike else Likeness.OTHER_ACTIONS


def transaction_of(actions: list[SingleAction]) -> str | None:
    """The ``txnId`` of a commit; None where it does not say whose it is."""
    info = next((action.commit_info for action in actions if action.commit_info is not None), None)
    return info.txn_id if info is not None and isinstance(info.txn_id, str) else None


def _but_commit_info(actions: list[SingleAction]) -> list[bytes]:
    return sorted(msgspec.json.encode(one, order="deterministic") for one in actions if one.commit_info is None)
