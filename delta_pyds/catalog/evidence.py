"""Whose a version is, by what the catalog stores and by what lies in the log: never by a word alone.

Protocol: "Commit Provenance Information", "Catalog Responsibilities".
"""

from __future__ import annotations

from enum import Enum

from delta_pyds.catalog.interface import CommitProposal, ManagedTable
from delta_pyds.catalog.likeness import transaction_of
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.protocol.paths import commit_path
from delta_pyds.redaction import safe_logger

_logger = safe_logger(__name__)


class Owner(Enum):
    """Of a version that one transaction was proposed as. ``NOBODY``: the table does not have the version."""

    OURS = "ours"
    OTHERS = "others"
    NOBODY = "nobody"
    UNKNOWN = "unknown"


def owner_in(storage: CatalogStorage, table: ManagedTable, proposal: CommitProposal) -> Owner:
    """Whose the version is, as the catalog says in ``table``; what it has forgotten the log tells.

    Raises: as ``read_commit``.
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
    return Owner.OURS if transaction_of(decode_commit(data, path)) == proposal.txn_id else Owner.OTHERS


def owner_now(storage: CatalogStorage, proposal: CommitProposal) -> tuple[Owner, ManagedTable | None]:
    """The same by what the catalog says when it is asked now, with what it says. Never raises."""
    try:
        table = storage.latest()
        return (Owner.UNKNOWN if table is None else owner_in(storage, table, proposal)), table
    except Exception as error:
        _logger.warning("It is not known yet who committed version %d is: %s", proposal.version, error)
        return Owner.UNKNOWN, None
