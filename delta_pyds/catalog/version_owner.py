"""The owner of a version: derived from the catalog's stored commits and the log, never from an answer alone.

Protocol: "Commit Provenance Information", "Catalog Responsibilities".
"""

from __future__ import annotations

from enum import Enum

from delta_pyds.catalog.commit_comparison import transaction_of
from delta_pyds.catalog.interface import CommitProposal, ManagedTable
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.protocol.paths import commit_path
from delta_pyds.redaction import safe_logger

_logger = safe_logger(__name__)


class Owner(Enum):
    """The owner of the version that a transaction proposed. ``NOBODY``: the table does not have the version."""

    OURS = "ours"
    OTHERS = "others"
    NOBODY = "nobody"
    UNKNOWN = "unknown"


def owner_in(storage: CatalogStorage, table: ManagedTable, proposal: CommitProposal) -> Owner:
    """The owner of the version according to ``table``, or the log for commits that the catalog no longer stores.

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


def current_owner(storage: CatalogStorage, proposal: CommitProposal) -> tuple[Owner, ManagedTable | None]:
    """Ask the catalog, and return the owner with its answer. Never raises."""
    try:
        table = storage.latest()
        return (Owner.UNKNOWN if table is None else owner_in(storage, table, proposal)), table
    except Exception as error:
        _logger.warning("The owner of version %d is not known yet: %s", proposal.version, error)
        return Owner.UNKNOWN, None
