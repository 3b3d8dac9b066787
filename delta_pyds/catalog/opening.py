"""The storage and the committer of a table with or without a catalog, and a catalog's requirements for a new table.

For a table at a path it imports no catalog.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from delta_pyds.catalog.address import CATALOG_NAME, RESERVED, TABLE_ID, TABLE_NAME
from delta_pyds.catalog.managed import ManagedStorage
from delta_pyds.errors import OptionError
from delta_pyds.log.committer import Committer, FileSystemCommitter
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.properties import Property
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import CATALOG_OPTIONS, resolve_storage

if TYPE_CHECKING:
    from delta_pyds.catalog.interface import Catalog, StorageCredentials
    from delta_pyds.catalog.managed_storage import CatalogStorage

# properties of every catalog-managed table. Protocol: "Writer Requirements for Catalog-managed tables"
_FEATURES = (Feature.CATALOG_MANAGED, Feature.IN_COMMIT_TIMESTAMP, Feature.VACUUM_PROTOCOL_CHECK)
_PROPERTIES = {Property.ENABLE_IN_COMMIT_TIMESTAMPS: "true"}


def table_storage(table_root: str, options: Mapping[str, Any] | None = None) -> Storage:
    """The storage of a table: that of its path, or one with the log according to its catalog.

    ``options``: the storage options of a ``TableAddress``.

    Raises: as ``resolve_storage`` and ``open_catalog``.
    """
    given = options or {}
    if CATALOG_NAME not in given:
        return resolve_storage(table_root, options)
    # imported here: tables at paths have no catalog
    from delta_pyds.catalog.named import open_catalog

    name = given[CATALOG_NAME]
    return managed_storage(open_catalog(name), table_root, given, connect=lambda: open_catalog(name))


def managed_storage(
    catalog: Catalog,
    table_root: str,
    options: Mapping[str, Any],
    *,
    connect: Callable[[], Catalog] | None = None,
) -> CatalogStorage:
    """The storage of a catalog's table, with the catalog's client. ``connect``: see ``CatalogStorage``."""
    from delta_pyds.catalog.interface import TableReservation
    from delta_pyds.catalog.managed_storage import CatalogStorage

    plain = {name: value for name, value in options.items() if not name.startswith(CATALOG_OPTIONS)}

    def open_store(credentials: StorageCredentials | None) -> Storage:
        more = {} if credentials is None else credentials.storage_options
        return resolve_storage(table_root, {**plain, **more})

    reservation = None
    if RESERVED in options:
        reserved = json.loads(options[RESERVED])
        reservation = TableReservation(
            options[TABLE_NAME],
            options[TABLE_ID],
            table_root,
            properties=reserved["properties"],
            features=tuple(reserved["features"]),
        )
    return CatalogStorage(
        catalog,
        options[TABLE_NAME],
        table_root,
        open_store,
        table_id=None if reservation is not None else options[TABLE_ID],
        reservation=reservation,
        connect=connect,
    )


def committer_of(storage: Storage, table_root: str, *, sleep: Callable[[float], None] = time.sleep) -> Committer:
    """The committer of the table that the storage was opened for."""
    if not isinstance(storage, ManagedStorage):
        return FileSystemCommitter(storage, table_root, sleep=sleep)
    from delta_pyds.catalog.committer import CatalogCommitter
    from delta_pyds.catalog.managed_storage import CatalogStorage

    managed: ManagedStorage = storage
    assert isinstance(managed, CatalogStorage)
    return CatalogCommitter(managed, sleep=sleep)


def task_options(storage: Storage, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options for tasks: the given ones, and temporary credentials from the table's catalog.

    They never contain the catalog's own settings.
    """
    given = dict(options or {})
    return given | dict(storage.credential_options) if isinstance(storage, ManagedStorage) else given


def features_of_new_table(storage: Storage) -> tuple[str, ...]:
    """The features that every table created through the storage must support."""
    if not isinstance(storage, ManagedStorage):
        return ()
    return (*_FEATURES, *storage.wanted_features)


def properties_of_new_table(storage: Storage, asked: Mapping[str, str]) -> dict[str, str]:
    """The properties of a table that is created through the storage: the user's, and those that its catalog requires.

    Raises: OptionError if the user sets another value than the required one.
    """
    if not isinstance(storage, ManagedStorage):
        return dict(asked)
    wanted = {**_PROPERTIES, **storage.wanted_properties}
    given_by_key = {key.lower(): (key, value) for key, value in asked.items()}
    for key, value in wanted.items():
        given = given_by_key.get(key.lower())
        if given is not None and given[1].strip().lower() != value.lower():
            raise OptionError(
                f"the property {given[0]} is {given[1]!r}, but the catalog of the table {storage.table_name} requires "
                f"{value!r}: leave it out.",
                code="DELTA_INVALID_TABLE_PROPERTY",
                property=given[0],
                value=given[1],
            )
    mine = {key.lower() for key in wanted}
    return {**{key: value for key, value in asked.items() if key.lower() not in mine}, **wanted}
