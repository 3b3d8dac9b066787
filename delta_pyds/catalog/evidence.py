"""Whose a version is, by what the catalog stores and by what lies in the log: never by a word alone.

Invariants: two texts are one commit if they are the same bytes, or of the same transaction with the same actions,
however their JSON is written (a catalog may store it its own way); of two transactions never.

Protocol: "Commit Provenance Information", "Catalog Responsibilities".
"""

from __future__ import annotations

from enum import Enum

import msgspec

from delta_pyds.catalog.interface import CommitProposal, ManagedTable
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.errors import DeltaError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.protocol.actions import SingleAction
from delta_pyds.protocol.paths import commit_path
from delta_pyds.redaction import safe_logger

_logger = safe_logger(__name__)


class Owner(Enum):
    """Of a version that one transaction was proposed as. ``NOBODY``: the table does not have the version."""

    OURS = "ours"
    OTHERS = "others"
    NOBODY = "nobody"
    UNKNOWN = "unknown"


class Likeness(Enum):
    """Of two texts of commits. ``OTHER_TRANSACTION``: each says whose it is, and not the same."""

    SAME = "same"
    OTHER_TRANSACTION = "other transaction"
    OTHER_ACTIONS = "other actions"
    UNKNOWN = "unknown"


def likeness(one: bytes, other: bytes) -> Likeness:
    """How much of one commit two texts are. ``UNKNOWN``: one of them does not say whose it is, or is no commit."""
    if one == other:
        return Likeness.SAME
    try:
        actions = [decode_commit(data, "") for data in (one, other)]
    except DeltaError:
        return Likeness.UNKNOWN
    first, second = map(_transaction_of, actions)
    if not first or not second:
        return Likeness.UNKNOWN
    if first != second:
        return Likeness.OTHER_TRANSACTION
    alike = _but_commit_info(actions[0]) == _but_commit_info(actions[1])
    return Likeness.SAME if alike else Likeness.OTHER_ACTIONS


def owner_in(storage: CatalogStorage, table: ManagedTable, proposal: CommitProposal) -> Owner:
    """Whose the version is, as the catalog says in ``table``; what it has forgotten the log tells.

    Raises: what reading the commit raises.
    """
    if table.latest_version < proposal.version:
        return Owner.NOBODY
    stored = next((one for one in table.unpublished if one.version == proposal.version), None)
    if stored is not None and stored.file_name is not None and proposal.file_name is not None:
        return Owner.OURS if stored.file_name == proposal.file_name else Owner.OTHERS
    path = commit_path(storage.table_root, proposal.version)
    if stored is None:
        data = storage.store.read(path)
    elif stored.content is not None and stored.content == proposal.content:
        return Owner.OURS
    else:
        data = storage.read_unpublished(stored)
    return Owner.OURS if _transaction_of(decode_commit(data, path)) == proposal.txn_id else Owner.OTHERS


def owner_now(storage: CatalogStorage, proposal: CommitProposal) -> tuple[Owner, ManagedTable | None]:
    """The same by what the catalog says when it is asked now, with what it says. Never raises."""
    try:
        table = storage.latest()
        return (Owner.UNKNOWN if table is None else owner_in(storage, table, proposal)), table
    except Exception as error:
        _logger.warning("It is not known yet whose version %d is: %s", proposal.version, error)
        return Owner.UNKNOWN, None


def _transaction_of(actions: list[SingleAction]) -> str | None:
    info = next((action.commit_info for action in actions if action.commit_info is not None), None)
    return info.txn_id if info is not None and isinstance(info.txn_id, str) else None


def _but_commit_info(actions: list[SingleAction]) -> list[bytes]:
    return sorted(msgspec.json.encode(one, order="deterministic") for one in actions if one.commit_info is None)
