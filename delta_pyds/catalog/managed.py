"""Whether a catalog manages the table of a storage. Modules that also handle tables at paths ask here.

This module imports no catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_pyds.storage.base import Storage


class ManagedStorage:
    """The attributes of a ``CatalogStorage`` that other layers need.

    ``table_name``: the table's name in its catalog. ``wanted_properties``, ``wanted_features``: the catalog's
    requirements for a new table, besides those for every managed table. ``credential_options``: temporary credentials
    of the table's file system, which are not about to expire.
    """

    table_name: str

    @property
    def credential_options(self) -> Mapping[str, Any]:
        raise NotImplementedError

    @property
    def wanted_properties(self) -> Mapping[str, str]:
        raise NotImplementedError

    @property
    def wanted_features(self) -> tuple[str, ...]:
        raise NotImplementedError

    def check_allowed(self, operation: str) -> None:
        """Raises: UnsupportedOperationError if only the catalog may do the operation."""
        raise NotImplementedError

    def forbids(self, operation: str) -> bool:
        """Whether only the catalog may do the operation."""
        raise NotImplementedError

    def stores_up_to(self, version: int) -> bool:
        """Whether the catalog still returns a commit of that version or an older one."""
        raise NotImplementedError

    def clean_staged(self, version: int, *, now_ms: int) -> None:
        """Delete staged commits up to ``version``. The history starts at that version's checkpoint; see ``staging``."""
        raise NotImplementedError


# Operations that a catalog may forbid, besides the operations in the history.
CHECKPOINT, COMPACT_LOG, CLEAN_UP, CHECKSUM = "CHECKPOINT", "COMPACT LOG", "CLEAN UP", "CHECKSUM"


def is_catalog_managed(storage: Storage) -> bool:
    """Whether the table is opened through its catalog."""
    return isinstance(storage, ManagedStorage)


def check_allowed(storage: Storage, operation: str) -> None:
    """Raises: UnsupportedOperationError if a catalog forbids the operation. A table without a catalog allows all."""
    if isinstance(storage, ManagedStorage):
        storage.check_allowed(operation)


def allows(storage: Storage, operation: str) -> bool:
    """Whether the operation is allowed. If it is not, callers skip work that the user did not request."""
    return not (isinstance(storage, ManagedStorage) and storage.forbids(operation))
